// Package work owns the traffic of a simulated fabric: flows, the generators
// that make them, and the files in which other simulators keep theirs.
package work
