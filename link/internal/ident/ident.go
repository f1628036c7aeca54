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
	"hash/crc32"
)

// after is how many bytes from the end of the Identification to the BTH are in
// the CRC: the rest of the IPv4 header, and the UDP header.
const after = 14 + 8

const icrcLen = 4

var zeros [64 << 10]byte

// Move rewrites the ICRC at the end of seg, a packet from BTH to ICRC, from
// one Identification to another. Shorter strings than an ICRC are left alone.
func Move(seg []byte, from, to uint16) {
	if from == to || len(seg) < icrcLen || len(seg) > len(zeros)-after {
		return
	}
	var diff [2]byte
	binary.BigEndian.PutUint16(diff[:], from^to)
	// The difference of two CRCs is the CRC of the difference, with neither the
	// initial nor the final inversion; the package inverts at both ends.
	crc := crc32.Update(^uint32(0), crc32.IEEETable, diff[:])
	crc = ^crc32.Update(crc, crc32.IEEETable, zeros[:after+len(seg)-icrcLen])
	tail := seg[len(seg)-icrcLen:]
	binary.LittleEndian.PutUint32(tail, binary.LittleEndian.Uint32(tail)^crc)
}
