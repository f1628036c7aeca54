package dcqcn

import (
	"github.com/verbena-rdma/verbena/clock"
)

// RP is the reaction point of one QP: the limiter that notifications lower and
// timer and byte counter raise. Call Start first; the zero value is not usable.
// It is a value of at most 128 bytes, owned by whoever owns the QP, and
// allocates nothing.
//
// No timer runs: every method that is told the time first does what the timers
// would have done up to and including that instant, at a cost that does not
// grow with the time that has passed. Times must not go back.
type RP struct {
	p      *Params
	line   uint64 // bit/s
	rc, rt uint64 // R_C and R_T, bit/s: floor <= rc <= rt <= line
	alpha  uint64 // with p.AlphaBits bits of fraction, as of before alphaAt

	now     clock.Time // the latest instant told
	origin  clock.Time // the first CNP: the monitor periods count from here
	alphaAt clock.Time // alpha's timer expires next
	cutAt   clock.Time // a monitor period with a CNP ends, or Never
	incAt   clock.Time // the increase timer expires next, or Never

	bytes                uint64 // sent since the byte counter expired
	timeStage, byteStage uint32
	cuts, fr, ai, hai    uint32

	first     bool // no CNP has come yet
	alphaCNP  bool // AlphaPeriodic: one came in this period
	halfBytes bool // the byte counter runs for half its interval
}

// State is a snapshot of an RP.
type State struct {
	Rc, Rt                                   uint64 // R_C and R_T, bit/s
	Alpha                                    uint64 // Q32: 1<<32 is 1
	TimeStage, ByteStage                     uint32 // since the last cut; they stand still at line rate
	Cuts                                     uint32 // cuts made
	FastRecovery, AdditiveInc, HyperIncrease uint32 // increase events, by kind
}

// Start makes the RP ready: R_C = R_T = line (bit/s, at least 1), no slow
// start. It may be called again to begin afresh. p is borrowed until then.
func (r *RP) Start(now clock.Time, p *Params, line uint64) {
	*r = RP{
		p: p, line: line, rc: line, rt: line,
		alpha: p.initialAlpha(), now: now,
		alphaAt: clock.Never, cutAt: clock.Never, incAt: clock.Never, first: true,
	}
}

// Congestion takes a notification: a CNP, or an acknowledgement with BECN.
func (r *RP) Congestion(now clock.Time) {
	r.advance(now)
	p := r.p
	if r.first {
		r.firstCNP(now)
	} else {
		r.alphaCNP = true
	}
	if p.RateReduceMonitorPeriod > 0 {
		if p.AlphaUpdate == AlphaOnCNP {
			r.raiseOnCNP(now)
		}
		if r.cutAt == clock.Never {
			m := p.RateReduceMonitorPeriod
			into := now.Sub(r.origin) % m
			r.cutAt = now.Add(m - into)
		}
		return
	}
	if p.AlphaUpdate == AlphaPeriodic {
		r.tickAlpha(now)
		r.cut(now)
		return
	}
	if p.AlphaBeforeCut {
		r.raiseOnCNP(now)
		r.cut(now)
		return
	}
	r.tickAlpha(now)
	r.cut(now)
	r.raiseOnCNP(now)
}

// firstCNP begins what counts from the first CNP.
func (r *RP) firstCNP(now clock.Time) {
	p := r.p
	r.first = false
	r.origin = now
	r.alphaAt = now.Add(p.DCETCPRTT)
	if s := p.RateToSetOnFirstCNP; s != 0 {
		r.rc = min(max(s, p.floor(r.line)), r.line)
		r.rt = r.rc
	}
}

// Sent counts bytes that have left for the byte counter, headers included if
// the pacer includes them. bytes below 1 count for nothing.
func (r *RP) Sent(now clock.Time, bytes int) {
	r.advance(now)
	if bytes <= 0 || r.rc == r.line || r.p.RPGByteReset == 0 {
		return
	}
	r.bytes += uint64(bytes)
	if r.bytes >= r.byteInterval() {
		r.byteEvents()
	}
}

// Rate returns R_C in bit/s at now.
func (r *RP) Rate(now clock.Time) uint64 {
	r.advance(now)
	return r.rc
}

// Deadline returns the next instant at which R_C may change without a call:
// the end of a monitor period that saw a CNP, or the increase timer. Never at
// line rate and before the first CNP. Look again after each other method.
func (r *RP) Deadline() clock.Time { return clock.Min(r.cutAt, r.incAt) }

// Limited reports whether R_C is below the line rate, as of the last call: if
// not, nothing needs pacing.
func (r *RP) Limited() bool { return r.rc != r.line }

// State returns a snapshot as of the latest instant told.
func (r *RP) State() State {
	c := *r
	c.tickAlpha(c.now)
	return State{
		Rc: r.rc, Rt: r.rt, Alpha: c.alpha << (32 - r.p.AlphaBits),
		TimeStage: r.timeStage, ByteStage: r.byteStage,
		Cuts: r.cuts, FastRecovery: r.fr, AdditiveInc: r.ai, HyperIncrease: r.hai,
	}
}

// advance does what the timers would have done up to and including now. At one
// instant the increase timer comes before the cut.
func (r *RP) advance(now clock.Time) {
	if now > r.now {
		r.now = now
	}
	for {
		if r.incAt <= r.cutAt {
			if r.incAt > now || r.incAt == clock.Never {
				return
			}
			r.timeEvents(clock.Min(now, r.cutAt))
			continue
		}
		if r.cutAt > now {
			return
		}
		at := r.cutAt
		r.cutAt = clock.Never
		if r.p.AlphaBeforeCut {
			r.tickAlpha(at)
		} else {
			r.tickAlpha(at - 1)
		}
		r.cut(at)
	}
}
