// Package play plays scenarios for people: it finds what a name on a command
// line stands for, runs it with a progress bar until it ends or somebody has
// enough, and tells in two screens what became of it.
//
//	name ─▶ Find ─▶ Source.Scenario ─▶ Run ─▶ Outcome ─┬─ Tell       two screens
//	                                                   ├─ Table      beside other runs
//	                                                   └─ WriteDir …  files
//
// It is where the simulator, which does no I/O and asks no clock, meets files,
// terminals and time. It must never decide anything that a run depends on: the
// same scenario gives the same text and files, however long it took. It draws
// no conclusions; package explain does.
//
// The commands `verbena sim …`, the demo and package sweep call it.
//
// Read source.go (names), scenario.go (overrides, tables of a switch), run.go,
// bar.go and fraction.go (progress), expect.go, tell.go with flowtable.go,
// porttable.go and spark.go, table.go (runs side by side), class.go (headroom
// by kind of link), write.go.
package play
