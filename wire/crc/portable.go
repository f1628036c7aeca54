package crc

import "hash/crc32"

func updatePortable(crc uint32, p []byte) uint32 { return crc32.Update(crc, crc32.IEEETable, p) }

// copyPortable walks in blocks that stay in the first-level cache, so that the
// second pass over the source costs no memory traffic.
func copyPortable(dst, src []byte, crc uint32) uint32 {
	const block = 8 << 10
	for len(src) > block {
		crc = crc32.Update(crc, crc32.IEEETable, src[:block])
		copy(dst, src[:block])
		dst, src = dst[block:], src[block:]
	}
	crc = crc32.Update(crc, crc32.IEEETable, src)
	copy(dst, src)
	return crc
}
