// Package benchsim measures the simulator: packet-hops and events a second on
// one core, memory, and whether every flow has finished and every rule held.
//
//	parent ── cases in turn, best of the rounds, goals, report
//	  └── child  one run of one case in a process of its own, so that processor
//	             time and peak memory are that case's alone
//
// The unit is the data packet-hop: a packet with user data that begins to cross
// a link. Acknowledgements cross links, too, and cost as much, but do not count;
// how many there are for a data packet is stated beside the figures. A rate is
// hops over the processor time (user and system) of the whole process, set-up and
// result included: the machine may be shared, processor time says what a core
// that does nothing else needs.
//
// A case is a scenario file of package fabric/scenario in cases/: "verbena sim
// run" takes it, too. The package sets nothing of the garbage collector and runs
// on one processor (GOMAXPROCS 1).
//
// The package owns no benchmarks of single functions, and decides nothing about
// the simulator. test/benchsim is its program, "make bench-sim" runs it,
// docs/perf.md has its figures.
//
// Read cases.go (what is run), measure.go (one run), child.go (in its process),
// row.go (goals, and what others do), run.go (rounds), report.go.
package benchsim
