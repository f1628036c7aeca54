// Package ud owns the protocol of unreliable datagrams (IBA vol.1 9.8.3): SEND,
// with or without immediate data, one packet a message, each to a destination
// of its own. Nothing is acknowledged or sent again.
//
//	posted ─▶ requester: one packet, DETH ─▶ responder: Q_Key, receive, room ─▶ GRH + payload
//	            completes when                 drops in silence what it
//	            the packet has left            cannot use
//
// The first 40 bytes of a receive buffer belong to the GRH, or to what RoCEv2
// has in its place; the payload begins behind them, and they count in the
// length that the completion reports.
//
// What cannot be used changes nothing: the receive stays at the head of the
// queue for the next packet, and the queue pair as it is. The one exception is
// a posted receive whose memory cannot be written: that is the program's own
// error, and goes to Error.
//
// Which path an address handle stands for is the adapter's business: the engine
// hands the handle on in [transport.Head]. It must never set AckReq or keep a
// packet.
//
// Read engine.go, requester.go, responder.go; states and completions are in
// transport/internal/unacked.
package ud
