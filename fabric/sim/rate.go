package sim

import (
	"fmt"
	"math/bits"
)

// Rate is a speed in bits a second.
type Rate int64

// The units.
const (
	Kbps Rate = 1000
	Mbps      = 1000 * Kbps
	Gbps      = 1000 * Mbps
)

// For returns how long n bytes last at the rate, rounded up to a picosecond;
// Never at rate 0. Whole bytes at every common line rate take whole
// picoseconds: 10 at 800 Gb/s.
func (r Rate) For(n int) Time {
	if r <= 0 {
		return Never
	}
	hi, lo := bits.Mul64(uint64(n)*8, uint64(Second))
	if hi >= uint64(r) {
		return Never
	}
	q, rem := bits.Div64(hi, lo, uint64(r))
	if rem != 0 {
		q++
	}
	if q > uint64(Never) {
		return Never
	}
	return Time(q)
}

// Bytes returns how many whole bytes pass in a span.
func (r Rate) Bytes(t Time) int64 {
	if r <= 0 || t <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(r), uint64(t))
	const per = 8 * uint64(Second)
	if hi >= per {
		return int64(^uint64(0) >> 1)
	}
	q, _ := bits.Div64(hi, lo, per)
	return int64(q)
}

// RateOf returns the speed at which n bytes pass in t; 0 if t is not positive.
func RateOf(n int64, t Time) Rate {
	if t <= 0 || n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n)*8, uint64(Second))
	if hi >= uint64(t) {
		return Rate(int64(^uint64(0) >> 1))
	}
	q, _ := bits.Div64(hi, lo, uint64(t))
	return Rate(q)
}

// Gbit returns the rate in Gb/s; for output only.
func (r Rate) Gbit() float64 { return float64(r) / float64(Gbps) }

// String returns the rate with the unit that fits: "100Gbps", "2.5Gbps".
func (r Rate) String() string {
	switch {
	case r >= Gbps:
		return fmt.Sprintf("%.4gGbps", float64(r)/float64(Gbps))
	case r >= Mbps:
		return fmt.Sprintf("%.4gMbps", float64(r)/float64(Mbps))
	case r >= Kbps:
		return fmt.Sprintf("%.4gKbps", float64(r)/float64(Kbps))
	}
	return fmt.Sprintf("%dbps", int64(r))
}
