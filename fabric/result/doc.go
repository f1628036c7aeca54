// Package result is the data of a finished or interrupted run: what became of
// every flow, what every port counted, every pause and drop in order, and
// series over time.
//
// Package fabric fills it in; packages explain and report read it, and never
// look at the simulator. It has no behaviour beyond what follows from a single
// value.
package result
