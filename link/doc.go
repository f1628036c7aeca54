// Package link defines how frames enter and leave a process: the interface
// [Link] and its capabilities. Implementations are the packages below it:
//
//	link/udp    unprivileged RoCEv2 over the system's UDP
//	link/packet whole Ethernet frames through AF_PACKET: RoCEv1, tags, PFC
//	link/pair   two ends in memory, for tests
//	link/fault  middleware: seeded loss, duplication, reordering, delay, …
//	link/pcap   middleware: writes what passes into a pcapng file
//
// and link/linktest holds the suite that every one of them passes. A link
// knows nothing of queue pairs; it moves runs ([frame.Run]) out and possibly
// merged buffers ([frame.Rx]) in. Its caller is package driver, which owns the
// order of calls:
//
//	Recv → Release, Reserve → Commit    as long as anything moves
//	Wait                                when nothing does
package link
