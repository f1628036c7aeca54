package frame

import "net/netip"

// Encap says which part of a frame a link hands up and down, and who writes
// the rest.
type Encap uint8

const (
	// UDPPayload: frames run from the BTH to the ICRC; the operating system
	// writes Ethernet, IP and UDP. Segment i of a run leaves with IPv4
	// Identification i and DF set.
	UDPPayload Encap = iota
	// Ethernet: frames are whole, from the destination MAC to the ICRC. The
	// adapter leaves both MACs empty but for the destination of MAC control frames
	// (PAUSE, PFC); the link, which knows its neighbours, writes them.
	Ethernet
)

// MaxSegments is the most segments one run may have: the limit of UDP_SEGMENT
// on kernels before 6.9.
const MaxSegments = 64

// Rx is what a link received in one piece: one packet, or several of one flow
// that the kernel merged. It is lent to the adapter for the time of one call.
type Rx struct {
	Data []byte // lent
	// Seg is the length of every packet in Data but the last, which may be
	// shorter. 0 means that Data is one packet.
	Seg int

	// The rest is valid for UDPPayload only.
	Src     netip.Addr // unmapped
	Dst     netip.Addr // unmapped; invalid where the link cannot tell
	SrcPort uint16
	TOS     uint8 // IPv4 TOS or IPv6 traffic class: DSCP and ECN
	TTL     uint8 // 0 where the link cannot tell

	// Phantom is the number of payload bytes that follow Data and do not exist.
	// Data of a phantom link ends before the ICRC; it is one packet.
	Phantom int
	// Bad says that the ICRC would be wrong. Phantom links only.
	Bad bool
}

// Run is the unit of egress: packets of one destination, source port and
// traffic class, contiguous in one buffer, equally long but for the last, which
// may be shorter. One run is one send call.
type Run struct {
	// Buf belongs to the link and is lent to the adapter between Reserve and
	// Commit. The adapter fills it from the start; its length is the room.
	Buf []byte
	N   int // bytes filled
	Seg int // length of each segment but the last
	// Segs is the number of segments.
	Segs int

	// Src and Dst are the addresses that packets leave from and go to; invalid for
	// a MAC control frame.
	Src netip.Addr
	Dst netip.Addr
	// The rest is for UDPPayload only.
	SrcPort uint16
	TOS     uint8
	TTL     uint8

	// Prio is the priority of the packets (802.1Q), 0–7.
	Prio uint8
	// QPN is the number of the queue pair that sends.
	QPN uint32
	// WireLen is the number of bytes that the packets have from BTH to ICRC, with
	// phantom payload and its pad, and with the ICRC that phantom links leave
	// out.
	WireLen int

	// The rest is for phantom links only. Their runs are one packet; Buf holds
	// its headers, and the payload with its pad where that has bytes. There is
	// no ICRC.

	// Phantom is the number of payload bytes that follow the N bytes of Buf and
	// do not exist.
	Phantom int
	Ack     bool // an ACK or NAK alone
	CNP     bool // a congestion notification packet
}

// Reset empties the run but keeps its buffer.
func (r *Run) Reset() { *r = Run{Buf: r.Buf} }
