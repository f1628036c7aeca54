package ip

import "encoding/binary"

// UDPLen is the length of a UDP header.
const UDPLen = 8

// UDP is the value form of a UDP header.
type UDP struct {
	SrcPort, DstPort uint16
	Len              uint16 // header and what follows
	Checksum         uint16 // 0: none, which is what RNICs and rxe send
}

// Decode fills h from the start of b, of which the header takes [UDPLen]. It
// does not compare Len with len(b). b is borrowed.
func (h *UDP) Decode(b []byte) Reason {
	if len(b) < UDPLen {
		return ReasonShort
	}
	h.SrcPort = binary.BigEndian.Uint16(b)
	h.DstPort = binary.BigEndian.Uint16(b[2:])
	h.Len = binary.BigEndian.Uint16(b[4:])
	h.Checksum = binary.BigEndian.Uint16(b[6:])
	if h.Len < UDPLen {
		return ReasonBadLength
	}
	return ReasonNone
}

// Encode writes h to b, checksum as it is, and returns the bytes written, or 0
// if b is too short.
func (h *UDP) Encode(b []byte) int {
	if len(b) < UDPLen {
		return 0
	}
	binary.BigEndian.PutUint16(b, h.SrcPort)
	binary.BigEndian.PutUint16(b[2:], h.DstPort)
	binary.BigEndian.PutUint16(b[4:], h.Len)
	binary.BigEndian.PutUint16(b[6:], h.Checksum)
	return UDPLen
}

// UDPChecksum4 returns the checksum of a datagram over IPv4: udp is its header,
// whose checksum field counts as 0, and data; it is borrowed. The answer is
// never 0, which means "none". udp shorter than a header gives 0.
func UDPChecksum4(src, dst [4]byte, udp []byte) uint16 {
	return udpChecksum(sum(sum(0, src[:]), dst[:]), udp)
}

// UDPChecksum6 is [UDPChecksum4] over IPv6.
func UDPChecksum6(src, dst [16]byte, udp []byte) uint16 {
	return udpChecksum(sum(sum(0, src[:]), dst[:]), udp)
}

func udpChecksum(addrs uint64, udp []byte) uint16 {
	if len(udp) < UDPLen {
		return 0
	}
	s := addrs + uint64(ProtoUDP) + uint64(len(udp))
	s = sum(sum(s, udp[:6]), udp[UDPLen:])
	if c := ^fold(s); c != 0 {
		return c
	}
	return 0xFFFF
}
