// Package port owns one end of a link: its transmitter, the way of a packet to
// the other end, and flow control in both of its halves.
//
//	node ── Pull ──▶ transmitter ──▶ air (rate, delay, errors) ──▶ peer ── Arrive ──▶ node
//	          ▲            │
//	          └─ stopped ── FlowControl ◀── PFC and PAUSE frames of the neighbour
//
// A port queues no data: when it is free it asks its node for the next packet of
// a class that the neighbour lets through. Control frames go ahead of data, but
// never interrupt a frame that is being sent. A link's flow control is an
// interface: priority flow control, global PAUSE and none are here; links with
// credits give their own.
//
// Exact by construction: a frame of n bytes takes (n + preamble and gap) × 8 / rate,
// in picoseconds; the last bit arrives one delay later.
//
// The port decides nothing about what to send, when to stop a neighbour, or what
// becomes of a packet that arrived: that is the node's.
//
// Read port.go, air.go, flowcontrol.go, pfc.go, stopper.go, stats.go.
package port
