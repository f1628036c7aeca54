// Package work owns the traffic of a simulated fabric: flows, the generators
// that make them, and the files in which other simulators keep theirs.
//
// Everything is a Stream of flows in the order of their starts. A generator (a
// struct that validates itself) makes flows as they are asked for, so that a
// year of Poisson arrivals takes no memory; a file is read as it is asked for,
// so that a trace may be longer than memory:
//
//	generators ─┐
//	files ──────┼─ Stream ─ Merge ─ the fabric
//	lists ──────┘
//
// Flows go between endpoints, which are numbers here: who has a graph turns
// names into numbers, and gives file readers a function that does. Random
// choices come from a sim.Rand that is handed in, and are made in integers: the
// same seed gives the same flows everywhere.
//
// It must never open a file, hold more than MaxFlows flows, or know of switches
// and queue pairs. Scenarios and the composition of a run call it.
//
// Read flow.go, stream.go, merge.go, order.go; workload.go and one generator;
// cdf.go; reader.go and one format.
package work
