// Package sim owns virtual time: the clock in picoseconds, the one queue of
// events, seeded streams of random numbers, the digest by which two runs are
// compared, and the packet that travels between the parts of a fabric.
//
// There is one thread. A handler is called with the instant of its event and
// may schedule others, never earlier than that instant. Events of one instant
// are handled in the order in which they were scheduled, so a run depends on
// its seed and on nothing else.
//
// It must never read a wall clock, start a goroutine, or allocate for an event
// once the queue has grown to its working size.
//
// Read time.go, rate.go, sim.go, queue.go, rand.go, packet.go.
package sim
