//go:build amd64 && !purego

package crc

// on returns f for lengths that the assembly takes, and the tables below.
func on(f func(src *byte, n int, crc uint32) uint32) func(uint32, []byte) uint32 {
	return func(crc uint32, p []byte) uint32 {
		if len(p) < minAsm {
			return sliced(crc, p)
		}
		return ^f(&p[0], len(p), ^crc)
	}
}

func copyOn(f func(dst, src *byte, n int, crc uint32) uint32) func(dst, src []byte, crc uint32) uint32 {
	return func(dst, src []byte, crc uint32) uint32 {
		if len(src) < minAsm {
			return copyPortable(dst, src, crc)
		}
		return ^f(&dst[0], &src[0], len(src), ^crc)
	}
}

func asmUpdaters() map[string]func(uint32, []byte) uint32 {
	m := map[string]func(uint32, []byte) uint32{}
	if best >= roadAVX2 {
		m["avx2"] = on(updateAVX2)
	}
	if best >= roadAVX512 {
		m["avx512"] = on(updateAVX512)
	}
	return m
}

func asmCopiers() map[string]func(dst, src []byte, crc uint32) uint32 {
	m := map[string]func(dst, src []byte, crc uint32) uint32{}
	if best >= roadAVX2 {
		m["avx2"] = copyOn(copyAVX2)
	}
	if best >= roadAVX512 {
		m["avx512"] = copyOn(copyAVX512)
	}
	return m
}
