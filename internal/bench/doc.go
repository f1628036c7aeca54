// Package bench measures Verbena beside what a program would use otherwise, on
// the same machine at the same time: the processors of shared machines change
// their speed by themselves, so figures of two runs cannot be compared, but two
// slots of half a second next to each other can.
//
//	parent ── rounds, ratios, report
//	  ├── near child  sends, asks, measures        ┐ one pair for loopback,
//	  └── far child   receives, answers, is asked  ┘ one for a veth pair
//
// A [Spec] names one thing that is measured, a subject: an operation of ours,
// or a rival of it. Both children make their [end] of a subject, join them, and
// keep them; in each round the parent lets each subject of a group run for one
// slot, in an order that changes, and takes the ratios of that round. What is
// printed is the median of the ratios, with the quartiles, beside a goal and a
// floor. Two processes, because one process on few processors behaves
// differently.
//
// The package owns no measuring of single functions; Go's benchmarks do that.
// It is a program in the form of a library, so that tests can run it.
//
// Read spec.go (what is measured, what an end is), plan.go (groups, rows,
// goals), run.go (rounds), report.go; then the subjects: rdma.go, ping.go,
// incast.go for ours, tcp.go, iperf.go, udp.go, raw_linux.go for the rivals,
// local.go for what needs no network; child.go, pair.go and net_linux.go are
// the plumbing.
package bench
