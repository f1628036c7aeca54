package work

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ln2 in units of 2^-64.
const ln2 = 0xB17217F7D1CF79AB

// exponential returns a draw from the exponential distribution of mean 1, in
// units of 2^-32: -ln of a uniform number. It is computed in integers, bit by
// bit, so that it is the same on every machine.
func exponential(r *sim.Rand) uint64 { return negLn(r.Uint64()) }

// negLn returns -ln(u/2^64) in units of 2^-32; u = 0 counts as 1.
func negLn(u uint64) uint64 {
	lz := bits.LeadingZeros64(max(u, 1))
	x := max(u, 1) << lz // 1 ≤ x < 2, in units of 2^-63
	log := uint64(0)     // log2 of it, in units of 2^-32
	for range 32 {
		log <<= 1
		hi, lo := bits.Mul64(x, x)
		if hi>>63 != 0 { // x² ≥ 2
			log |= 1
			x = hi
		} else {
			x = hi<<1 | lo>>63
		}
	}
	minusLog2 := uint64(1+lz)<<32 - log
	hi, lo := bits.Mul64(minusLog2, ln2)
	return hi + lo>>63
}

// spread returns mean × e, where e has the unit 2^-32, to the nearest, at least
// 1 ps so that time goes on.
func spread(mean sim.Time, e uint64) sim.Time {
	hi, lo := bits.Mul64(uint64(mean), e)
	lo, carry := bits.Add64(lo, 1<<31, 0)
	hi += carry
	if hi>>31 != 0 {
		return sim.Never
	}
	return max(1, sim.Time(hi<<32|lo>>32))
}
