// Package ident corrects the invariant CRC of packets that leave with another
// IPv4 Identification than the one it was computed for: when a link must send
// the segments of a run one by one, or in other runs.
//
// The CRC is linear, so the correction depends only on which bits of the
// Identification change and on how many bytes follow it (IBA vol.1 annex
// A17.3.3; the Identification is the only field that a run counts). IPv6 has no
// such field and needs no correction.
package ident

import (
	"encoding/binary"
	"math/bits"

	"github.com/verbena-rdma/verbena/wire/crc"
)

// covered is how many bytes from the Identification, inclusive, to the BTH are
// in the CRC: the rest of the IPv4 header, and the UDP header.
const covered = 16 + 8

const icrcLen = 4

// Move rewrites the ICRC at the end of seg, a packet from BTH to ICRC, from
// one Identification to another. Shorter strings than an ICRC are left alone.
func Move(seg []byte, from, to uint16) {
	if from == to || len(seg) < icrcLen {
		return
	}
	// The difference of two CRCs is the difference of what they cover, moved
	// by its distance to the end: here two bytes, the first on the wire lowest.
	diff := crc.Shift(uint32(bits.ReverseBytes16(from^to)), covered+len(seg)-icrcLen)
	tail := seg[len(seg)-icrcLen:]
	binary.LittleEndian.PutUint32(tail, binary.LittleEndian.Uint32(tail)^diff)
}
