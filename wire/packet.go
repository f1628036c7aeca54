package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// ICRCLen is the length of the invariant CRC that ends a packet.
const ICRCLen = 4

// Packet is the value form of one packet from BTH to pad: what was received,
// and what an engine wants sent. Only the headers in the set of Op are
// meaningful; Decode leaves the fields of others as they were, so that one
// Packet is filled again and again.
type Packet struct {
	// Info is the row of Op, set by Decode and SetOp. It serves the reader:
	// building looks at Op alone.
	Info *OpInfo

	Op        Opcode
	Solicited bool
	MigReq    bool
	FECN      bool
	BECN      bool
	AckReq    bool
	Pad       uint8 // pad bytes after Payload, 0–3; a builder sets PadFor(payload)
	TVer      uint8 // 0
	PKey      ib.PKey
	DestQPN   ib.QPN
	PSN       ib.PSN

	AETH AETH
	Imm  uint32  // ImmDt, host order
	IETH ib.RKey // the key to invalidate
	DETH DETH
	FETH FETH
	RETH RETH

	Atomic    AtomicETH
	AtomicAck uint64 // the value before the atomic operation

	Payload []byte // without pad; borrowed from the bytes that were decoded
}

// PadFor returns the number of pad bytes after n bytes of payload.
func PadFor(n int) uint8 { return uint8(-n) & 3 }

// SetOp sets Op and Info.
func (p *Packet) SetOp(o Opcode) { p.Op, p.Info = o, o.Info() }

// Decode fills p from b, the bytes from BTH to pad inclusive without the ICRC.
// p.Payload borrows from b. If the answer is not [ReasonNone], b is no packet
// and the fields of p are unspecified. It never allocates.
//
// It checks what the bytes alone can tell (IBA vol.1 9.6.1): version, opcode
// and lengths. That a First or Middle packet fills the path MTU is for the
// engine to check.
func (p *Packet) Decode(b []byte) Reason {
	if len(b) < BTHLen {
		return ReasonShort
	}
	// One 8-byte and one 4-byte load take in the whole BTH.
	w, v := binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	p.TVer = uint8(w>>48) & 0x0F
	if p.TVer != 0 {
		return ReasonBadVersion
	}
	p.Op = Opcode(w >> 56)
	info := &opTable[p.Op]
	if info.Len == 0 {
		return ReasonBadOpcode
	}
	p.Info = info
	p.Solicited = w&(1<<55) != 0
	p.MigReq = w&(1<<54) != 0
	p.Pad = uint8(w>>52) & 3
	p.PKey = ib.PKey(w >> 32)
	p.FECN = w&(1<<31) != 0
	p.BECN = w&(1<<30) != 0
	p.DestQPN = ib.QPN(w) & ib.MaxQPN
	p.AckReq = v&(1<<31) != 0
	p.PSN = ib.PSN(v) & ib.PSNMask

	if len(b) < info.Len {
		return ReasonShort
	}
	rest := b[info.Len:]
	if int(p.Pad) > len(rest) {
		return ReasonBadPad
	}
	if len(rest)&3 != 0 || !info.Payload && len(rest) != 0 {
		return ReasonBadLength
	}
	p.Payload = rest[: len(rest)-int(p.Pad) : len(rest)-int(p.Pad)]
	if info.Headers != 0 {
		p.decodeHeaders(info.Headers, b[BTHLen:info.Len])
	}
	return ReasonNone
}

// decodeHeaders reads the headers of the set h, in wire order, from b, which
// is exactly as long as they are.
func (p *Packet) decodeHeaders(h Headers, b []byte) {
	if h&HdrDETH != 0 {
		p.DETH.Decode(b)
		b = b[DETHLen:]
	}
	if h&HdrFETH != 0 {
		p.FETH.Decode(b)
		b = b[FETHLen:]
	}
	if h&HdrRETH != 0 {
		p.RETH.Decode(b)
		b = b[RETHLen:]
	}
	if h&HdrAtomicETH != 0 {
		p.Atomic.Decode(b)
		b = b[AtomicETHLen:]
	}
	if h&HdrAETH != 0 {
		p.AETH.Decode(b)
		b = b[AETHLen:]
	}
	if h&HdrAtomicAckETH != 0 {
		p.AtomicAck = binary.BigEndian.Uint64(b)
		b = b[AtomicAckETHLen:]
	}
	if h&HdrImmDt != 0 {
		p.Imm = getImmDt(b)
		b = b[ImmDtLen:]
	}
	if h&HdrIETH != 0 {
		p.IETH = getIETH(b)
	}
	// HdrReserved: ignored when received.
}

// HeaderLen returns the bytes from BTH to the last header of p.Op; 0 if the
// opcode is unknown.
func (p *Packet) HeaderLen() int { return opTable[p.Op].Len }

// WireLen returns the bytes from BTH to ICRC inclusive of a packet with n
// bytes of payload.
func (p *Packet) WireLen(n int) int { return opTable[p.Op].Len + (n+3)&^3 + ICRCLen }

// EncodeHeaders writes the BTH and the headers of p.Op to dst and returns
// their number of bytes, HeaderLen. It writes nothing and returns 0 if the
// opcode is unknown or dst too short. Reserved bits are written as 0. The pad
// count is p.Pad: the caller has set it to [PadFor] of the payload. dst is
// borrowed.
func (p *Packet) EncodeHeaders(dst []byte) int {
	info := &opTable[p.Op]
	if info.Len == 0 || len(dst) < info.Len {
		return 0
	}
	w := uint64(p.Op)<<56 | uint64(p.Pad&3)<<52 | uint64(p.TVer&0x0F)<<48 |
		uint64(p.PKey)<<32 | uint64(p.DestQPN&ib.MaxQPN)
	if p.Solicited {
		w |= 1 << 55
	}
	if p.MigReq {
		w |= 1 << 54
	}
	if p.FECN {
		w |= 1 << 31
	}
	if p.BECN {
		w |= 1 << 30
	}
	v := uint32(p.PSN & ib.PSNMask)
	if p.AckReq {
		v |= 1 << 31
	}
	_ = dst[BTHLen-1]
	binary.BigEndian.PutUint64(dst, w)
	binary.BigEndian.PutUint32(dst[8:], v)
	if info.Headers != 0 {
		p.encodeHeaders(info.Headers, dst[BTHLen:info.Len])
	}
	return info.Len
}

// encodeHeaders writes the headers of the set h, in wire order, to b, which is
// exactly as long as they are.
func (p *Packet) encodeHeaders(h Headers, b []byte) {
	if h&HdrDETH != 0 {
		p.DETH.Encode(b)
		b = b[DETHLen:]
	}
	if h&HdrFETH != 0 {
		p.FETH.Encode(b)
		b = b[FETHLen:]
	}
	if h&HdrRETH != 0 {
		p.RETH.Encode(b)
		b = b[RETHLen:]
	}
	if h&HdrAtomicETH != 0 {
		p.Atomic.Encode(b)
		b = b[AtomicETHLen:]
	}
	if h&HdrAETH != 0 {
		p.AETH.Encode(b)
		b = b[AETHLen:]
	}
	if h&HdrAtomicAckETH != 0 {
		binary.BigEndian.PutUint64(b, p.AtomicAck)
		b = b[AtomicAckETHLen:]
	}
	if h&HdrImmDt != 0 {
		putImmDt(b, p.Imm)
		b = b[ImmDtLen:]
	}
	if h&HdrIETH != 0 {
		putIETH(b, p.IETH)
		b = b[IETHLen:]
	}
	if h&HdrReserved != 0 {
		clear(b)
	}
}
