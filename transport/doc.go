// Package transport owns the contract between one queue pair's protocol engine
// and the adapter around it: [Engine], what the engine is given ([Config],
// [SendQueue], [RecvQueue], [Window]) and what it hands out ([Head], [Out],
// [Sink]).
//
// An engine has no clock, lock, goroutine or I/O. It is told the time and the
// packets, and returns deadlines as values. Egress is pulled: the engine queues
// no packet; it is asked for the next one when it may leave.
//
//	application ── SendQueue/RecvQueue ──┐
//	                                     ▼
//	Receive(packet) ──────────────▶   Engine   ──▶ Next / Emit: the next packet
//	Advance(now), Deadline() ─────▶            ──▶ Sink: completions, events
//
// After any call of Modify, Post, Receive, Advance or Emit the caller looks
// again at Deadline and SendAt. The rings are the one place where another
// goroutine (the application's) writes concurrently; see queue.go.
//
// Read engine.go, then queue.go, srq.go, window.go, wait.go, drop.go; the engines are in
// transport/rc, transport/uc and transport/ud.
package transport
