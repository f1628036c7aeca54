package dcqcn

import "github.com/verbena-rdma/verbena/clock"

// RP is the reaction point of one QP: the limiter that notifications lower and
// that timer and byte counter raise again. Call Start first; the zero value is
// not usable. It is a value of at most 128 bytes, owned by whoever owns the QP,
// and allocates nothing. Not for concurrent use.
//
// No timer runs: every method that is told the time first does what the timers
// would have done up to and including that instant, bit for bit, at a cost that
// does not grow with the time that has passed. Times must not go back. At one
// instant the increase timer comes first, then alpha and the cut in the order of
// Params.AlphaBeforeCut, then the caller's event.
type RP struct {
	p      *Params
	line   uint64 // bit/s
	rc, rt uint64 // R_C and R_T, bit/s: floor <= rc <= rt <= line
	alpha  uint64 // with p.AlphaBits bits of fraction, before alphaAt

	now     clock.Time // the latest instant told
	origin  clock.Time // of the first CNP: monitor periods count from here
	alphaAt clock.Time // alpha's timer expires next
	cutAt   clock.Time // a monitor period with a CNP ends, or Never
	incAt   clock.Time // the increase timer expires next, or Never

	bytes                uint64 // sent since the byte counter last expired
	timeStage, byteStage uint32
	steps                steps

	started   bool // the first CNP has come
	alphaCNP  bool // AlphaPeriodic: a CNP came in the period of alpha's timer
	halfBytes bool // HyperHalves: the byte counter runs for half its interval
}

// steps counts what the RP has done. The counters stop at their largest value.
type steps struct{ cuts, clamps, recoveries, additive, hyper uint32 }

// State is a snapshot of an RP.
type State struct {
	Rc, Rt     uint64 // R_C and R_T, bit/s
	Alpha      uint64 // in units of 2^-32: 1<<32 is 1
	TimeStage  uint32 // expiries of the timer since the last cut; at line rate it stands still
	ByteStage  uint32 // expiries of the byte counter since the last cut, likewise
	Cuts       uint32 // cuts made
	Clamps     uint32 // cuts that lowered R_T to the R_C before them
	Recoveries uint32 // steps of fast recovery
	Additive   uint32 // steps of additive increase
	Hyper      uint32 // steps of hyper increase
}

// Start makes the RP ready: R_C = R_T = line (bit/s, at least 1), no slow
// start. It may be called again to begin afresh. p must be valid
// ([Params.Validate]); it is lent until the next Start.
func (r *RP) Start(now clock.Time, p *Params, line uint64) {
	line = max(line, 1)
	*r = RP{
		p: p, line: line, rc: line, rt: line, alpha: p.initialAlpha(),
		now: now, alphaAt: clock.Never, cutAt: clock.Never, incAt: clock.Never,
	}
}

// Congestion takes a notification: a CNP, or an acknowledgement with BECN.
func (r *RP) Congestion(now clock.Time) {
	r.advance(now)
	p := r.p
	r.tickAlpha(now)
	if r.started {
		r.alphaCNP = true
	} else {
		r.firstCNP(now)
	}
	switch {
	case p.RateReduceMonitorPeriod > 0:
		if r.cutAt == clock.Never {
			into := now.Sub(r.origin) % p.RateReduceMonitorPeriod
			r.cutAt = now.Add(p.RateReduceMonitorPeriod - into)
		}
		r.raiseOnCNP(now)
	case p.AlphaBeforeCut:
		r.raiseOnCNP(now)
		r.cut(now)
	default:
		r.cut(now)
		r.raiseOnCNP(now)
	}
}

// firstCNP begins what counts from the first CNP.
func (r *RP) firstCNP(now clock.Time) {
	p := r.p
	r.started = true
	r.origin = now
	r.alphaAt = now.Add(p.DCETCPRTT)
	if s := p.RateToSetOnFirstCNP; s != 0 {
		r.rc = min(max(s, p.floor(r.line)), r.line)
		r.rt = r.rc
		r.restart(now)
	}
}

// Sent counts bytes that have left for the byte counter; whether headers are
// among them is the caller's choice. Less than 1 counts for nothing, and
// nothing counts at line rate.
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

// Deadline returns the next instant at which R_C may change without a call of
// Congestion or Sent: the end of a monitor period that saw a CNP, or the
// increase timer's next expiry. Never at line rate and before the first CNP. It
// may lie in the past if the RP has not been told of the time since. Look again
// after each other method.
func (r *RP) Deadline() clock.Time { return clock.Min(r.cutAt, r.incAt) }

// Limited reports whether R_C is below the line rate, as of the last call: if
// not, nothing needs pacing before Deadline.
func (r *RP) Limited() bool { return r.rc != r.line }

// State returns a snapshot as of the latest instant told.
func (r *RP) State() State {
	c := *r // alpha catches up in the copy: looking must change nothing
	c.tickAlpha(c.now)
	return State{
		Rc: r.rc, Rt: r.rt, Alpha: c.alpha << (32 - r.p.AlphaBits),
		TimeStage: r.timeStage, ByteStage: r.byteStage,
		Cuts: r.steps.cuts, Clamps: r.steps.clamps,
		Recoveries: r.steps.recoveries, Additive: r.steps.additive, Hyper: r.steps.hyper,
	}
}

// advance does what the timers would have done up to and including now, in
// their order. At most one cut is pending: it takes a CNP to have another.
func (r *RP) advance(now clock.Time) {
	r.now = max(r.now, now)
	if r.incAt > now && r.cutAt > now {
		return
	}
	r.timeEvents(clock.Min(now, r.cutAt))
	if r.cutAt > now || r.cutAt == clock.Never {
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
	r.timeEvents(now)
}
