// Package theory owns the published formulas: what a simulated fabric must
// show, worked out on paper. A test takes the expected number from here and
// never from a run of our own.
//
// It must never look at the simulator, and the simulator must never ask it what
// to do: it decides no event, so it may use floating point. It imports the
// standard library only. Tests, the library of scenarios, the configuration
// check (headroom, ECN below PFC) and the explanations call it.
//
//	time      fct.go      serialisation, delivery of a message over a path, HPCC's standalone time
//	          incast.go   N senders into one port: last byte, peak queue; bursts
//	          pause.go    quanta
//	buffers   headroom.go 802.1Qbb's terms, the ideal model, other simulators' rules
//	          buffer.go   static and dynamic thresholds, ECN before PFC
//	rates     fairness.go max-min, port-fair, ETS, Jain's index
//	          ecmp.go     balls in bins
//	          queueing.go M/D/1, M/M/1, M/G/1, N*D/D/1; batch means
//	          stats.go    Student's t and chi-square, which the two above need
//	DCQCN     dcqcn.go    parameters, marking, the exact fixed point, the Taylor form
//	          fluid.go    the delay differential equation, integrated
//	          stability.go phase margin of the linearised loop
//	          converge.go bound on the time to fairness
//	          renewal.go  the fixed point cut by cut: gates and clamps that the fluid does not know
//	          decrease.go cuts, recovery step by step, decay of alpha
//
// Units: an exact time is an int64 of picoseconds, an exact rate an int64 of
// bits a second, both as in fabric/sim; results of real analysis are float64 in
// seconds, bits a second and bytes. KB is 1,000 bytes. Nothing here keeps
// state; slices that are passed in are borrowed, slices that come back are
// given.
//
// Sources and the places where a published figure disagrees with its own
// formula are listed in docs/theory.md.
package theory
