package roce

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// Port is the UDP destination port of RoCEv2.
const Port = 4791

// Kind is the form of an envelope.
type Kind uint8

// The kinds.
const (
	V2IPv4 Kind = 1 + iota
	V2IPv6
	V1
)

func (k Kind) String() string {
	switch k {
	case V2IPv4:
		return "RoCEv2/IPv4"
	case V2IPv6:
		return "RoCEv2/IPv6"
	case V1:
		return "RoCEv1"
	}
	return fmt.Sprintf("RoCE kind %d", uint8(k))
}

// GIDType returns the type of the GID table rows that such packets belong to.
func (k Kind) GIDType() ib.GIDType {
	if k == V1 {
		return ib.GIDTypeRoCEv1
	}
	return ib.GIDTypeRoCEv2
}

// headerLen returns the bytes between the Ethernet header and the BTH.
func (k Kind) headerLen() int {
	switch k {
	case V2IPv4:
		return ip.IPv4Len + ip.UDPLen
	case V2IPv6:
		return ip.IPv6Len + ip.UDPLen
	case V1:
		return ip.IPv6Len
	}
	return 0
}

// Envelope is everything of a frame up to the BTH. Fields that its kind has not
// are 0 after Decode and ignored by Encode.
type Envelope struct {
	Ether ether.Header // Type is set by Encode; zero after DecodeIP
	Kind  Kind

	// Src and Dst are the IP addresses, IPv4 in mapped form, or the GIDs of a
	// GRH.
	Src, Dst ib.GID

	TOS       ip.TOS // traffic class of IPv6 and GRH
	TTL       uint8  // hop limit of IPv6 and GRH
	DF        bool   // IPv4: don't fragment
	Ident     uint16 // IPv4: Identification
	FlowLabel uint32 // IPv6 and GRH: 20 bits

	SrcPort, DstPort uint16 // RoCEv2; Encode writes DstPort as it is, Port on the wire
	UDPChecksum      uint16 // RoCEv2: as it stands in the frame; 0 is none

	// IB is the packet from BTH to ICRC, borrowed from what was decoded. Encode
	// does not look at it.
	IB []byte
}

// Len returns the bytes of the envelope: up to the BTH.
func (e *Envelope) Len() int { return e.Ether.Len() + e.Kind.headerLen() }

// Flow returns what the ICRC of packets in this envelope has in common.
func (e *Envelope) Flow() icrc.Flow {
	switch e.Kind {
	case V2IPv4:
		return icrc.V4([4]byte(e.Src[12:]), [4]byte(e.Dst[12:]), e.SrcPort, e.DstPort)
	case V2IPv6:
		return icrc.V6(e.Src, e.Dst, e.SrcPort, e.DstPort)
	case V1:
	}
	return icrc.GRH(e.Src, e.Dst)
}

// Verify reports whether the ICRC at the end of e.IB is right.
func (e *Envelope) Verify() bool {
	f := e.Flow()
	return f.Verify(e.Ident, e.DF, e.IB)
}

// gid4 returns the mapped form of an IPv4 address.
func gid4(a [4]byte) (g ib.GID) {
	g[10], g[11] = 0xFF, 0xFF
	copy(g[12:], a[:])
	return g
}
