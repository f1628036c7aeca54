package dcqcn

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/clock"
)

// cut lowers R_C by alpha and begins the recovery anew.
func (r *RP) cut(now clock.Time) {
	p := r.p
	if p.ClampTgtRate || r.byteStage > 0 || p.ClampTgtRateAfterTimeInc && r.timeStage > 0 {
		r.rt = r.rc
	}
	r.rc = max(r.rc-p.cutOf(r.rc, r.alpha), p.floor(r.line))
	r.cuts++
	r.timeStage, r.byteStage = 0, 0
	r.bytes, r.halfBytes = 0, false
	r.incAt = clock.Never
	if p.RPGTimeReset > 0 && r.rc != r.line {
		r.incAt = now.Add(p.RPGTimeReset)
	}
}

// cutOf is what a cut takes from rc: R_C·alpha/2 where rpg_gd is 11, and never
// so much that less than rpg_min_dec_fac percent stay.
func (p *Params) cutOf(rc, alpha uint64) uint64 {
	most := mulDiv(rc, 100-uint64(p.RPGMinDecFac), 100)
	hi, lo := bits.Mul64(rc, alpha)
	shift := uint(p.AlphaBits) - 10 + uint(p.RPGGd)
	if hi>>shift != 0 {
		return most
	}
	return min(hi<<(64-shift)|lo>>shift, most)
}

// mulDiv is a·b/c over 128 bits; b <= c, c > 0.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// phase is the kind of an increase event.
type phase uint8

const (
	fastRecovery phase = iota
	additive
	hyper
)

// classify names the phase at the given stages, and in hyper increase the
// number i of the stage, from 1.
func (p *Params) classify(timeStage, byteStage uint32) (phase, uint32) {
	lo, from := min(timeStage, byteStage), p.RPGThreshold
	if p.HyperByTimer {
		lo = timeStage
	}
	if !p.HyperAtThreshold {
		from++
	}
	switch {
	case max(timeStage, byteStage) < p.RPGThreshold:
		return fastRecovery, 0
	case lo >= from:
		return hyper, lo - from + 1
	default:
		return additive, 0
	}
}

// increase is one increase event; stage is the counter that has expired. It
// reports whether the event was hyper increase.
func (r *RP) increase(stage *uint32) bool {
	p := r.p
	kind, i := p.classify(r.timeStage, r.byteStage)
	*stage++
	if !p.StageBeforeEvent {
		kind, i = p.classify(r.timeStage, r.byteStage)
	}
	if p.ExtraFastRecovery && *stage == 1 && r.rt/10 >= r.rc && r.rt > 10*r.rc {
		r.rt /= 8
	}
	switch kind {
	case fastRecovery:
		r.fr++
	case additive:
		r.ai++
		r.raiseTarget(p.ai(r.line), 1)
	case hyper:
		r.hai++
		if !p.HyperScaled {
			i = 1
		}
		r.raiseTarget(p.hai(r.line), uint64(i))
	}
	r.average()
	return kind == hyper
}

// raiseTarget adds step·times to R_T, at most to the line rate.
func (r *RP) raiseTarget(step, times uint64) {
	hi, add := bits.Mul64(step, times)
	if hi != 0 || add > r.line-r.rt {
		r.rt = r.line
		return
	}
	r.rt += add
}

// average moves R_C half way to R_T. It rounds up, or R_C would stay one bit
// per second below the line for ever.
func (r *RP) average() {
	r.rc += (r.rt - r.rc + 1) / 2
	if m := r.p.RPGMaxRate; r.rc == r.line || m != 0 && r.rc >= m {
		r.rc, r.rt = r.line, r.line
		r.incAt = clock.Never
	}
}

// timeEvents lets the increase timer expire up to and including to.
func (r *RP) timeEvents(to clock.Time) {
	for r.incAt <= to && r.incAt != clock.Never {
		at := r.incAt
		period := r.p.RPGTimeReset
		if r.increase(&r.timeStage) && r.p.HyperHalves {
			period /= 2
		}
		if r.incAt != clock.Never {
			r.incAt = at.Add(period)
		}
	}
}

func (r *RP) byteInterval() uint64 {
	if r.halfBytes {
		return r.p.RPGByteReset / 2
	}
	return r.p.RPGByteReset
}

// byteEvents lets the byte counter expire as often as it has.
func (r *RP) byteEvents() {
	for r.rc != r.line && r.bytes >= r.byteInterval() {
		r.bytes -= r.byteInterval()
		r.halfBytes = r.increase(&r.byteStage) && r.p.HyperHalves
	}
}
