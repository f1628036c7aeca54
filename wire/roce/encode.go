package roce

import (
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/crc"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// EncodeHeaders writes the envelope of a packet of n bytes, BTH to ICRC
// inclusive, to dst and returns its length, e.Len(). It writes nothing and
// returns 0 if dst is too short, n does not fit the 16-bit lengths or e.Kind is
// none. dst is borrowed.
func (e *Envelope) EncodeHeaders(dst []byte, n int) int {
	total := e.Len()
	if e.Kind.headerLen() == 0 || len(dst) < total || n < 0 || n > 0xFFFF-ip.IPv4Len-ip.UDPLen {
		return 0
	}
	eth := e.Ether
	switch e.Kind {
	case V2IPv4:
		eth.Type = ether.TypeIPv4
	case V2IPv6:
		eth.Type = ether.TypeIPv6
	case V1:
		eth.Type = ether.TypeRoCEv1
	}
	b := dst[eth.Encode(dst):]
	if e.Kind == V2IPv4 {
		h := ip.IPv4{
			TOS: e.TOS, TotalLen: uint16(ip.IPv4Len + ip.UDPLen + n), ID: e.Ident, DF: e.DF,
			TTL: e.TTL, Proto: ip.ProtoUDP, Src: [4]byte(e.Src[12:]), Dst: [4]byte(e.Dst[12:]),
		}
		b = b[h.Encode(b):]
	} else {
		h := ip.IPv6{
			TOS: e.TOS, FlowLabel: e.FlowLabel, PayloadLen: uint16(ip.UDPLen + n), NextHeader: ip.ProtoUDP,
			HopLimit: e.TTL, Src: e.Src, Dst: e.Dst,
		}
		if e.Kind == V1 {
			h.PayloadLen, h.NextHeader = uint16(n), ip.ProtoBTH
		}
		b = b[h.Encode(b):]
	}
	if e.Kind != V1 {
		h := ip.UDP{SrcPort: e.SrcPort, DstPort: e.DstPort, Len: uint16(ip.UDPLen + n), Checksum: e.UDPChecksum}
		h.Encode(b)
	}
	return total
}

// FrameLen returns the length of the frame that Encode writes for p.
func (e *Envelope) FrameLen(p *wire.Packet) int { return e.Len() + p.WireLen(len(p.Payload)) }

// Encode writes the frame of p in this envelope to dst: envelope, headers,
// payload with pad, ICRC. The pad count is that of the payload, whatever p.Pad
// says. It returns the length, or 0 if dst is too short for FrameLen, the
// opcode or e.Kind is unknown, or there is a payload where the opcode has none.
// dst and the payload are borrowed and must not overlap.
//
// The UDP checksum is written as it is; call [Envelope.FillUDPChecksum] where
// 0, which RNICs send, is not wanted.
func (e *Envelope) Encode(dst []byte, p *wire.Packet) int {
	info := p.Op.Info()
	if info == nil || !info.Payload && len(p.Payload) != 0 {
		return 0
	}
	n := p.WireLen(len(p.Payload))
	if len(dst) < e.Len()+n {
		return 0
	}
	at := e.EncodeHeaders(dst, n)
	if at == 0 {
		return 0
	}
	b := dst[at : at+n]
	q := *p
	q.Pad = wire.PadFor(len(p.Payload))
	h := q.EncodeHeaders(b)
	f := e.Flow()
	c := f.Header(e.Ident, e.DF, ip.UDPLen+n, b[:h])
	c = crc.Copy(b[h:], p.Payload, c)
	pad := b[h+len(p.Payload) : n-wire.ICRCLen]
	clear(pad)
	icrc.Put(b[n-wire.ICRCLen:], crc.Update(c, pad))
	return at + n
}

// FillUDPChecksum computes the UDP checksum of a frame that Encode has written
// with e and stores it there. RoCEv1 has none. A frame shorter than its
// envelope is left alone. frame is borrowed.
func (e *Envelope) FillUDPChecksum(frame []byte) {
	if e.Kind == V1 || len(frame) < e.Len() || e.Kind.headerLen() == 0 {
		return
	}
	udp := frame[e.Len()-ip.UDPLen:]
	var c uint16
	if e.Kind == V2IPv4 {
		c = ip.UDPChecksum4([4]byte(e.Src[12:]), [4]byte(e.Dst[12:]), udp)
	} else {
		c = ip.UDPChecksum6(e.Src, e.Dst, udp)
	}
	udp[6], udp[7] = byte(c>>8), byte(c)
}
