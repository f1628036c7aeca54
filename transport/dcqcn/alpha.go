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

// lower is alpha = (1-g)·alpha, rounded down.
func (p *Params) lower(alpha uint64) uint64 {
	g := p.DCETCPG
	return alpha * uint64(g.Den-g.Num) / uint64(g.Den)
}

// raise is alpha = (1-g)·alpha + g, rounded up.
func (p *Params) raise(alpha uint64) uint64 {
	g := p.DCETCPG
	n := alpha*uint64(g.Den-g.Num) + uint64(g.Num)<<p.AlphaBits
	return min((n+uint64(g.Den)-1)/uint64(g.Den), p.maxAlpha())
}

// raiseOnCNP is AlphaOnCNP's answer to a CNP: alpha rises and its timer begins
// anew.
func (r *RP) raiseOnCNP(now clock.Time) {
	r.tickAlpha(now)
	r.alpha = r.p.raise(r.alpha)
	r.alphaAt = now.Add(r.p.DCETCPRTT)
}

// tickAlpha does what alpha's timer would have done up to and including to.
// Equal to the timer bit for bit: each step rounds, so the steps are taken one
// by one, until alpha is 0 and has nothing left to lose.
func (r *RP) tickAlpha(to clock.Time) {
	if r.alphaAt > to || r.alphaAt == clock.Never {
		return
	}
	period := r.p.DCETCPRTT
	n := int64(to.Sub(r.alphaAt)/period) + 1
	r.alphaAt = r.alphaAt.Add(period * (to.Sub(r.alphaAt) / period)).Add(period)
	if r.p.AlphaUpdate == AlphaPeriodic && r.alphaCNP {
		r.alpha = r.p.raise(r.alpha)
		r.alphaCNP = false
		n--
	}
	r.alpha = r.p.decay(r.alpha, n)
}

// decay lowers alpha n times.
func (p *Params) decay(alpha uint64, n int64) uint64 {
	den, keep := uint64(p.DCETCPG.Den), uint64(p.DCETCPG.Den-p.DCETCPG.Num)
	if den&(den-1) == 0 { // the usual g is a binary fraction: no division
		s := bits.TrailingZeros64(den)
		for ; n > 0 && alpha > 0; n-- {
			alpha = alpha * keep >> (s & 63)
		}
		return alpha
	}
	for ; n > 0 && alpha > 0; n-- {
		alpha = alpha * keep / den
	}
	return alpha
}
