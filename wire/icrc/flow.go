package icrc

import (
	"encoding/binary"

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

	// congestionByte is where the BTH carries FECN and BECN, which are masked.
	congestionByte = 4

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
// has in common. Make one with [V4], [V6] or [GRH]; it is a value without
// pointers, read-only afterwards, and safe for concurrent use.
type Flow struct {
	kind   kind
	len    uint8 // of the pseudo-header
	pseudo [pseudo6]byte
}

// V4 returns the flow of RoCEv2 over IPv4. dport is 4791 on the wire.
func V4(src, dst [4]byte, sport, dport uint16) Flow {
	f := Flow{kind: kindV4, len: pseudo4}
	p := f.pseudo[:pseudo4]
	putMask(p)
	ip := p[maskLen:]
	ip[0], ip[1] = 0x45, 0xFF // TOS
	ip[8], ip[9] = 0xFF, protUDP
	ip[10], ip[11] = 0xFF, 0xFF
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	putUDP(ip[ipv4Len:], sport, dport)
	return f
}

// V6 returns the flow of RoCEv2 over IPv6. dport is 4791 on the wire.
func V6(src, dst [16]byte, sport, dport uint16) Flow {
	f := Flow{kind: kindV6, len: pseudo6}
	p := f.pseudo[:pseudo6]
	putMask(p)
	putIPv6(p[maskLen:], protUDP, src, dst)
	putUDP(p[maskLen+ipv6Len:], sport, dport)
	return f
}

// GRH returns the flow of RoCEv1, whose packets follow a global route header.
func GRH(src, dst [16]byte) Flow {
	f := Flow{kind: kindGRH, len: pseudoGRH}
	p := f.pseudo[:pseudoGRH]
	putMask(p)
	putIPv6(p[maskLen:], protBTH, src, dst)
	return f
}

func putMask(p []byte) { binary.BigEndian.PutUint64(p, ^uint64(0)) }

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
	var b [pseudo6 + wire.BTHLen]byte
	n := f.fill(&b, ident, df, udp)
	m := copy(b[n:n+wire.BTHLen], ib)
	b[n+congestionByte] = 0xFF
	c := crc.Short(0, b[:n+m])
	if len(ib) > m {
		c = crc.Short(c, ib[m:])
	}
	return c
}

// fill writes the pseudo-header to b and returns its length.
func (f *Flow) fill(b *[pseudo6 + wire.BTHLen]byte, ident uint16, df bool, udp int) int {
	*(*[pseudo6]byte)(b[:]) = f.pseudo
	ip := b[maskLen:]
	switch f.kind {
	case kindV4:
		binary.BigEndian.PutUint16(ip[2:], uint16(udp+ipv4Len))
		binary.BigEndian.PutUint16(ip[4:], ident)
		if df {
			binary.BigEndian.PutUint16(ip[6:], flagDF)
		}
		binary.BigEndian.PutUint16(ip[ipv4Len+4:], uint16(udp))
	case kindV6:
		binary.BigEndian.PutUint16(ip[4:], uint16(udp))
		binary.BigEndian.PutUint16(ip[ipv6Len+4:], uint16(udp))
	case kindGRH:
		binary.BigEndian.PutUint16(ip[4:], uint16(udp-udpLen))
	}
	return int(f.len)
}

// Put stores an ICRC in the four bytes that end a packet.
func Put(dst []byte, icrc uint32) { binary.LittleEndian.PutUint32(dst, icrc) }

// Get reads the ICRC from the four bytes that end a packet.
func Get(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
