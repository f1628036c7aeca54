// Package rnic owns the adapter: a software RNIC with one port, between the
// protocol engines of its queue pairs (package transport) and a link (package
// link), which it never sees.
//
// It has no clock, lock, goroutine or I/O. It is told the time and bytes; it
// fills buffers that it is lent, and returns deadlines as values. Package
// driver runs it in real time, a simulator in virtual time.
//
// # Out: Egress pulls a run
//
//  1. An application posts: Post validates a request, copies it into a slot of
//     the send queue, publishes it and rings the doorbell (post.go, doorbell.go).
//  2. Advance or Egress answers the doorbell: the engine looks at its ring, and
//     a queue pair that may send joins the ready list of its priority (sched.go).
//     One whose rate lets nothing leave yet has a timer instead (pace.go).
//  3. Egress sends the CNPs that are due (notify.go), unless their priority is
//     paused. Then it takes the queue pair whose turn it is, among priorities that are
//     not paused, and fills one run from it: equal packets of one destination,
//     for one QPN (egress.go). A queue pair that waits for room in its
//     destination's window is put away until there is some.
//  4. For each packet the engine gives header values and references to the
//     payload. encode writes the headers and copies the payload into the run,
//     with the ICRC in the same pass: the sending side's ONE COPY.
//  5. The pacer and DCQCN's byte counter account for the run, but for its ACKs;
//     the queue pair goes to the end of its list.
//
// # In: Ingress takes what has arrived
//
//  1. A merged buffer is cut into packets; each is decoded (ingress.go).
//  2. The destination QPN finds the queue pair; a connected one listens to its
//     peer's address alone.
//  3. The ICRC is verified. The IPv4 Identification that a socket hides is
//     guessed from the sender's habit, or solved (source.go). Until here nothing
//     has been believed and no byte of memory changed.
//  4. A marked packet may make a CNP due (notify.go); a CNP lowers the rate of its
//     queue pair (congestion.go) and goes no further.
//  5. The engine gets the packet; it copies the payload into registered memory:
//     the receiving side's ONE COPY.
//  6. What it reports comes back through sink.go: completions into rings,
//     which an application polls (cq.go, ringcq.go), events (event.go).
//
// A packet that ends on the way is counted under exactly one reason
// (counters.go). It is never an error.
//
// # Who may call what
//
// Methods marked Owner belong to one goroutine at a time: package driver holds
// a lock, a simulator has one thread. Methods marked Poster (of one queue pair)
// and Consumer (of one completion queue) belong to one goroutine at a time
// each, at the same time as the owner. These meet the owner only in rings, in
// the doorbell and in a few single words, all of which are in transport/queue.go,
// ringcq.go and doorbell.go.
//
// Control calls (adapter.go, qp.go, qpstate.go, av.go, cq.go, srq.go, window.go) belong to the
// owner. A refused one changes nothing. Objects count who uses them; a busy one
// is not destroyed.
//
// # Phantom memory
//
// The payload of phantom regions is sent as zeros, and what is received into
// one is verified and lost: headers, timers and completions are as with bytes.
// A phantom link (WireCaps.Phantom, phantom.go), that of a simulator, carries
// the length of such a payload instead, and no ICRC. What arrives so for memory
// with bytes leaves it as it is.
//
// Read adapter.go, qp.go, srq.go, window.go, mcast.go, post.go, sched.go, egress.go, ingress.go, source.go,
// then pace.go, congestion.go, notify.go, phantom.go, and as needed why.go,
// cq.go, ringcq.go, doorbell.go, qpstate.go, av.go, timer.go, qptable.go,
// counters.go, countertable.go, event.go, limits.go, and for links that carry whole Ethernet
// frames encap.go, encap_in.go, encap_pause.go.
package rnic
