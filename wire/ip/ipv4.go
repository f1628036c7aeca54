package ip

import "encoding/binary"

// The lengths of an IPv4 header without options and with the most.
const (
	IPv4Len    = 20
	MaxIPv4Len = 60
)

// IPv4 is the value form of an IPv4 header.
type IPv4 struct {
	TOS      TOS
	TotalLen uint16 // header and what follows
	ID       uint16 // Identification
	DF       bool   // don't fragment
	MF       bool   // more fragments
	Evil     bool   // the reserved flag (RFC 3514), kept so that Encode gives back what Decode saw
	FragOff  uint16 // in units of 8 bytes, 13 bits
	TTL      uint8
	Proto    Proto
	Checksum uint16 // as received; Encode computes its own
	Src, Dst [4]byte
	Options  []byte // a multiple of 4, at most 40 bytes; borrowed from what was decoded
}

// Fragment reports whether the packet is a part of a larger one.
func (h *IPv4) Fragment() bool { return h.MF || h.FragOff != 0 }

// HeaderLen returns the bytes that h takes on the wire.
func (h *IPv4) HeaderLen() int { return IPv4Len + min((len(h.Options)+3)&^3, MaxIPv4Len-IPv4Len) }

// Decode fills h from the start of b and returns the bytes of the header. With
// [ReasonBadChecksum] h is filled and n right; with other reasons neither is.
// It does not compare TotalLen with len(b): captures are longer (Ethernet
// padding) or cut. b is borrowed.
func (h *IPv4) Decode(b []byte) (n int, r Reason) {
	if len(b) < IPv4Len {
		return 0, ReasonShort
	}
	if b[0]>>4 != 4 {
		return 0, ReasonBadVersion
	}
	n = int(b[0]&0x0F) * 4
	if n < IPv4Len {
		return 0, ReasonBadHeaderLen
	}
	if len(b) < n {
		return 0, ReasonShort
	}
	h.TotalLen = binary.BigEndian.Uint16(b[2:])
	if int(h.TotalLen) < n {
		return 0, ReasonBadLength
	}
	h.TOS = TOS(b[1])
	h.ID = binary.BigEndian.Uint16(b[4:])
	frag := binary.BigEndian.Uint16(b[6:])
	h.Evil, h.DF, h.MF = frag&0x8000 != 0, frag&0x4000 != 0, frag&0x2000 != 0
	h.FragOff = frag & 0x1FFF
	h.TTL, h.Proto = b[8], Proto(b[9])
	h.Checksum = binary.BigEndian.Uint16(b[10:])
	h.Src, h.Dst = [4]byte(b[12:]), [4]byte(b[16:])
	h.Options = b[IPv4Len:n:n]
	if Checksum(b[:n]) != 0 {
		return n, ReasonBadChecksum
	}
	return n, ReasonNone
}

// Encode writes h with its options (filled up to a multiple of 4 with 0, which
// is end-of-options) and a computed checksum to b, and returns the bytes
// written, HeaderLen; 0 if b is too short or the options too long.
func (h *IPv4) Encode(b []byte) int {
	n := h.HeaderLen()
	if len(b) < n || len(h.Options) > MaxIPv4Len-IPv4Len {
		return 0
	}
	b[0], b[1] = 0x40|byte(n/4), byte(h.TOS)
	binary.BigEndian.PutUint16(b[2:], h.TotalLen)
	binary.BigEndian.PutUint16(b[4:], h.ID)
	frag := h.FragOff & 0x1FFF
	if h.Evil {
		frag |= 0x8000
	}
	if h.DF {
		frag |= 0x4000
	}
	if h.MF {
		frag |= 0x2000
	}
	binary.BigEndian.PutUint16(b[6:], frag)
	b[8], b[9] = h.TTL, byte(h.Proto)
	b[10], b[11] = 0, 0
	copy(b[12:], h.Src[:])
	copy(b[16:], h.Dst[:])
	clear(b[IPv4Len:n])
	copy(b[IPv4Len:n], h.Options)
	binary.BigEndian.PutUint16(b[10:], Checksum(b[:n]))
	return n
}
