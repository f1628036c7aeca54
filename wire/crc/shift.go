package crc

// A CRC register is a polynomial over GF(2) modulo the generator, reflected:
// bit 31 is x^0. Appending a zero byte multiplies by x^8, and since the
// generator is odd, that can be undone.

const (
	reflectedPoly = 0xEDB88320
	one           = 1 << 31 // x^0

	// unshiftWords bounds the table of Shift backwards: 4-byte words of the
	// longest RoCE packet, 4,096 bytes of payload with all headers.
	unshiftWords = 1088
)

// Shift returns the difference of two CRCs after n more equal bytes, given the
// difference before them; a negative n goes back. Backwards by a multiple of 4
// up to the length of a packet is fast (one multiplication).
func Shift(diff uint32, n int) uint32 {
	if n <= 0 {
		if w := -n / 4; w < unshiftWords && w*4 == -n {
			return mul(diff, unshift[w])
		}
		return mul(diff, pow(&invPowers, uint64(-n)))
	}
	return mul(diff, pow(&powers, uint64(n)))
}

// mul returns a·b modulo the generator. The product without carries first,
// since its 32 steps do not wait for one another, then one reduction by table.
func mul(a, b uint32) uint32 {
	var p uint64
	x, y := uint64(a), uint64(b)
	for i := 0; i < 32; i++ {
		p ^= x << (i & 31) & -(y >> (i & 31) & 1)
	}
	p <<= 1 // now bit 63 is x^0
	lo := uint32(p)
	return uint32(p>>32) ^ slicing[3][lo&0xFF] ^ slicing[2][lo>>8&0xFF] ^ slicing[1][lo>>16&0xFF] ^ slicing[0][lo>>24]
}

// pow returns the n-th power of the byte step whose powers of two t holds.
func pow(t *[63]uint32, n uint64) uint32 {
	v := uint32(one)
	for k := 0; n != 0 && k < len(t); k++ {
		if n&1 != 0 {
			v = mul(v, t[k])
		}
		n >>= 1
	}
	return v
}

// powers[k] is x^(8·2^k), invPowers[k] its inverse.
var (
	powers    = squares(one >> 8)
	invPowers = squares(back(one, 8))
)

// unshift[w] is x^(−32·w).
var unshift = func() (t [unshiftWords]uint32) {
	t[0] = one
	for w := 1; w < len(t); w++ {
		t[w] = back(t[w-1], 32)
	}
	return t
}()

func squares(v uint32) (t [63]uint32) {
	for k := range t {
		t[k] = v
		v = mul(v, v)
	}
	return t
}

// back divides v by x, steps times.
func back(v uint32, steps int) uint32 {
	for range steps {
		// The step forwards is v>>1, xor the generator if bit 0 was set; bit 31
		// of the generator is set, so bit 31 of the result tells which.
		if v&one != 0 {
			v = (v^reflectedPoly)<<1 | 1
		} else {
			v <<= 1
		}
	}
	return v
}
