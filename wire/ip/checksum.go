package ip

import "encoding/binary"

// Proto is an IP protocol number, or an IPv6 next header.
type Proto uint8

// The protocols that Verbena meets.
const (
	ProtoTCP Proto = 6
	ProtoUDP Proto = 17
	// ProtoBTH follows a global route header: a base transport header (IBA
	// vol.1 8.3, NxtHdr).
	ProtoBTH Proto = 0x1B
)

// sum adds b to a running sum of 16-bit words (RFC 1071), an odd last byte
// filled with 0. Packets are far too short for the 64 bits to overflow.
func sum(s uint64, b []byte) uint64 {
	for len(b) >= 4 {
		s += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) != 0 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold brings a running sum to 16 bits.
func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s>>16 + s&0xFFFF
	}
	return uint16(s)
}

// Checksum returns the Internet checksum of b (RFC 1071): of an IPv4 header
// with the right checksum it is 0.
func Checksum(b []byte) uint16 { return ^fold(sum(0, b)) }

// adjust returns a checksum after one 16-bit word under it changed (RFC 1624).
func adjust(check, before, after uint16) uint16 {
	return ^fold(uint64(^check) + uint64(^before) + uint64(after))
}
