package crc

import "hash/crc32"

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
		crc ^= uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16 | uint32(p[3])<<24
		crc = slicing[0][p[7]] ^ slicing[1][p[6]] ^ slicing[2][p[5]] ^ slicing[3][p[4]] ^
			slicing[4][crc>>24] ^ slicing[5][crc>>16&0xFF] ^ slicing[6][crc>>8&0xFF] ^ slicing[7][crc&0xFF]
		p = p[8:]
	}
	for _, b := range p {
		crc = slicing[0][byte(crc)^b] ^ crc>>8
	}
	return ^crc
}
