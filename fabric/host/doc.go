// Package host owns what hangs on the edge of a simulated fabric: NICs, each a
// port around an adapter of package rnic, and the connections between them.
//
//	flows ─▶ Conn ─▶ rnic.Adapter ─▶ packet rate, pacing ─▶ port ─▶ …
//	            rnic.Adapter ◀─ RX queues (RSS, rate) ◀─ PCIe ◀─ receive buffer ◀─ port
//	                                                       └─ XOFF/XON to the neighbour
//
// The protocol, its timers and DCQCN are rnic's and transport's: nothing of them
// is here. Payload is phantom. A NIC adds what limits real ones: packets a
// second, bytes a second of one queue pair, a receive buffer that empties at the
// rate of PCIe, and cores that each serve one queue.
//
// Read config.go, nic.go, tx.go, rx.go, conn.go, stats.go.
package host
