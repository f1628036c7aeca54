package sim

import "math/bits"

// Rand is a stream of random numbers: xoshiro256** seeded by splitmix64. The
// stream of a name depends on the run's seed and the name alone, so that a part
// which is added to a fabric does not change what the others draw.
type Rand struct{ s [4]uint64 }

// NewRand returns the stream of a name under a seed.
func NewRand(seed uint64, name string) *Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	x := seed ^ Mix(h)
	r := &Rand{}
	for i := range r.s {
		x += 0x9E3779B97F4A7C15
		r.s[i] = Mix(x)
	}
	return r
}

// Mix spreads the bits of x over 64 bits (the finaliser of splitmix64).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	s := &r.s
	x := bits.RotateLeft64(s[1]*5, 7) * 9
	t := s[1] << 17
	s[2] ^= s[0]
	s[3] ^= s[1]
	s[1] ^= s[2]
	s[0] ^= s[3]
	s[2] ^= t
	s[3] = bits.RotateLeft64(s[3], 45)
	return x
}

// Uint32 returns 32 random bits.
func (r *Rand) Uint32() uint32 { return uint32(r.Uint64() >> 32) }

// N returns a number in [0, n), every one as likely within 2^-64·n; 0 for n = 0.
func (r *Rand) N(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

// Below reports true with probability p/2^32: decisions are integer, so that
// they are the same on every architecture.
func (r *Rand) Below(p uint64) bool { return uint64(r.Uint32()) < p }

// Shuffle permutes n things.
func (r *Rand) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(r.N(uint64(i)+1)))
	}
}
