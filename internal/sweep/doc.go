// Package sweep runs a scenario over a grid of settings, as many runs at a time
// as there are cores, and says where a curve bends.
//
//	--set a=1,2,3 ─▶ Axis ─▶ grid of Points ─▶ Run ─┬─ results.jsonl, a line a run
//	                                                └─ Result ─▶ Tell, WriteCSV, WriteJSON, Charts
//
// Every run that has ended is kept in a file, under a key made of the program's
// version and everything that decides the run. A sweep that was interrupted, or
// is asked for more, runs only what is not there. One run has one goroutine;
// runs share nothing.
//
// The package must never keep a run that was stopped, or let the order in which
// runs end reach a table: points have the order of the grid.
//
// The command `verbena sim sweep` calls it.
//
// Read axis.go (what is swept), point.go (the grid, keys), store.go (the file),
// run.go, metrics.go, knee.go, table.go and chart.go.
package sweep
