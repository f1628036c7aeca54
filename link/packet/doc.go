// Package packet is the link that carries whole Ethernet frames through an
// AF_PACKET socket of Linux: RoCEv1 beside RoCEv2, true IP headers, VLAN tags,
// PAUSE and PFC frames. It needs the capability CAP_NET_RAW.
//
//	             ┌─ two raw sockets: one hears all that the filter lets pass, one sends
//	interface ───┤
//	             └─ the host's own stack: ARP, neighbour discovery, routes
//	                 └─ one UDP socket an address on port 4791, which drops all:
//	                    else the kernel answers each packet with ICMP
//
// Frames that the adapter gives begin with an Ethernet header whose two
// addresses are empty: the link knows the neighbours and writes them. Path asks
// the host's routing for the next hop and makes the host resolve it, which nobody
// waits for: the first frames are held until the host knows, and dropped if it
// gives up. What the host learns later about a neighbour reaches the link by
// itself. A source port of 0 stands for RoCEv1, which crosses no router: Path
// refuses what is behind one.
//
// Linux takes a tag off a frame before a socket sees it and tells it beside
// (PACKET_AUXDATA); Recv puts it back. A link is of one VLAN and hears no other.
// Neighbours are resolved on the interface as it is, without a tag.
//
// Packets to an address of this same link do not enter the kernel. An address
// of another device on this host is not reached, except over a loopback
// interface: frames that leave an interface do not come back in.
//
// A run of RoCEv2 leaves as one frame with one envelope and a note (PACKET_VNET_HDR)
// that says where to cut it, as UDP_SEGMENT does for a socket: the interface or, behind
// the queues, the kernel gives each IB packet the envelope again, with the next
// Identification and a UDP checksum, which the ICRC does not cover. Frames alone get
// one in the same way: a receiver that merges lets those without overtake. Only a run
// whose envelopes are like that goes this way; RoCEv1, and what middleware has changed,
// goes frame by frame. So does all once the kernel refuses (before 6.2 it does not know
// how): the event EventNoSegmentation and the counter TxSplit tell.
//
// Frames take the interface's queueing discipline (no PACKET_QDISC_BYPASS): DSCP and
// PFC classes, shaping and marking there hold, and a frame that skips it is not cut.
//
// Frames that the kernel merged, or did not segment yet (a sender with GSO at the
// other end of a veth pair, a tap), come with their segment size and are cut into
// the packets that were sent; the ICRC tells which Identifications they had. A kernel
// before 6.2 does not tell the size; they are counted as foreign there: turn that
// sender's UDP segmentation off. Nothing is merged for the link there. Checksums that
// were left to hardware become 0, which says that there is none.
//
// Multicast groups are joined through the host (IGMP and MLD, untagged) and at the
// raw socket. A NIC whose hardware answers PAUSE and PFC keeps these frames for
// itself.
//
// A packet is copied nowhere here, but for what was merged, what waits for a
// neighbour, and what comes back from a group.
//
// Everything but Wake, Wait and Close belongs to one goroutine at a time. One
// goroutine listens for neighbours, and sends what waited for them; Close waits
// for it.
//
// Read config.go, linux.go (opening), hop_linux.go (who is next),
// neighbour_linux.go, netlink_linux.go, group_linux.go, filter_linux.go,
// recv_linux.go, merged_linux.go, send_linux.go, cut_linux.go, wait_linux.go,
// sys_linux.go.
package packet
