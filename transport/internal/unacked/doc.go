// Package unacked owns what the two unreliable services, UC and UD, have in
// common: the life of the work requests of a queue pair whose packets nobody
// acknowledges, and the states that go with it (IBA vol.1 10.3.1).
//
//	        local error             modify to RTS
//	RTS ───────────────────▶ SQE ───────────────────▶ RTS
//	 │ what was posted is flushed, the receive queue goes on
//	 ▼
//	Error: both queues are flushed
//
// A send work request completes when its last packet has left. That packet's
// payload is referred to, not copied, until the next call of the engine, and
// with the completion the program may change it: so the request completes with
// the next call ([Queues.Settle]), and [Queues.Deadline] asks for one.
//
// Packets are the engines' business. It must never look into one.
package unacked
