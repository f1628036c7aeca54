// Package rc is the protocol machine of a reliable connection: requester and
// responder of one queue pair (IBA vol.1 9.7), as a [transport.Engine].
//
// It owns everything between a posted work request and the packets of its
// message, in both directions: segmentation, PSNs, acknowledgement, go-back-N,
// RNR back-off, end-to-end credits, the saved results that answer duplicates,
// and the completions and events that come of it.
//
// It must never read a clock, block, allocate per packet, trust a field of a
// packet, or touch memory but through package mem. It knows no frame, address
// or socket: the adapter (package rnic) does.
//
//	 SendQueue                                              RecvQueue
//	     │ Post                                                 │
//	┌────▼─────── requester ───────┐       ┌──────── responder ─▼────────┐
//	│ requester.go  what may go    │       │ responder.go  PSN, opcode,   │
//	│ segment.go    WQE → packets  │       │   rights, resources, length, │
//	│ ack.go        what came back │       │   memory, execute, complete  │
//	│ retry.go      timers, go back│       │ read.go atomic.go replay.go  │
//	└────┬────────────────▲────────┘       └────▲────────────────┬───────┘
//	     │ requests       │ ACK, NAK, responses │ requests       │ answers
//	     ▼                │                     │                ▼
//	   Next/Emit ─────────┴────── Receive ──────┴────────── Next/Emit
//
// # Requester
//
// Three PSNs say everything about what is under way:
//
//	una ≤ psn ≤ next
//
// una is the oldest PSN not acknowledged, psn the next one to send, next one
// after the highest ever sent. To go back is psn = una. What lies between psn
// and next was sent before and may still be acknowledged. The WQE at the head
// of the send queue holds una: everything before it is retired. A READ or
// ATOMIC is acknowledged by its response alone, so an acknowledgement of a
// later PSN while the head is one of these is an implied NAK.
//
// Binds and invalidations of memory windows are requests without a PSN: see
// local.go.
//
// When a [transport.Window] limits what may be under way, the bytes of READ
// responses count in it, and a READ is asked for in several requests, each of
// the same number of PSNs: a retry never asks across the border of two, because
// the responder remembers requests.
//
// After a timeout, and until there is progress, as many packets go at a time under
// a window as there were timeouts in a row (probing): see [Engine.Advance].
//
// # Responder
//
// Answers leave in the order of their PSNs: READ responses and ATOMIC results
// that are due, then one NAK or ACK for everything up to the expected PSN. READ
// data is never copied aside: a duplicate request reads memory again. The last
// MaxDestRdAtomic READ and ATOMIC requests are remembered; the result of an
// ATOMIC with them.
//
// # States
//
//	Reset   both rings emptied without completions, nothing is received
//	Init    receives may be posted, nothing is received
//	RTR     the responder works; the first packet raises COMM_EST
//	RTS     both work
//	SQD     no new message starts; what has started is finished and retried
//	Error   both rings flushed in order, later posts flushed at once; answers
//	        that were due before a responder's own error still leave
//
// Read engine.go, requester.go, segment.go, local.go, ack.go, retry.go, then
// responder.go, read.go, atomic.go, empty.go, replay.go, and last flush.go and why.go.
package rc
