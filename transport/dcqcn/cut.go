package dcqcn

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/clock"
)

// cut lowers R_C by alpha and begins the recovery anew. alpha has caught up.
func (r *RP) cut(now clock.Time) {
	p := r.p
	clamp := p.ClampTgtRate || r.byteStage > 0 || p.ClampTgtRateAfterTimeInc && r.timeStage > 0
	if clamp && r.rt != r.rc {
		r.rt = r.rc
		count(&r.steps.clamps, 1)
	}
	r.rc = max(r.rc-p.cutOf(r.rc, r.alpha), p.floor(r.line))
	count(&r.steps.cuts, 1)
	r.restart(now)
}

// restart resets stages, timer and byte counter.
func (r *RP) restart(now clock.Time) {
	r.timeStage, r.byteStage = 0, 0
	r.bytes, r.halfBytes = 0, false
	r.incAt = clock.Never
	if r.p.RPGTimeReset > 0 && r.rc != r.line {
		r.incAt = now.Add(r.p.RPGTimeReset)
	}
}

// cutOf is what a cut takes from rc, rounded down: R_C·alpha/2 where rpg_gd is
// 11, and never so much that less than rpg_min_dec_fac percent stay.
func (p *Params) cutOf(rc, alpha uint64) uint64 {
	hi, lo := bits.Mul64(rc, 100-uint64(p.RPGMinDecFac))
	most, _ := bits.Div64(hi, lo, 100)
	hi, lo = bits.Mul64(rc, alpha)
	shift := uint(p.AlphaBits) - 10 + uint(p.RPGGd)
	if hi>>shift != 0 {
		return most
	}
	return min(hi<<(64-shift)|lo>>shift, most)
}

// count adds n to a counter that stops at its largest value.
func count(c *uint32, n uint64) {
	*c = uint32(min(uint64(*c)+n, 1<<32-1))
}
