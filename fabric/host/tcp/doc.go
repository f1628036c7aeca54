// Package tcp owns the lossy class of a simulated host: a transport of the kind
// of TCP that shares links with RDMA and, unlike it, lives with loss.
//
//	flows ─▶ Conn.Send ─▶ window ─▶ Stack.Pull ─▶ host.NIC ─▶ …
//	            ▲                                               │
//	            └─ ACKs ◀─ Stack.Arrive ◀───────────────────────┘
//
// A [Stack] is what one NIC has of it, a [Conn] a connection with both of its
// ends, made without packets: data moves from A to B, acknowledgements back.
// Two kinds of congestion control exist:
//
//   - Reno: RFC 5681 with NewReno's recovery (RFC 6582), limited transmit (RFC
//     3042) and no SACK. It is not ECN-capable.
//   - DCTCP: RFC 8257 on top of that. Every packet is ECT(0), acknowledgements
//     too (as §3.5 wants even of SYNs), so that a switch marks and does not drop.
//
// The receiver acknowledges every segment unless Config.AckEvery says otherwise,
// on the priority and code point of the data. Retransmission timeouts are RFC
// 6298's. The round trip is measured by one segment at a time, since there is no
// timestamp option.
//
// Like the engines of RDMA it is told the time, and segments are pulled: a stack
// holds none. It must never allocate for a segment, decide anything by a float,
// or look at what only explanations read (Packet.Flow).
//
// Who calls it: package fabric makes stacks and connections; host.NIC pulls and
// delivers.
//
// Read config.go, stack.go, conn.go, sender.go, recovery.go, window.go, rtt.go,
// receiver.go.
package tcp
