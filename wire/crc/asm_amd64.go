//go:build amd64 && !purego

package crc

//go:generate go -C internal/gen run . -out ../../crc_amd64.s -stubs ../../stub_amd64.go -pkg crc

// minAsm is the fewest bytes that the assembly takes: one vector.
const minAsm = 16

// road is which instructions are used.
type road uint8

const (
	roadStd    road = iota // hash/crc32
	roadAVX2               // vectors of 32 bytes
	roadAVX512             // vectors of 64 bytes
)

// best is the widest road that the processor has and for which the system
// saves the registers.
var best = detect()

func detect() road {
	const (
		pclmulqdq  = 1 << 1  // leaf 1, C
		sse41      = 1 << 19 // leaf 1, C
		osxsave    = 1 << 27 // leaf 1, C
		avx        = 1 << 28 // leaf 1, C
		avx2       = 1 << 5  // leaf 7, B
		avx512f    = 1 << 16 // leaf 7, B
		vpclmulqdq = 1 << 10 // leaf 7, C
		ymmState   = 1<<1 | 1<<2
		zmmState   = ymmState | 1<<5 | 1<<6 | 1<<7
	)
	if top, _, _, _ := cpuid(0, 0); top < 7 {
		return roadStd
	}
	const need1 = pclmulqdq | sse41 | osxsave | avx
	if _, _, c, _ := cpuid(1, 0); c&need1 != need1 {
		return roadStd
	}
	_, b, c, _ := cpuid(7, 0)
	state, _ := xgetbv()
	switch {
	case b&avx2 == 0 || c&vpclmulqdq == 0 || state&ymmState != ymmState:
		return roadStd
	case b&avx512f != 0 && state&zmmState == zmmState:
		return roadAVX512
	}
	return roadAVX2
}

func update(crc uint32, p []byte) uint32 {
	if best == roadStd {
		return updatePortable(crc, p)
	}
	return short(crc, p)
}

func short(crc uint32, p []byte) uint32 {
	if len(p) >= minAsm {
		switch best {
		case roadAVX512:
			return ^updateAVX512(&p[0], len(p), ^crc)
		case roadAVX2:
			return ^updateAVX2(&p[0], len(p), ^crc)
		case roadStd:
		}
	}
	return sliced(crc, p)
}

// copyUpdate is called with len(dst) ≥ len(src).
func copyUpdate(dst, src []byte, crc uint32) uint32 {
	if len(src) >= minAsm {
		switch best {
		case roadAVX512:
			return ^copyAVX512(&dst[0], &src[0], len(src), ^crc)
		case roadAVX2:
			return ^copyAVX2(&dst[0], &src[0], len(src), ^crc)
		case roadStd:
			return copyPortable(dst, src, crc)
		}
	}
	copy(dst, src)
	return sliced(crc, src)
}
