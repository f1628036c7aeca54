package roce

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// Decode fills e from an Ethernet frame without its frame check sequence.
// e.IB borrows from it. The ICRC is not looked at: call Verify. If the answer
// is neither [ReasonNone] nor [ReasonBadChecksum], e is unspecified.
func (e *Envelope) Decode(frame []byte) Reason {
	*e = Envelope{}
	n, ok := e.Ether.Decode(frame)
	if !ok {
		return ReasonShort
	}
	switch e.Ether.Type {
	case ether.TypeIPv4:
		return e.decodeIPv4(frame[n:])
	case ether.TypeIPv6:
		return e.decodeIPv6(frame[n:], V2IPv6)
	case ether.TypeRoCEv1:
		return e.decodeIPv6(frame[n:], V1)
	default:
		return ReasonNotRoCE
	}
}

// DecodeIP is Decode for bytes that begin with the IP header, as captures
// without a link layer have them. RoCEv1 cannot be told there.
func (e *Envelope) DecodeIP(b []byte) Reason {
	*e = Envelope{}
	if len(b) == 0 {
		return ReasonShort
	}
	switch b[0] >> 4 {
	case 4:
		return e.decodeIPv4(b)
	case 6:
		return e.decodeIPv6(b, V2IPv6)
	}
	return ReasonNotRoCE
}

func (e *Envelope) decodeIPv4(b []byte) Reason {
	var h ip.IPv4
	n, r := h.Decode(b)
	if r != ip.ReasonNone && r != ip.ReasonBadChecksum {
		return fromIP(r)
	}
	if h.Proto != ip.ProtoUDP {
		return ReasonNotRoCE
	}
	if h.Fragment() {
		return ReasonFragment
	}
	if h.Evil {
		// The ICRC covers the reserved flag, an Envelope does not hold it, and it
		// must be 0 (RFC 791).
		return ReasonBadIP
	}
	if len(b) < int(h.TotalLen) {
		return ReasonShort
	}
	e.Kind = V2IPv4
	e.Src, e.Dst = gid4(h.Src), gid4(h.Dst)
	e.TOS, e.TTL, e.DF, e.Ident = h.TOS, h.TTL, h.DF, h.ID
	if got := e.decodeUDP(b[n:h.TotalLen]); got != ReasonNone {
		return got
	}
	if n != ip.IPv4Len {
		return ReasonIPOptions
	}
	return fromIP(r)
}

func (e *Envelope) decodeIPv6(b []byte, k Kind) Reason {
	var h ip.IPv6
	if r := h.Decode(b); r != ip.ReasonNone {
		return fromIP(r)
	}
	e.Kind = k
	e.Src, e.Dst = ib.GID(h.Src), ib.GID(h.Dst)
	e.TOS, e.TTL, e.FlowLabel = h.TOS, h.HopLimit, h.FlowLabel
	rest := b[ip.IPv6Len:]
	if k == V1 {
		if h.NextHeader != ip.ProtoBTH {
			return ReasonNotRoCE
		}
		if len(rest) < int(h.PayloadLen) {
			return ReasonShort
		}
		return e.setIB(rest[:h.PayloadLen])
	}
	// Deviation: extension headers are not walked. RNICs send none, and no ICRC
	// is defined over them.
	if h.NextHeader != ip.ProtoUDP {
		return ReasonNotRoCE
	}
	if len(rest) < int(h.PayloadLen) {
		return ReasonShort
	}
	return e.decodeUDP(rest[:h.PayloadLen])
}

// decodeUDP takes exactly the bytes that IP says.
func (e *Envelope) decodeUDP(b []byte) Reason {
	var h ip.UDP
	switch h.Decode(b) {
	case ip.ReasonNone:
	case ip.ReasonShort:
		return ReasonBadLength
	default:
		if h.DstPort != Port {
			return ReasonNotRoCE
		}
		return ReasonBadLength
	}
	if h.DstPort != Port {
		return ReasonNotRoCE
	}
	if int(h.Len) != len(b) {
		return ReasonBadLength
	}
	e.SrcPort, e.DstPort, e.UDPChecksum = h.SrcPort, h.DstPort, h.Checksum
	return e.setIB(b[ip.UDPLen:])
}

func (e *Envelope) setIB(b []byte) Reason {
	if len(b) < icrc.MinLen {
		return ReasonBadLength
	}
	e.IB = b[:len(b):len(b)]
	return ReasonNone
}

func fromIP(r ip.Reason) Reason {
	switch r {
	case ip.ReasonNone:
		return ReasonNone
	case ip.ReasonShort:
		return ReasonShort
	case ip.ReasonBadChecksum:
		return ReasonBadChecksum
	case ip.ReasonBadLength:
		return ReasonBadLength
	case ip.ReasonBadVersion, ip.ReasonBadHeaderLen:
	}
	return ReasonBadIP
}
