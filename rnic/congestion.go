package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// DCQCN at the sending side: the reaction point of a queue pair (SIGCOMM'15
// DCQCN §3). It is there from the first notification on: until then it would
// only say that the rate is the line's.

// DCQCN is the congestion control of an adapter or of one queue pair.
type DCQCN struct {
	// Params are borrowed for as long as they are set: nobody may write to them.
	// nil is off: marks and notifications are counted, and that is all.
	Params *dcqcn.Params
	// LineRate is R_C of a queue pair that nobody has notified, in bits a second.
	LineRate uint64
	// CNPPrio and CNPTOS are the priority and the IPv4 TOS or IPv6 traffic class
	// of CNPs.
	CNPPrio, CNPTOS uint8
	// Paced holds each queue pair to the line rate from the beginning, for links
	// that are faster than the line: those of an operating system.
	Paced bool
}

// congestion is a DCQCN that is on, made ready. Queue pairs share that of the
// adapter.
type congestion struct {
	rp, np *dcqcn.Params // as they were given; with CNPs, for what nobody acknowledges
	line   uint64
	prio   uint8
	tos    uint8
	echo   bool // acknowledgements tell of congestion
	paced  bool
}

// congestionOf returns nil for what is off.
func congestionOf(c *DCQCN) *congestion {
	if c.Params == nil {
		return nil
	}
	cc := &congestion{rp: c.Params, np: c.Params, line: c.LineRate, prio: c.CNPPrio, tos: c.CNPTOS, paced: c.Paced}
	if c.Params.Notify == dcqcn.NotifyAck {
		p := *c.Params
		p.Notify = dcqcn.NotifyCNP
		cc.np, cc.echo = &p, true
	}
	return cc
}

// checkDCQCN refuses parameters that cannot be.
func (cfg *Config) checkDCQCN() error {
	p := cfg.Pacing
	if p.Burst > maxBurst {
		return fmt.Errorf("adapter %q: pacing burst is %v, can be up to %v, 0 for %v, or negative for none: %w",
			cfg.Name, p.Burst, maxBurst, defaultBurst, ErrInvalid)
	}
	if p.Overhead < 0 || p.Overhead > maxPaceOverhead {
		return fmt.Errorf("adapter %q: pacing overhead is %d bytes a packet, can be 0 to %d: %w",
			cfg.Name, p.Overhead, maxPaceOverhead, ErrInvalid)
	}
	c := DCQCN{Params: cfg.DCQCN, LineRate: cfg.LineRate, CNPPrio: cfg.CNPPrio, CNPTOS: cfg.CNPTOS}
	if err := c.check(cfg.Scratch); err != nil {
		return fmt.Errorf("adapter %q: %w", cfg.Name, err)
	}
	return nil
}

func (a *Adapter) checkCongestion(c *DCQCN) error { return c.check(a.cfg.Scratch) }

// check refuses what cannot be. known may be nil; else it remembers what was
// good.
func (c *DCQCN) check(known *Scratch) error {
	if c.Params == nil {
		return nil
	}
	if c.LineRate == 0 {
		return fmt.Errorf("DCQCN needs the line rate, which is 0: %w", ErrInvalid)
	}
	if c.CNPPrio >= numPrios {
		return fmt.Errorf("priority of CNPs is %d, can be 0 to %d: %w", c.CNPPrio, numPrios-1, ErrInvalid)
	}
	if known != nil && known.good == c.Params {
		return nil // as for the adapters before
	}
	if err := c.Params.Validate(); err != nil {
		return fmt.Errorf("DCQCN: %w: %w", err, ErrInvalid)
	}
	if known != nil {
		known.good = c.Params
	}
	return nil
}

// SetDCQCN sets the congestion control of the adapter's queue pairs, but for
// those that have their own. Those begin anew: at the line rate, without a CNP
// due. It matches ErrInvalid for what cannot be, and changes nothing then.
// Owner.
func (a *Adapter) SetDCQCN(now clock.Time, c DCQCN) error {
	if err := a.checkCongestion(&c); err != nil {
		return err
	}
	a.cc = congestionOf(&c)
	for _, q := range a.qps.slots {
		if q != nil && q.flags&qpOwnCC == 0 && q.qpn != ib.QPGSI {
			q.setCongestion(now, a.cc)
			a.look(now, q)
		}
	}
	return nil
}

// SetQPDCQCN gives a queue pair congestion control of its own, or with nil the
// adapter's again. It begins anew in either case. It matches ErrInvalid for what
// cannot be, and changes nothing then. Owner.
func (a *Adapter) SetQPDCQCN(now clock.Time, q *QP, c *DCQCN) error {
	if err := a.owned("set DCQCN of", q); err != nil {
		return err
	}
	cc := a.cc
	if c != nil {
		if err := a.checkCongestion(c); err != nil {
			return fmt.Errorf("QP %v: %w", q.qpn, err)
		}
		cc = congestionOf(c)
	}
	q.flags &^= qpOwnCC
	if c != nil {
		q.flags |= qpOwnCC
	}
	q.setCongestion(now, cc)
	a.look(now, q)
	return nil
}

// setCongestion makes the queue pair begin anew with other settings.
func (q *QP) setCongestion(now clock.Time, cc *congestion) {
	q.cc = cc
	q.flags &^= qpECT
	if cc != nil || q.a.cfg.ECT {
		q.flags |= qpECT
	}
	q.calm(now)
}

// calm forgets all congestion: the queue pair is at the line rate and owes no
// CNP.
func (q *QP) calm(now clock.Time) {
	if r := q.rp; r != nil {
		// Without DCQCN it stays for its count, at a line rate that nobody asks for.
		p, line := &dcqcn.Params{}, uint64(0)
		if q.cc != nil {
			p, line = q.cc.rp, q.cc.line
		}
		r.Start(now, p, line)
	}
	if n := q.np; n != nil {
		n.due, n.gone = false, true
		q.np = q.newNotice()
		q.np.marks, q.np.sent = n.marks, n.sent
	}
	q.repace(now)
}

// reaction is the reaction point of a queue pair, and its count.
type reaction struct {
	dcqcn.RP
	handled uint64 // notifications
}

// notified takes a notification for q: a CNP, or BECN in an acknowledgement.
func (a *Adapter) notified(now clock.Time, q *QP) {
	if s := q.eng.State(); q.cc == nil || s != ib.RTS && s != ib.SQD {
		a.count.rpIgnored++
		q.own().rpIgnored++
		return
	}
	a.count.rpHandled++
	q.own().rpHandled++
	if q.rp == nil {
		q.rp = new(reaction)
		q.rp.Start(now, q.cc.rp, q.cc.line)
	}
	q.rp.handled++
	q.rp.Congestion(now)
	q.repace(now)
}

// catchUp does what the reaction point's timers would have done until now.
func (q *QP) catchUp(now clock.Time) {
	if q.rp != nil && q.rp.Deadline() <= now {
		q.rp.Rate(now)
		q.repace(now)
	}
}

// QueryRP returns the reaction point of a queue pair as it is at now, which
// must not be before the last call: at line rate if nobody has notified it, all
// zeros without DCQCN. It changes nothing. Owner.
func (a *Adapter) QueryRP(now clock.Time, q *QP) dcqcn.State {
	var rp dcqcn.RP
	switch {
	case q.cc == nil:
		return dcqcn.State{}
	case q.rp != nil:
		rp = q.rp.RP
	default:
		rp.Start(now, q.cc.rp, q.cc.line)
	}
	rp.Rate(now)
	return rp.State()
}

// RateNow returns the rate that holds for a queue pair at the last call, in
// bits a second: the lower of its limit and R_C; 0 if there is none. Owner.
func (a *Adapter) RateNow(q *QP) uint64 { return q.pacer.rate }

// RateAt is RateNow at an instant, which must not be before the last call. Owner.
func (a *Adapter) RateAt(now clock.Time, q *QP) uint64 {
	q.catchUp(now)
	return q.pacer.rate
}

// CongestionStats are a queue pair's counts, since it was created.
type CongestionStats struct {
	Marked  uint64 // packets received with Congestion Experienced while DCQCN was on
	Sent    uint64 // CNPs sent
	Handled uint64 // notifications that its reaction point has taken
}

// QueryCongestion returns a queue pair's counts. Owner.
func (a *Adapter) QueryCongestion(q *QP) CongestionStats {
	var s CongestionStats
	if q.rp != nil {
		s.Handled = q.rp.handled
	}
	if n := q.np; n != nil {
		s.Marked, s.Sent = n.marks, n.sent
	}
	return s
}
