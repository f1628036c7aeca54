// Package lab is the library of scenarios: each a file that teaches one thing,
// with the numbers that it must show and where these are from.
//
// Numbers in expect are derived: from a formula of package theory or a
// publication that the source names. A test runs every scenario and holds it to
// them.
//
// Read lab.go, then any file in scenarios.
package lab
