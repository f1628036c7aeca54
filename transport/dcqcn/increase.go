package dcqcn

import (
	"math"
	"math/bits"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// phase is the kind of an increase event.
type phase uint8

const (
	fastRecovery phase = iota
	additive
	hyper
)

// classify names the phase at the given stages and says by how much R_T rises.
func (p *Params) classify(timeStage, byteStage uint32, line uint64) (phase, uint64) {
	from := p.hyperFrom()
	lo := min(timeStage, byteStage)
	if p.HyperByTimer {
		lo = timeStage
	}
	switch {
	case max(timeStage, byteStage) < p.RPGThreshold:
		return fastRecovery, 0
	case lo >= from:
		if !p.HyperScaled {
			return hyper, p.hai(line)
		}
		over, step := bits.Mul64(p.hai(line), uint64(lo-from)+1)
		if over != 0 {
			step = math.MaxUint64
		}
		return hyper, step
	default:
		return additive, p.ai(line)
	}
}

// hyperFrom is the stage that both counters must have for hyper increase.
func (p *Params) hyperFrom() uint32 {
	if p.HyperAtThreshold {
		return p.RPGThreshold
	}
	return p.RPGThreshold + 1
}

// increase is one increase event; stage is that of the counter that expired.
func (r *RP) increase(stage *uint32) phase {
	p := r.p
	kind, step := p.classify(r.timeStage, r.byteStage, r.line)
	count(stage, 1)
	if !p.StageBeforeEvent {
		kind, step = p.classify(r.timeStage, r.byteStage, r.line)
	}
	count(r.steps.of(kind), 1)
	first := r.timeStage == 1 || r.byteStage == 1
	if p.ExtraFastRecovery && first && r.rt/10 >= r.rc && r.rt != 10*r.rc {
		r.rt /= 8
	} else {
		r.rt += min(step, r.line-r.rt)
	}
	// R_C moves half way to R_T, rounded up, or it would stay 1 bit/s below
	// the line for ever.
	r.rc += (r.rt - r.rc + 1) / 2
	if r.rc >= p.release(r.line) {
		r.rc, r.rt = r.line, r.line
		r.incAt = clock.Never
	}
	return kind
}

// of returns the counter of a phase.
func (s *steps) of(kind phase) *uint32 {
	switch kind {
	case additive:
		return &s.additive
	case hyper:
		return &s.hyper
	default:
		return &s.recoveries
	}
}

// skip does up to n increase events of the counter whose stage is run at once,
// and returns how many: those that all add the same to R_T while R_T-R_C no
// longer changes. n may be huge after a long silence. With A added to R_T the
// distance d becomes floor((d+A)/2), which stands still at A and at A-1; R_C
// then rises by A as R_T does. Extra fast recovery does not disturb it: after
// any event R_T is at most 2·R_C.
func (r *RP) skip(n uint64, run, other *uint32, last phase) uint64 {
	p := r.p
	t, b := r.timeStage, r.byteStage
	s := *run
	if !p.StageBeforeEvent {
		count(&s, 1)
		if run == &r.timeStage {
			t = s
		} else {
			b = s
		}
	}
	kind, a := p.classify(t, b, r.line)
	d := r.rt - r.rc
	if d != a && d+1 != a || p.HyperHalves && kind != last {
		return 0
	}
	n = min(n, p.alike(kind, s, *other, run == &r.timeStage))
	if a > 0 {
		n = min(n, (r.line-r.rt)/a, (p.release(r.line)-1-r.rc)/a)
	}
	r.rc += a * n
	r.rt += a * n
	count(run, n)
	count(r.steps.of(kind), n)
	return n
}

// alike is how many events in a row have the phase and the step of the next
// one, which finds the running counter's stage at s and the other's at other.
func (p *Params) alike(kind phase, s, other uint32, timer bool) uint64 {
	from := p.hyperFrom()
	byTimer := p.HyperByTimer
	switch kind {
	case fastRecovery:
		return uint64(p.RPGThreshold - s)
	case additive:
		if byTimer && timer || !byTimer && other >= from {
			return uint64(from - s)
		}
	case hyper:
		if p.HyperScaled && (byTimer && timer || !byTimer && s < other) {
			return 0
		}
	}
	return math.MaxUint64
}

// timeEvents lets the increase timer expire up to and including to.
func (r *RP) timeEvents(to clock.Time) {
	for r.incAt <= to && r.incAt != clock.Never {
		at := r.incAt
		kind := r.increase(&r.timeStage)
		if r.incAt == clock.Never {
			return
		}
		period := r.p.timeInterval(kind)
		r.incAt = at.Add(period)
		if r.incAt > to || r.incAt == clock.Never {
			return
		}
		due := uint64(to.Sub(r.incAt)/period) + 1
		if k := r.skip(due, &r.timeStage, &r.byteStage, kind); k > 0 {
			r.incAt = r.incAt.Add(period * time.Duration(k-1)).Add(period)
		}
	}
}

// byteEvents lets the byte counter expire as often as it has.
func (r *RP) byteEvents() {
	for r.rc != r.line && r.bytes >= r.byteInterval() {
		r.bytes -= r.byteInterval()
		kind := r.increase(&r.byteStage)
		r.halfBytes = kind == hyper && r.p.HyperHalves
		if r.rc == r.line {
			return
		}
		b := r.byteInterval()
		r.bytes -= b * r.skip(r.bytes/b, &r.byteStage, &r.timeStage, kind)
	}
}

// timeInterval is the timer's next interval after an event of a kind.
func (p *Params) timeInterval(kind phase) time.Duration {
	if kind == hyper && p.HyperHalves {
		return p.RPGTimeReset / 2
	}
	return p.RPGTimeReset
}

// byteInterval is the byte counter's present interval.
func (r *RP) byteInterval() uint64 {
	if r.halfBytes {
		return r.p.RPGByteReset / 2
	}
	return r.p.RPGByteReset
}
