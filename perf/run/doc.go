// Package run holds the measuring loops: bandwidth in one or both directions
// and latency of each operation, over verbs' queue pairs that are ready to
// send.
//
// The loops allocate before they start and nothing while they run. They poll
// the completion queue, which drives the device, and so do the loops that wait
// for memory to change; with events they sleep on a completion channel. Each
// runs on the goroutine of its caller, which should be locked to its thread.
// They are told the time by a [clock.Clock] and never read another.
//
//	lane.go       a queue pair with its memory; work requests of the n-th message
//	bandwidth.go  one loop for sending, receiving, and both
//	latency.go    WRITE (polls memory), SEND (receives), READ and ATOMIC (completions)
//	phase.go      tests over a time: warm up, sample, cool down
package run
