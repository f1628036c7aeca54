// Command gen writes the assembly of package crc with avo.
//
// The method is Gopal et al., "Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction" (Intel, 2009), in the reflected form, on four
// 256-bit accumulators. The constants are computed here.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const block = 128 // bytes of one round: four registers of 32

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

var k16, k32, k64, k96, k128, barrett, shifts Mem

func main() {
	ConstraintExpr("amd64,!purego")

	k16 = foldBy("fold16", 16)
	k32 = foldBy("fold32", 32)
	k64 = foldBy("fold64", 64)
	k96 = foldBy("fold96", 96)
	k128 = foldBy("fold128", block)

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

	crcFunc("updateAVX2", false)
	crcFunc("copyAVX2", true)
	cpuFuncs()
	Generate()
}

func crcFunc(name string, copies bool) {
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

	// load takes size bytes at off from src into v and stores them to dst.
	load := func(v VecVirtual, off int) {
		VMOVDQU(Mem{Base: src, Disp: off}, v)
		if copies {
			VMOVDQU(v, Mem{Base: dst, Disp: off})
		}
	}
	advance := func(by int) {
		ADDQ(U32(by), src)
		if copies {
			ADDQ(U32(by), dst)
		}
		SUBQ(U32(by), n)
	}

	init, acc := XMM(), XMM()
	VMOVD(reg, init)
	CMPQ(n, U32(block))
	JB(LabelRef("small"))

	Comment("Four accumulators of 32 bytes.")
	var a [4]VecVirtual
	for i := range a {
		a[i] = YMM()
		load(a[i], 32*i)
	}
	initY := YMM()
	VPXOR(initY, initY, initY)
	VINSERTI128(Imm(0), init, initY, initY)
	VPXOR(initY, a[0], a[0])
	advance(block)
	k := YMM()
	VBROADCASTI128(k128, k)
	CMPQ(n, U32(block))
	JB(LabelRef("merge"))

	Label("loop")
	for i := range a {
		data, lo := YMM(), YMM()
		load(data, 32*i)
		VPCLMULQDQ(Imm(0x00), k, a[i], lo)
		VPCLMULQDQ(Imm(0x11), k, a[i], a[i])
		VPXOR(data, lo, lo)
		VPXOR(lo, a[i], a[i])
	}
	advance(block)
	CMPQ(n, U32(block))
	JAE(LabelRef("loop"))

	Label("merge")
	Comment("Move each accumulator to the place of the last.")
	for i, m := range []Mem{k96, k64, k32} {
		c, lo := YMM(), YMM()
		VBROADCASTI128(m, c)
		VPCLMULQDQ(Imm(0x00), c, a[i], lo)
		VPCLMULQDQ(Imm(0x11), c, a[i], a[i])
		VPXOR(lo, a[i], a[i])
		VPXOR(a[i], a[3], a[3])
	}
	last := XMM()
	VEXTRACTI128(Imm(1), a[3], last)
	fold := XMM() // stays in a register for what follows
	VMOVDQU(k16, fold)
	fold16 := func(x, with, out Op) {
		lo, hi := XMM(), XMM()
		VPCLMULQDQ(Imm(0x00), fold, x, lo)
		VPCLMULQDQ(Imm(0x11), fold, x, hi)
		VPXOR(with, lo, lo)
		VPXOR(lo, hi, out)
	}
	fold16(a[3].AsX(), last, acc)
	JMP(LabelRef("chunks"))

	Label("small")
	load(acc, 0)
	VPXOR(init, acc, acc)
	advance(16)
	VMOVDQU(k16, fold)

	Label("chunks")
	CMPQ(n, U32(16))
	JB(LabelRef("tail"))
	data := XMM()
	load(data, 0)
	fold16(acc, data, acc)
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
	fold16(early, late, acc)

	Label("reduce")
	Comment("128 bits to 64, to 32.")
	t, hi, mask, poly := XMM(), XMM(), XMM(), XMM()
	VPCLMULQDQ(Imm(0x01), acc, fold, t)
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
