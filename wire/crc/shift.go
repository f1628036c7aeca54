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

// mul returns a·b modulo the generator: the product without carries in steps
// of four bits, then one reduction by table.
func mul(a, b uint32) uint32 {
	x := uint64(a)
	var t [16]uint64 // multiples of a
	t[1], t[2], t[4], t[8] = x, x<<1, x<<2, x<<3
	t[3] = t[2] ^ t[1]
	t[5], t[6], t[7] = t[4]^t[1], t[4]^t[2], t[4]^t[3]
	t[9], t[10], t[11], t[12] = t[8]^t[1], t[8]^t[2], t[8]^t[3], t[8]^t[4]
	t[13], t[14], t[15] = t[8]^t[5], t[8]^t[6], t[8]^t[7]
	p := t[b>>28]
	p = p<<4 ^ t[b>>24&15]
	p = p<<4 ^ t[b>>20&15]
	p = p<<4 ^ t[b>>16&15]
	p = p<<4 ^ t[b>>12&15]
	p = p<<4 ^ t[b>>8&15]
	p = p<<4 ^ t[b>>4&15]
	p = p<<4 ^ t[b&15]
	p <<= 1 // of 63 bits; now bit 63 is x^0
	return uint32(p>>32) ^ step4(0, uint32(p))
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
