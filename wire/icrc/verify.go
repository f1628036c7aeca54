package icrc

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/crc"
)

// MinLen is the length of the shortest packet: a BTH and an ICRC.
const MinLen = wire.BTHLen + Len

// Sum returns the ICRC that belongs at the end of b, the bytes from BTH to
// ICRC inclusive; what the last four bytes hold does not matter. It is 0 if b
// is shorter than [MinLen]. b is borrowed.
func (f *Flow) Sum(ident uint16, df bool, b []byte) uint32 {
	if len(b) < MinLen {
		return 0
	}
	c := f.Header(ident, df, udpLen+len(b), b[:wire.BTHLen])
	return crc.Update(c, b[wire.BTHLen:len(b)-Len])
}

// Verify reports whether the ICRC at the end of b, the bytes from BTH to ICRC
// inclusive, is right, given the fields of the IPv4 header.
func (f *Flow) Verify(ident uint16, df bool, b []byte) bool {
	return len(b) >= MinLen && f.Sum(ident, df, b) == Get(b[len(b)-Len:])
}

// Solve is Verify behind a socket that hides the IPv4 header. It finds the
// Identification for which the ICRC at the end of b, the bytes from BTH to
// ICRC inclusive, is right.
//
// A CRC is linear: the difference between what was sent and what the packet
// would have with Identification and flags 0 is the difference of those four
// bytes, moved by the distance to the end. Moved back, the two bytes of flags
// and fragment offset must read "don't fragment" or 0: so of 65,536 corrupt
// packets two pass (one with a caller that insists on df). For V6 and GRH,
// which have no such field, it is Verify and ident is 0.
func (f *Flow) Solve(b []byte) (ident uint16, df, ok bool) {
	if len(b) < MinLen {
		return 0, false, false
	}
	diff := f.Sum(0, false, b) ^ Get(b[len(b)-Len:])
	return f.SolveDiff(diff, len(b))
}

// SolveDiff is Solve for a caller that has done the pass over the bytes: diff
// is the ICRC received xor the one computed with Identification 0 and without
// the don't-fragment flag; n is the length from BTH to ICRC inclusive.
func (f *Flow) SolveDiff(diff uint32, n int) (ident uint16, df, ok bool) {
	if f.kind != kindV4 {
		return 0, false, diff == 0
	}
	// From the end of the four bytes to the end of what the CRC covers, and the
	// four bytes themselves.
	const behind = 4 + (ipv4Len - 8) + udpLen
	w := crc.Shift(diff, -(behind + n - Len))
	// The first byte on the wire is now the lowest.
	const dfWord = flagDF >> 8
	switch w >> 16 {
	case dfWord:
		df = true
	case 0:
	default:
		return 0, false, false
	}
	return bits.ReverseBytes16(uint16(w)), df, true
}
