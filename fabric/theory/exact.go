package theory

import (
	"math"
	"math/bits"
)

// Never is the time that something takes which does not end (rate 0), and what
// a time beyond an int64 of picoseconds (106 days) is reported as.
const Never int64 = math.MaxInt64

// Second is a second in picoseconds.
const Second int64 = 1e12

// mulDiv returns a*b/c for a, b ≥ 0 and c > 0, rounded up or down, with the
// product in 128 bits; Never where it does not fit.
func mulDiv(a, b, c int64, up bool) int64 {
	if a < 0 || b < 0 || c <= 0 {
		return Never
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return Never
	}
	q, rem := bits.Div64(hi, lo, uint64(c))
	if up && rem != 0 {
		q++
	}
	if q > uint64(Never) {
		return Never
	}
	return int64(q)
}

// add returns a+b for a, b ≥ 0, saturating at Never.
func add(a, b int64) int64 {
	if a > Never-b {
		return Never
	}
	return a + b
}

// mul returns a*b for a, b ≥ 0, saturating at Never.
func mul(a, b int64) int64 { return mulDiv(a, b, 1, false) }

// Serialise returns the picoseconds that bytes last at a rate in bits a second,
// rounded up as fabric/sim does; Never for a rate that is not positive. Whole
// bytes at 10, 25, 40, 50, 100, 200, 400 and 800 Gb/s take whole picoseconds.
func Serialise(bytes, rate int64) int64 {
	if rate <= 0 || bytes < 0 {
		return Never
	}
	return mulDiv(bytes, 8*Second, rate, true)
}
