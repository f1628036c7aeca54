// Package uc owns the protocol of an unreliable connection (IBA vol.1 9.8.2):
// SEND and RDMA WRITE, each with or without immediate data, as messages of up
// to 2^31 bytes that arrive whole or not at all. Nothing is acknowledged or sent again, and
// the two ends fail apart from each other.
//
//	posted ─▶ requester: cut at the path MTU ─▶ packets ─▶ responder ─▶ receive, or memory
//	            completes when the last                     drops in silence what it cannot use
//	            packet has left
//
// The responder knows one PSN, the one after the last packet that it looked at:
//
//	PSN is            the packet
//	behind it         is dropped: what was seen does not come again
//	equal             continues the message, or starts one
//	ahead             ends the message under way, which has lost a packet;
//	                  starts one if it is a FIRST or ONLY, else is dropped
//	far behind        starts a message if it is a FIRST or ONLY: the peer has
//	                  begun anew
//
// A message that is broken, by a gap or because a rule forbids it, takes its
// receive with it only when it is whole: the receive stays at the head of the
// queue for the next message. What a broken RDMA WRITE has written stays written.
// The queue pair stays as it is, except when the memory of a posted receive
// cannot be written: that is the program's own error, and goes to Error.
//
// Binds and invalidations of memory windows are executed when the send queue
// comes to them, between packets of other messages, and complete at once.
//
// It must never set AckReq, read what the path carries back, or keep a packet.
//
// Read engine.go, requester.go, responder.go; states and completions are in
// transport/internal/unacked.
package uc
