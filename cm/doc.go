// Package cm owns the connection management of InfiniBand (IBA vol.1 chapter
// 12) as a machine: connections by REQ, REP, RTU, their end by DREQ and DREP,
// the service of datagrams by SIDR REQ and REP; timeouts, retries, duplicates,
// what a slow, a dead or a reborn peer does.
//
// It has no clock, goroutine, lock or I/O. It is told the time, the management
// datagrams that have arrived, and what its user wants; it returns datagrams
// (Emit), events (Event) and the instant at which it wants to be called again
// (Deadline). After any call look at these three.
//
//	active:   REQ sent ─REP─▶ REP received ─Ready─▶ established ─Disconnect─▶ DREQ sent ─DREP─▶ timewait ─▶ gone
//	passive:  REQ received ─Accept─▶ REP sent ─RTU─▶ established ─DREQ─▶ DREQ received ─Disconnect─▶ timewait ─▶ gone
//
// Queue pairs are the user's: at EventReply it takes its own to RTS and calls
// Ready; before Accept it takes its own to RTR, and to RTS then or at
// EventReady. The machine never looks at addresses, private data or service
// IDs otherwise than to compare them.
//
// What peers can make it hold is bounded: requests that wait for an answer, by
// listener; connections, by Config.MaxConns. It never believes a message about
// a connection that comes from another address than the connection's.
//
// Package rdmacm is its user; a simulator can be.
//
// Read machine.go, event.go, conn.go, then active.go, passive.go, end.go,
// sidr.go; timer.go is the heap of deadlines.
package cm
