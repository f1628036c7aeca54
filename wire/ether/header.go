package ether

import (
	"encoding/binary"
	"fmt"
)

// The lengths of a header without and with one tag, and of the shortest frame,
// all without the frame check sequence.
const (
	HeaderLen = 14
	TagLen    = 4
	MinLen    = 60
)

// MAC is a 48-bit address.
type MAC [6]byte

// String returns the six pairs of digits that Linux prints.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// IsMulticast reports whether the address is of a group, or broadcast.
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// Type is an EtherType.
type Type uint16

// The EtherTypes that Verbena meets.
const (
	TypeIPv4    Type = 0x0800
	TypeVLAN    Type = 0x8100 // 802.1Q customer tag
	TypeIPv6    Type = 0x86DD
	TypeControl Type = 0x8808 // MAC control: PAUSE and PFC
	TypeService Type = 0x88A8 // 802.1ad service tag
	TypeRoCEv1  Type = 0x8915 // InfiniBand's global route header follows
)

func (t Type) String() string {
	switch t {
	case TypeIPv4:
		return "IPv4"
	case TypeVLAN:
		return "802.1Q"
	case TypeIPv6:
		return "IPv6"
	case TypeControl:
		return "MAC control"
	case TypeService:
		return "802.1ad"
	case TypeRoCEv1:
		return "RoCEv1"
	}
	return fmt.Sprintf("0x%04x", uint16(t))
}

// Header is the value form of an Ethernet II header.
type Header struct {
	Dst, Src MAC
	Tagged   bool // Tag is on the wire, with EtherType 0x8100
	Tag      Tag
	Type     Type // what follows the header and its tag
}

// Len returns the bytes that h takes on the wire.
func (h *Header) Len() int {
	if h.Tagged {
		return HeaderLen + TagLen
	}
	return HeaderLen
}

// Decode fills h from the start of a frame and returns the bytes taken; ok is
// false if the frame is too short. One 802.1Q tag is taken; a second, or a
// service tag, is left for the caller as Type. b is borrowed.
func (h *Header) Decode(b []byte) (n int, ok bool) {
	if len(b) < HeaderLen {
		return 0, false
	}
	h.Dst, h.Src = MAC(b[0:6]), MAC(b[6:12])
	h.Type = Type(binary.BigEndian.Uint16(b[12:]))
	h.Tagged, h.Tag = false, 0
	if h.Type != TypeVLAN {
		return HeaderLen, true
	}
	if len(b) < HeaderLen+TagLen {
		return 0, false
	}
	h.Tagged, h.Tag = true, Tag(binary.BigEndian.Uint16(b[14:]))
	h.Type = Type(binary.BigEndian.Uint16(b[16:]))
	return HeaderLen + TagLen, true
}

// Encode writes h to b and returns the bytes written, or 0 if b is too short.
func (h *Header) Encode(b []byte) int {
	n := h.Len()
	if len(b) < n {
		return 0
	}
	copy(b[0:6], h.Dst[:])
	copy(b[6:12], h.Src[:])
	if h.Tagged {
		binary.BigEndian.PutUint16(b[12:], uint16(TypeVLAN))
		binary.BigEndian.PutUint16(b[14:], uint16(h.Tag))
	}
	binary.BigEndian.PutUint16(b[n-2:], uint16(h.Type))
	return n
}
