package dcqcn

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/clock"
)

// initialAlpha converts InitialAlphaValue to AlphaBits bits of fraction.
func (p *Params) initialAlpha() uint64 {
	return min(uint64(p.InitialAlphaValue)<<(p.AlphaBits-10), p.maxAlpha())
}

// maxAlpha is 1 at full width, else the largest value of the register.
func (p *Params) maxAlpha() uint64 {
	if p.AlphaBits == 32 {
		return 1 << 32
	}
	return 1<<p.AlphaBits - 1
}

// raise is alpha = (1-g)·alpha + g, rounded up: rounded down, 10 bits with
// g = 5/1024 would stop at 0.8 however many CNPs come.
func (p *Params) raise(alpha uint64) uint64 {
	num, den := uint64(p.DCETCPG.Num), uint64(p.DCETCPG.Den)
	n := alpha*(den-num) + num<<p.AlphaBits
	return min((n+den-1)/den, p.maxAlpha())
}

// lower is alpha = (1-g)·alpha, n times, each rounded down: rounded to nearest,
// 10 bits with g = 1/256 would stop at 0.125. Each step rounds, so there is no
// closed form that gives the same bits; the steps end when alpha is 0, which
// takes about 32·ln 2/g + 1/g of them at the most.
func (p *Params) lower(alpha uint64, n int64) uint64 {
	den := uint64(p.DCETCPG.Den)
	keep := den - uint64(p.DCETCPG.Num)
	if den&(den-1) == 0 { // g is a binary fraction nearly always: no division
		shift := bits.TrailingZeros64(den) & 63
		for ; n > 0 && alpha > 0; n-- {
			alpha = alpha * keep >> shift
		}
		return alpha
	}
	for ; n > 0 && alpha > 0; n-- {
		alpha = alpha * keep / den
	}
	return alpha
}

// raiseOnCNP is the answer of AlphaOnCNP to a CNP: alpha rises and its timer
// begins anew. alpha has caught up to now.
func (r *RP) raiseOnCNP(now clock.Time) {
	if r.p.AlphaUpdate == AlphaOnCNP {
		r.alpha = r.p.raise(r.alpha)
		r.alphaAt = now.Add(r.p.DCETCPRTT)
	}
}

// tickAlpha does what alpha's timer would have done up to and including to.
func (r *RP) tickAlpha(to clock.Time) {
	if r.alphaAt > to || r.alphaAt == clock.Never {
		return
	}
	period := r.p.DCETCPRTT
	more := to.Sub(r.alphaAt) / period // expiries after the first
	n := int64(more) + 1
	r.alphaAt = r.alphaAt.Add(more * period).Add(period)
	if r.alphaCNP && r.p.AlphaUpdate == AlphaPeriodic {
		r.alpha = r.p.raise(r.alpha)
		n--
	}
	r.alphaCNP = false
	r.alpha = r.p.lower(r.alpha, n)
}
