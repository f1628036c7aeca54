// Package rdmacm connects queue pairs the way that RDMA programs expect: by IP
// address and port, through InfiniBand's connection management (IBA vol.1
// chapter 12, annex A11), with any peer that speaks it: Linux' rdma_cm, real
// RNICs, another program of this package.
//
//	Open(device) ── Manager ─┬─ Resolve ── Route ─┬─ Dial ───── Conn      port space TCP: RC and UC
//	                         │                    ├─ Lookup ─── Datagram  port space UDP: UD
//	                         │                    └─ Join ───── Group     of multicast
//	                         └─ Listen ─── Listener ── Next ── Request ─┬─ Accept ── Conn
//	                                                                    ├─ AcceptUD
//	                                                                    └─ Reject
//
// A [Manager] owns QP1 of one device and one goroutine. It needs no daemon, no
// kernel module and no privileges. Ports are the manager's: two devices each
// have their own, and they are not the host's TCP and UDP ports.
//
// # Queue pairs
//
// Dial and Accept take a queue pair in Reset or Init and bring it to RTS. Post
// receives before, in Init ([verbs.QP.ToInit]): the first message may come with
// the connection. It establishes the connection, too, where the peer's RTU is lost
// (IBA vol.1 12.9.7.2): the event COMM_EST of such a queue pair is the manager's
// and not to be had from the device. When a connection ends, by either end, its queue pair goes to
// Error, so that what is posted is flushed. It stays the caller's.
//
// # Errors and events
//
// A refused request is a [*RejectedError] with the peer's reason and private
// data; it matches [ErrRejected], and [ErrRefused] where nobody listens. What
// happens to a connection later comes as an [Event] from [Conn.NextEvent];
// [Conn.Done] is closed with it.
//
// The package must never touch the data path, or a queue pair that no call has
// given it.
//
// Read manager.go (the goroutine, the lock), route.go, option.go, dial.go,
// listen.go, conn.go, qp.go (what CM parameters mean to a queue pair),
// datagram.go, group.go, event.go, inbox.go, error.go, inspect.go.
package rdmacm
