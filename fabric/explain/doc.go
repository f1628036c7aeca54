// Package explain says why a run went as it did. It owns the way from what a
// run counted (package result) to findings (Story) and from findings to
// sentences.
//
//	result.Run ──▶ index ──▶ stops ──▶ trees, victims, deadlocks, storms ──┐
//	                 │         │                                           ├─▶ Story ──▶ Sections, Text
//	                 └─ fluid ─┴──▶ rates, fairness, ECMP, hosts, loss ─────┘
//
// What it looks for, in the order in which an engineer asks:
//
//	verdict.go    did it finish, did the lossless class lose, what was the main cause
//	tree.go       who stopped whom, and at which root; cause.go: why the root was full,
//	              offer.go: by what senders could bring
//	victim.go     flows that were slowed by congestion that is not on their paths
//	deadlock.go   cycles of stops, what opened them; storms
//	rate.go       DCQCN: marks and CNPs; held.go: flows held below their share, burst.go: by what
//	fair.go       equal flows with unequal shares; portfair.go: did the switch share by port
//	ecmp.go       flows on equal links against balls in bins; polarisation
//	hostlimit.go  receive queues, engine, packet rate, slow receivers
//	loss.go       what was dropped where, what go-back-N paid; lossless.go: headroom;
//	              hop.go: wrong classes and PFC that is off on one hop; outage.go: links down
//	counter.go    the counters that an operator would see
//	advice.go     what to change first; order.go: how large Kmin may be
//	compare.go    what changed from one run to another
//
// The measure of "slow" is fluid.go: the completion time at max-min fair shares
// of the path (maxmin.go), worked out over time. A root is an egress that was full though
// nobody stopped it; stops.go says how one is told from an egress that merely
// passes a stop on. Every threshold is in threshold.go.
//
// The package must never look at the simulator or decide by anything but the
// run that it is given, write a file, or panic at a run that was read from one:
// numbers of nodes, ports and flows are checked before use. A finding has its
// numbers; sentences (tell*.go) have none that the finding has not. The same run
// gives the same text on every machine.
//
// It is called by the commands and by package report, which shows the sections.
//
// Read story.go, net.go, stops.go, tree.go, cause.go, fluid.go, victim.go, the
// others in any order; tell.go and page.go last.
package explain
