package icrc

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/crc"
)

// Len is the length of the ICRC itself.
const Len = wire.ICRCLen

const (
	maskLen   = 8 // stands for InfiniBand's local route header
	ipv4Len   = 20
	ipv6Len   = 40
	udpLen    = 8
	pseudo4   = maskLen + ipv4Len + udpLen
	pseudo6   = maskLen + ipv6Len + udpLen
	pseudoGRH = maskLen + ipv6Len

	flagDF  = 0x4000
	protUDP = 17
	protBTH = 0x1B // GRH NxtHdr (IBA vol.1 8.3)
)

// kind is the envelope of a flow.
type kind uint8

const (
	kindV4 kind = 1 + iota
	kindV6
	kindGRH
)

// Flow is what the ICRC of all packets from one address and port to another
// has in common: the CRC of their pseudo-header with lengths, Identification
// and flags 0. A CRC is linear, so those are added packet by packet. Make one
// with [V4], [V6] or [GRH]; it is a small value, read-only, and safe for
// concurrent use. The zero Flow accepts nothing that a peer sends.
type Flow struct {
	base uint32
	kind kind
}

// V4 returns the flow of RoCEv2 over IPv4. dport is 4791 on the wire.
func V4(src, dst [4]byte, sport, dport uint16) Flow {
	var b [pseudo4]byte
	putMask(b[:])
	ip := b[maskLen:]
	ip[0], ip[1] = 0x45, 0xFF // TOS
	ip[8], ip[9] = 0xFF, protUDP
	ip[10], ip[11] = 0xFF, 0xFF
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	putUDP(ip[ipv4Len:], sport, dport)
	return Flow{kind: kindV4, base: crc.Short(0, b[:])}
}

// V6 returns the flow of RoCEv2 over IPv6. dport is 4791 on the wire.
func V6(src, dst [16]byte, sport, dport uint16) Flow {
	var b [pseudo6]byte
	putMask(b[:])
	putIPv6(b[maskLen:], protUDP, src, dst)
	putUDP(b[maskLen+ipv6Len:], sport, dport)
	return Flow{kind: kindV6, base: crc.Short(0, b[:])}
}

// GRH returns the flow of RoCEv1, whose packets follow a global route header.
func GRH(src, dst [16]byte) Flow {
	var b [pseudoGRH]byte
	putMask(b[:])
	putIPv6(b[maskLen:], protBTH, src, dst)
	return Flow{kind: kindGRH, base: crc.Short(0, b[:])}
}

func putMask(b []byte) { binary.BigEndian.PutUint64(b, ^uint64(0)) }

func putIPv6(ip []byte, next uint8, src, dst [16]byte) {
	binary.BigEndian.PutUint32(ip, 0x6FFFFFFF) // class and label
	ip[6], ip[7] = next, 0xFF
	copy(ip[8:], src[:])
	copy(ip[24:], dst[:])
}

func putUDP(udp []byte, sport, dport uint16) {
	binary.BigEndian.PutUint16(udp, sport)
	binary.BigEndian.PutUint16(udp[2:], dport)
	binary.BigEndian.PutUint16(udp[6:], 0xFFFF)
}

// Header returns the running CRC over the pseudo-header and the first bytes of
// a packet. ib begins with the BTH, whole: usually it is all headers. ident and
// df are the Identification and the don't-fragment flag of IPv4; they mean
// nothing to V6 and GRH. udp is the UDP length of the packet (8, plus BTH to
// ICRC inclusive), also where there is no UDP header. ib is borrowed.
//
// The caller continues with crc.Copy or crc.Update over the rest up to the pad
// inclusive and stores the result with [Put].
//
// A packet begun with fewer than the 12 bytes of a BTH gets a CRC that no
// receiver accepts.
func (f *Flow) Header(ident uint16, df bool, udp int, ib []byte) uint32 {
	c := f.pseudo(ident, df, udp)
	if len(ib) < wire.BTHLen {
		return crc.Short(c, ib)
	}
	// Byte 4, with FECN and BECN, is masked.
	lo := binary.LittleEndian.Uint64(ib) | 0xFF<<32
	c = crc.Words(c, lo, binary.LittleEndian.Uint32(ib[8:]))
	if len(ib) > wire.BTHLen {
		c = crc.Short(c, ib[wire.BTHLen:])
	}
	return c
}

// pseudo returns the CRC of the whole pseudo-header.
func (f *Flow) pseudo(ident uint16, df bool, udp int) uint32 {
	c := f.base
	switch f.kind {
	case kindV4:
		c ^= v4Len.of(uint16(udp+ipv4Len)) ^ v4Ident.of(ident) ^ udpLenField.of(uint16(udp))
		if df {
			c ^= v4DF
		}
	case kindV6:
		c ^= v6Len.of(uint16(udp)) ^ udpLenField.of(uint16(udp))
	case kindGRH:
		c ^= grhLen.of(uint16(udp - udpLen))
	}
	return c
}

// field is what a 16-bit field of the pseudo-header adds to the CRC, by the
// value of its first and of its second byte.
type field [2][256]uint32

// The fields that differ from packet to packet, by their offset in the
// pseudo-header.
var (
	v4Len       = fieldAt(maskLen+2, pseudo4)
	v4Ident     = fieldAt(maskLen+4, pseudo4)
	v4DF        = crc.Shift(crc32.IEEETable[flagDF>>8], pseudo4-1-(maskLen+6))
	v6Len       = fieldAt(maskLen+4, pseudo6)
	grhLen      = fieldAt(maskLen+4, pseudoGRH)
	udpLenField = fieldAt(maskLen+ipv4Len+4, pseudo4) // at the same distance from the end in IPv6
)

func fieldAt(at, of int) (f field) {
	for i := range f {
		for v := 1; v < 256; v++ {
			if low := v & -v; low != v {
				f[i][v] = f[i][v^low] ^ f[i][low]
			} else {
				f[i][v] = crc.Shift(crc32.IEEETable[v], of-1-(at+i))
			}
		}
	}
	return f
}

func (f *field) of(v uint16) uint32 { return f[0][v>>8] ^ f[1][v&0xFF] }

// Put stores an ICRC in the four bytes that end a packet.
func Put(dst []byte, icrc uint32) { binary.LittleEndian.PutUint32(dst, icrc) }

// Get reads the ICRC from the four bytes that end a packet.
func Get(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
