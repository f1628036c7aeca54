// Package udp is the unprivileged RoCEv2 link: UDP payloads through the
// operating system's sockets, for one local address or a few.
//
// On Linux a run leaves in one send that the kernel cuts (UDP_SEGMENT), and
// what came in one piece is received in one piece (UDP_GRO): that is five times
// faster than a call a packet. The sockets are never connected and forbid
// fragmentation, so that the kernel gives segment i the IPv4 Identification i
// and the adapter can compute every ICRC. Where the kernel will not cut, the
// segments go one a call and their ICRCs are corrected (link/internal/ident).
//
//	            ┌─ one socket an address, port 4791: receives
//	sockets ────┤
//	            └─ up to 16 an address, ports 0xC000–0xFFFF: send, never receive
//
// Packets to an address of this same link do not enter the kernel: the run's
// buffer moves into a bounded queue and comes back from Recv, ICRC and all.
//
// Payload is copied by the kernel only: once from the run, once into the
// buffer that Recv lends.
//
// Elsewhere, and when Config.Portable asks, the same link works over
// net.UDPConn, a packet a call, and cannot say which Identification a packet
// has.
//
// Read config.go, then linux.go (opening), recv_linux.go, send_linux.go,
// package link/internal/poll; holder_linux.go says who has the port; portable.go is apart.
package udp
