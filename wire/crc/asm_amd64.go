//go:build amd64 && !purego

package crc

//go:generate go -C internal/gen run . -out ../../crc_amd64.s -stubs ../../stub_amd64.go -pkg crc

// minAsm is the fewest bytes that the assembly takes: one vector.
const minAsm = 16

// useAsm is whether the processor has the instructions and the system saves
// the 256-bit registers.
var useAsm = detect()

func detect() bool {
	const (
		pclmulqdq  = 1 << 1  // leaf 1, C
		sse41      = 1 << 19 // for VPEXTRD and VPBLENDVB's forms
		osxsave    = 1 << 27
		avx        = 1 << 28
		avx2       = 1 << 5  // leaf 7, B
		vpclmulqdq = 1 << 10 // leaf 7, C
		ymmState   = 1<<1 | 1<<2
	)
	if top, _, _, _ := cpuid(0, 0); top < 7 {
		return false
	}
	const need1 = pclmulqdq | sse41 | osxsave | avx
	if _, _, c, _ := cpuid(1, 0); c&need1 != need1 {
		return false
	}
	if state, _ := xgetbv(); state&ymmState != ymmState {
		return false
	}
	_, b, c, _ := cpuid(7, 0)
	return b&avx2 != 0 && c&vpclmulqdq != 0
}

func update(crc uint32, p []byte) uint32 {
	if !useAsm {
		return updatePortable(crc, p)
	}
	return short(crc, p)
}

func short(crc uint32, p []byte) uint32 {
	if len(p) < minAsm || !useAsm {
		return sliced(crc, p)
	}
	return ^updateAVX2(&p[0], len(p), ^crc)
}

// copyUpdate is called with len(dst) ≥ len(src).
func copyUpdate(dst, src []byte, crc uint32) uint32 {
	if len(src) < minAsm || !useAsm {
		return copyPortable(dst, src, crc)
	}
	return ^copyAVX2(&dst[0], &src[0], len(src), ^crc)
}
