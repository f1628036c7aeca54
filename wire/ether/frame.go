package ether

import "encoding/binary"

// Frame is a view over the bytes of a frame. Get one from [FrameOf].
// Setters change the bits of their field and no other.
type Frame []byte

// FrameOf returns the view; ok is false if there is no whole header, tag
// included. b is borrowed.
func FrameOf(b []byte) (f Frame, ok bool) {
	if len(b) < HeaderLen {
		return nil, false
	}
	f = Frame(b)
	if f.Tagged() && len(b) < HeaderLen+TagLen {
		return nil, false
	}
	return f, true
}

// Dst returns the destination address.
func (f Frame) Dst() MAC { return MAC(f[0:6]) }

// Src returns the source address.
func (f Frame) Src() MAC { return MAC(f[6:12]) }

// Tagged reports whether an 802.1Q tag follows the addresses.
func (f Frame) Tagged() bool { return Type(binary.BigEndian.Uint16(f[12:])) == TypeVLAN }

// Tag returns the tag, or 0 if there is none.
func (f Frame) Tag() Tag {
	if !f.Tagged() {
		return 0
	}
	return Tag(binary.BigEndian.Uint16(f[14:]))
}

// Type returns what follows the header and its tag.
func (f Frame) Type() Type {
	if f.Tagged() {
		return Type(binary.BigEndian.Uint16(f[16:]))
	}
	return Type(binary.BigEndian.Uint16(f[12:]))
}

// Payload returns what follows the header and its tag, borrowed from f.
func (f Frame) Payload() []byte {
	if f.Tagged() {
		return f[HeaderLen+TagLen:]
	}
	return f[HeaderLen:]
}

// SetDst sets the destination address.
func (f Frame) SetDst(m MAC) { copy(f[0:6], m[:]) }

// SetSrc sets the source address.
func (f Frame) SetSrc(m MAC) { copy(f[6:12], m[:]) }

// SetTag sets the tag of a tagged frame; of others it changes nothing.
func (f Frame) SetTag(t Tag) {
	if f.Tagged() {
		binary.BigEndian.PutUint16(f[14:], uint16(t))
	}
}
