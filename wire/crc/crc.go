package crc

import (
	"encoding/binary"
	"hash/crc32"
)

// Update returns crc continued over p, like [crc32.Update] with the IEEE
// table; the first crc is 0. p is borrowed.
func Update(crc uint32, p []byte) uint32 { return update(crc, p) }

// Copy copies src to dst and returns crc continued over src, in one pass over
// the memory. dst must be at least as long as src and must not overlap it; a
// shorter dst takes as many bytes as it has, and the CRC covers those. Both are
// borrowed.
func Copy(dst, src []byte, crc uint32) uint32 {
	if len(dst) < len(src) {
		src = src[:len(dst)]
	}
	return copyUpdate(dst, src, crc)
}

// Short is Update for a header of some tens of bytes. It is right for any
// length, and p never escapes, so that it may be an array on the stack.
func Short(crc uint32, p []byte) uint32 { return short(crc, p) }

// Words returns crc continued over twelve bytes that are in registers, the
// first byte in the lowest place of lo: a BTH that need not be written to
// memory to be masked.
func Words(crc uint32, lo uint64, hi uint32) uint32 {
	return ^step4(step8(^crc, lo), hi)
}

// Combine returns the CRC of A followed by B, given the CRC of each and the
// number of bytes of B.
func Combine(crcA, crcB uint32, lenB int) uint32 { return Shift(crcA, lenB) ^ crcB }

// slicing holds the tables of slicing-by-8: slicing[k][b] is the register
// after byte b and k zero bytes.
var slicing = func() (t [8][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := range 256 {
		v := t[0][i]
		for k := 1; k < 8; k++ {
			v = t[0][v&0xFF] ^ v>>8
			t[k][i] = v
		}
	}
	return t
}()

// sliced continues crc over p with tables alone.
func sliced(crc uint32, p []byte) uint32 {
	crc = ^crc
	for len(p) >= 8 {
		crc = step8(crc, binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	if len(p) >= 4 {
		crc = step4(crc, binary.LittleEndian.Uint32(p))
		p = p[4:]
	}
	for _, b := range p {
		crc = slicing[0][byte(crc)^b] ^ crc>>8
	}
	return ^crc
}

// step8 and step4 continue the register over bytes in a word, the first in the
// lowest place.
func step8(reg uint32, w uint64) uint32 {
	lo, hi := reg^uint32(w), uint32(w>>32)
	return slicing[7][lo&0xFF] ^ slicing[6][lo>>8&0xFF] ^ slicing[5][lo>>16&0xFF] ^ slicing[4][lo>>24] ^
		slicing[3][hi&0xFF] ^ slicing[2][hi>>8&0xFF] ^ slicing[1][hi>>16&0xFF] ^ slicing[0][hi>>24]
}

func step4(reg, w uint32) uint32 {
	w ^= reg
	return slicing[3][w&0xFF] ^ slicing[2][w>>8&0xFF] ^ slicing[1][w>>16&0xFF] ^ slicing[0][w>>24]
}
