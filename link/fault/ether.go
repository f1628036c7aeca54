package fault

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// On a link of whole Ethernet frames the rules see the packets in them, and no
// rule sees what has none: MAC control frames, and what is no RoCE. Corrupt keeps
// to the bytes from BTH to ICRC, and MarkCE writes ECN into the header.

// packet makes p see the packet in b, as the link carries it; false if there is
// none.
func (l *Link) packet(p *passer, b []byte) bool {
	p.b = b
	if !l.ether {
		return true
	}
	if l.env.Decode(b) != roce.ReasonNone {
		return false
	}
	p.b, p.tos = l.env.IB, uint8(l.env.TOS)
	return true
}

// spoil does to the bytes of a packet what a verdict says.
func (l *Link) spoil(b []byte, v *verdict) {
	if l.ether {
		if l.env.Decode(b) != roce.ReasonNone {
			return
		}
		if v.ce {
			markCE(b[l.env.Ether.Len():], l.env.Kind)
		}
		b = l.env.IB
	}
	if v.corrupt {
		flipBit(b, v.flip)
	}
}

// markCE sets ECN in an IP header or GRH. The ICRC does not cover it (IBA vol.1
// annex A17.3.3).
func markCE(h []byte, k roce.Kind) {
	if k != roce.V2IPv4 {
		h[1] |= ecnCE << 4
		return
	}
	h[1] |= ecnCE
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ip.Checksum(h[:ip.IPv4Len]))
}
