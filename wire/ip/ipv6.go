package ip

import "encoding/binary"

// IPv6Len is the length of an IPv6 header and of a global route header.
const IPv6Len = 40

// IPv6 is the value form of an IPv6 header or, with NextHeader [ProtoBTH], of
// a global route header.
type IPv6 struct {
	TOS        TOS    // traffic class
	FlowLabel  uint32 // 20 bits
	PayloadLen uint16 // what follows the header
	NextHeader Proto
	HopLimit   uint8
	Src, Dst   [16]byte
}

// Decode fills h from the start of b, of which the header takes [IPv6Len]. It
// does not compare PayloadLen with len(b). Extension headers are left for the
// caller as NextHeader. b is borrowed.
func (h *IPv6) Decode(b []byte) Reason {
	if len(b) < IPv6Len {
		return ReasonShort
	}
	w := binary.BigEndian.Uint32(b)
	if w>>28 != 6 {
		return ReasonBadVersion
	}
	h.TOS = TOS(w >> 20)
	h.FlowLabel = w & 0xFFFFF
	h.PayloadLen = binary.BigEndian.Uint16(b[4:])
	h.NextHeader, h.HopLimit = Proto(b[6]), b[7]
	h.Src, h.Dst = [16]byte(b[8:]), [16]byte(b[24:])
	return ReasonNone
}

// Encode writes h to b and returns the bytes written, or 0 if b is too short.
func (h *IPv6) Encode(b []byte) int {
	if len(b) < IPv6Len {
		return 0
	}
	binary.BigEndian.PutUint32(b, 6<<28|uint32(h.TOS)<<20|h.FlowLabel&0xFFFFF)
	binary.BigEndian.PutUint16(b[4:], h.PayloadLen)
	b[6], b[7] = byte(h.NextHeader), h.HopLimit
	copy(b[8:], h.Src[:])
	copy(b[24:], h.Dst[:])
	return IPv6Len
}
