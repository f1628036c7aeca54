// Command gen writes the assembly of package crc with avo.
//
// The method is Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction" (Intel, 2009), in the reflected form, on four
// accumulators of 256 or 512 bits. The constants are computed here.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// xPow returns x^n modulo the IEEE generator, reflected in 33 bits as the
// carry-less multiplier wants it.
func xPow(n int) uint64 {
	v := uint32(1) << 31
	for range n {
		if v&1 != 0 {
			v = v>>1 ^ 0xEDB88320
		} else {
			v >>= 1
		}
	}
	return uint64(v) << 1
}

// foldBy returns the pair of constants that moves 16 bytes over a distance:
// the low quadword holds the earlier bytes, hence the higher powers.
func foldBy(name string, bytes int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U64(xPow(8*bytes+32)))
	DATA(8, U64(xPow(8*bytes-32)))
	return m
}

// fold holds the constants by distance in bytes.
var fold = map[int]Mem{}

var barrett, shifts Mem

func main() {
	ConstraintExpr("amd64,!purego")

	for _, bytes := range []int{16, 32, 48, 64, 96, 128, 192, 256} {
		fold[bytes] = foldBy(fmt.Sprintf("fold%d", bytes), bytes)
	}

	// The last reduction: x^64 mod P; then the generator and its quotient,
	// both reflected in 33 bits.
	barrett = GLOBL("barrett", RODATA|NOPTR)
	DATA(0, U64(xPow(64)))
	DATA(8, U64(0x00000000FFFFFFFF))
	DATA(16, U64(0x1DB710641))
	DATA(24, U64(0x1F7011641))

	// A window of 16 bytes at offset t is a shuffle that moves the first t bytes
	// to the end, at 16+t one that moves the others to the front; 0x80 gives 0.
	shifts = GLOBL("shifts", RODATA|NOPTR)
	const zeros = 0x8080808080808080
	for i, w := range []uint64{zeros, zeros, 0x0706050403020100, 0x0F0E0D0C0B0A0908, zeros, zeros} {
		DATA(8*i, U64(w))
	}

	crcFunc("updateAVX2", 32, false)
	crcFunc("copyAVX2", 32, true)
	crcFunc("updateAVX512", 64, false)
	crcFunc("copyAVX512", 64, true)
	cpuFuncs()
	Generate()
}

// crcFunc writes one function that works on vectors of width bytes:
//
//	n ≥ 4 vectors: four accumulators, merged into one
//	n ≥ 1 vector:  one accumulator; its lanes merged into one of 16 bytes
//	n ≥ 16:        one accumulator of 16 bytes
//	rest:          one overlapping load
func crcFunc(name string, width int, copies bool) {
	if copies {
		TEXT(name, NOSPLIT, "func(dst, src *byte, n int, crc uint32) uint32")
		Doc(name+" copies n ≥ 16 bytes from src to dst and returns the register", "continued over them (not inverted).")
	} else {
		TEXT(name, NOSPLIT, "func(src *byte, n int, crc uint32) uint32")
		Doc(name + " returns the register continued over n ≥ 16 bytes (not inverted).")
	}
	Pragma("noescape")

	var dst Register
	if copies {
		dst = Load(Param("dst"), GP64())
	}
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	reg := Load(Param("crc"), GP32())

	vec, move, broadcast, xor := YMM, VMOVDQU, VBROADCASTI128, VPXOR
	if width == 64 {
		vec = ZMM
		move = func(x, y Op) { VMOVDQU64(x, y) }
		broadcast = func(m, y Op) { VBROADCASTI32X4(m, y) }
		xor = func(x, y, z Op) { VPXORQ(x, y, z) }
	}
	// load takes the vector at off from src and stores it to dst.
	load := func(v Op, off int, move func(x, y Op)) {
		move(Mem{Base: src, Disp: off}, v)
		if copies {
			move(v, Mem{Base: dst, Disp: off})
		}
	}
	advance := func(by int) {
		ADDQ(U32(by), src)
		if copies {
			ADDQ(U32(by), dst)
		}
		SUBQ(U32(by), n)
	}
	// step is acc = acc moved on by k, plus data.
	step := func(acc, k, data Op) {
		lo := vec()
		VPCLMULQDQ(Imm(0x00), k, acc, lo)
		VPCLMULQDQ(Imm(0x11), k, acc, acc)
		if width == 64 {
			VPTERNLOGD(Imm(0x96), data, lo, acc)
		} else {
			VPXOR(data, lo, lo)
			VPXOR(lo, acc, acc)
		}
	}

	init := vec()
	VMOVD(reg, init.AsX()) // clears the rest of the register
	CMPQ(n, U32(width))
	JB(LabelRef("small"))
	one := vec() // the accumulator that is left in the end
	CMPQ(n, U32(4*width))
	JB(LabelRef("single"))

	Comment("Four accumulators.")
	a := [4]Op{vec(), vec(), vec(), one}
	for i := range a {
		load(a[i], width*i, move)
	}
	xor(init, a[0], a[0])
	advance(4 * width)
	k := vec()
	broadcast(fold[4*width], k)
	CMPQ(n, U32(4*width))
	JB(LabelRef("merge"))

	Label("loop")
	for i := range a {
		data := vec()
		load(data, width*i, move)
		step(a[i], k, data)
	}
	advance(4 * width)
	CMPQ(n, U32(4*width))
	JAE(LabelRef("loop"))

	Label("merge")
	Comment("Move each accumulator to the place of the last.")
	for i := range 3 {
		c := vec()
		broadcast(fold[(3-i)*width], c)
		step(a[i], c, one)
		move(a[i], one)
	}
	JMP(LabelRef("vectors"))

	Label("single")
	load(one, 0, move)
	xor(init, one, one)
	advance(width)

	Label("vectors")
	k1 := vec()
	broadcast(fold[width], k1)
	Label("vector")
	CMPQ(n, U32(width))
	JB(LabelRef("lanes"))
	data := vec()
	load(data, 0, move)
	step(one, k1, data)
	advance(width)
	JMP(LabelRef("vector"))

	Label("lanes")
	Comment("Move each lane of 16 bytes to the place of the last.")
	acc, k16 := XMM(), XMM()
	VMOVDQU(fold[16], k16)
	lanes := width / 16
	if width == 64 {
		VEXTRACTI32X4(Imm(3), one, acc)
	} else {
		VEXTRACTI128(Imm(1), one, acc)
	}
	for i := range lanes - 1 {
		lane, c, lo := XMM(), XMM(), XMM()
		if i == 0 {
			VMOVDQU(one.AsX(), lane)
		} else {
			VEXTRACTI32X4(Imm(uint64(i)), one, lane)
		}
		VMOVDQU(fold[16*(lanes-1-i)], c)
		VPCLMULQDQ(Imm(0x00), c, lane, lo)
		VPCLMULQDQ(Imm(0x11), c, lane, lane)
		VPXOR(lo, lane, lane)
		VPXOR(lane, acc, acc)
	}
	JMP(LabelRef("chunks"))

	Label("small")
	load(acc, 0, VMOVDQU)
	VPXOR(init.AsX(), acc, acc)
	advance(16)
	VMOVDQU(fold[16], k16)

	step16 := func(x, with, out Op) {
		lo, hi := XMM(), XMM()
		VPCLMULQDQ(Imm(0x00), k16, x, lo)
		VPCLMULQDQ(Imm(0x11), k16, x, hi)
		VPXOR(with, lo, lo)
		VPXOR(lo, hi, out)
	}
	Label("chunks")
	CMPQ(n, U32(16))
	JB(LabelRef("tail"))
	chunk := XMM()
	load(chunk, 0, VMOVDQU)
	step16(acc, chunk, acc)
	advance(16)
	JMP(LabelRef("chunks"))

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	Comment("1 to 15 bytes: take the last 16, of which the first were taken before,",
		"and cut the accumulator to what precedes them.")
	final := XMM()
	VMOVDQU(Mem{Base: src, Index: n, Scale: 1, Disp: -16}, final)
	if copies {
		VMOVDQU(final, Mem{Base: dst, Index: n, Scale: 1, Disp: -16})
	}
	table := GP64()
	LEAQ(shifts, table)
	toEnd, toFront, early, late := XMM(), XMM(), XMM(), XMM()
	VMOVDQU(Mem{Base: table, Index: n, Scale: 1}, toEnd)
	VMOVDQU(Mem{Base: table, Index: n, Scale: 1, Disp: 16}, toFront)
	VPSHUFB(toEnd, acc, early)
	VPSHUFB(toFront, acc, late)
	VPBLENDVB(toFront, final, late, late)
	step16(early, late, acc)

	Label("reduce")
	Comment("128 bits to 64, to 32.")
	t, hi, mask, poly := XMM(), XMM(), XMM(), XMM()
	VPCLMULQDQ(Imm(0x01), acc, k16, t)
	VPSRLDQ(Imm(8), acc, acc)
	VPXOR(t, acc, acc)
	VMOVQ(barrett.Offset(8), mask)
	VMOVQ(barrett, t)
	VPSRLDQ(Imm(4), acc, hi)
	VPAND(mask, acc, acc)
	VPCLMULQDQ(Imm(0x00), t, acc, acc)
	VPXOR(hi, acc, acc)
	VMOVDQU(barrett.Offset(16), poly)
	VPAND(mask, acc, t)
	VPCLMULQDQ(Imm(0x10), poly, t, t)
	VPAND(mask, t, t)
	VPCLMULQDQ(Imm(0x00), poly, t, t)
	VPXOR(t, acc, acc)
	ret := GP32()
	VPEXTRD(Imm(1), acc, ret)
	VZEROUPPER()
	Store(ret, ReturnIndex(0))
	RET()
}

// cpuFuncs are the two instructions by which a program learns what it may use.
func cpuFuncs() {
	TEXT("cpuid", NOSPLIT, "func(leaf, sub uint32) (a, b, c, d uint32)")
	Doc("cpuid executes CPUID.")
	Pragma("noescape")
	Load(Param("leaf"), EAX)
	Load(Param("sub"), ECX)
	CPUID()
	Store(EAX, Return("a"))
	Store(EBX, Return("b"))
	Store(ECX, Return("c"))
	Store(EDX, Return("d"))
	RET()

	TEXT("xgetbv", NOSPLIT, "func() (a, d uint32)")
	Doc("xgetbv reads extended control register 0: which registers the system saves.")
	Pragma("noescape")
	XORL(ECX, ECX)
	XGETBV()
	Store(EAX, Return("a"))
	Store(EDX, Return("d"))
	RET()
}
