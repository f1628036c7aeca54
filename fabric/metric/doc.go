// Package metric owns the names of the numbers that a run is judged by, and how
// each is read off a result: expectations of scenarios, columns of sweeps and
// comparisons all use them.
//
//	flow.NAME.WHAT[.OF]      WHAT of the flows of a workload: goodput, fct,
//	                         slowdown, rate (the last R_C), min_rate, marks, cnps,
//	                         cnps_handled, packets, retransmitted, naks, timeouts,
//	                         delivered, bytes; OF them: min, p1, p5, p10, p25, p50, p90,
//	                         p95, p99, max, mean, sum. Without OF: the mean of goodput,
//	                         rate and min_rate, the maximum of fct and slowdown, the
//	                         sum of the others.
//	flow.NAME.N              WHAT without OF: count, finished, failed, jain (of
//	                         goodput), makespan (first start to last finish)
//	queue.NODE.PORT.pQ.OF    bytes at an egress: max, mean; PORT and NODE may be *
//	port.NODE.PORT.pQ.WHAT   tx_bytes, rx_bytes, drops, marks, pause_tx, pause_rx,
//	                         paused (time), headroom, ingress, share (time paused)
//	port.NODE.PORT.WHAT      utilisation, rate
//	buffer.NODE.OF           shared, headroom: peaks
//	nic.NODE.COUNTER         a counter of a host by its name
//	pauses, resumes, marks, cnps, drops, drops.lossless, drops.REASON, retransmitted,
//	deadlocks, storms, breaches, headroom.violated (bytes), headroom.used (share),
//	hops, events, end, finished, failed
//
// NAME may be * for all flows. Values are in bit/s, picoseconds, bytes, or plain
// numbers. Nothing here is approximate but the mean of quantities over flows.
//
// Read metric.go, flow.go, port.go.
package metric
