package ip

import (
	"encoding/binary"
	"fmt"
)

// ECN is the congestion field, the last two bits of TOS and traffic class (RFC
// 3168).
type ECN uint8

// The code points.
const (
	NotECT ECN = 0 // not capable: dropped where others are marked
	ECT1   ECN = 1
	ECT0   ECN = 2 // capable: what RoCE senders set
	CE     ECN = 3 // congestion experienced
)

func (e ECN) String() string {
	switch e {
	case NotECT:
		return "Not-ECT"
	case ECT1:
		return "ECT(1)"
	case ECT0:
		return "ECT(0)"
	case CE:
		return "CE"
	}
	return fmt.Sprintf("ECN %d", uint8(e))
}

// TOS is the type-of-service octet of IPv4 and the traffic class of IPv6: six
// bits of DSCP and two of ECN.
type TOS uint8

// DSCP returns the differentiated services code point, 0 to 63.
func (t TOS) DSCP() uint8 { return uint8(t >> 2) }

// ECN returns the congestion field.
func (t TOS) ECN() ECN { return ECN(t & 3) }

// WithECN returns t with another congestion field.
func (t TOS) WithECN(e ECN) TOS { return t&^3 | TOS(e&3) }

// WithDSCP returns t with another code point, of which six bits are kept.
func (t TOS) WithDSCP(d uint8) TOS { return t&3 | TOS(d<<2) }

// ECNOf returns the congestion field of the IPv4 or IPv6 header at the start
// of b; ok is false if there is none. b is borrowed.
func ECNOf(b []byte) (e ECN, ok bool) {
	switch version(b) {
	case 4:
		return ECN(b[1] & 3), true
	case 6:
		return ECN(b[1] >> 4 & 3), true
	}
	return 0, false
}

// SetECN sets the congestion field of the IPv4 or IPv6 header at the start of
// b, and nothing else but IPv4's header checksum, which stays right if it was;
// it is false if there is no such header. b is borrowed.
func SetECN(b []byte, e ECN) bool {
	switch version(b) {
	case 4:
		before := binary.BigEndian.Uint16(b)
		after := before&^3 | uint16(e&3)
		binary.BigEndian.PutUint16(b, after)
		check := binary.BigEndian.Uint16(b[10:])
		if before != after {
			check = adjust(check, before, after)
		}
		binary.BigEndian.PutUint16(b[10:], check)
	case 6:
		b[1] = b[1]&^0x30 | uint8(e&3)<<4
	default:
		return false
	}
	return true
}

// version returns 4 or 6 if b holds at least a header of that version, else 0.
func version(b []byte) int {
	if len(b) >= IPv4Len && b[0]>>4 == 4 {
		return 4
	}
	if len(b) >= IPv6Len && b[0]>>4 == 6 {
		return 6
	}
	return 0
}
