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
	if cfg.DCQCN == nil {
		return nil
	}
	if cfg.LineRate == 0 {
		return fmt.Errorf("adapter %q: DCQCN needs the line rate, which is 0: %w", cfg.Name, ErrInvalid)
	}
	if cfg.CNPPrio >= numPrios {
		return fmt.Errorf("adapter %q: priority of CNPs is %d, can be 0 to %d: %w", cfg.Name, cfg.CNPPrio, numPrios-1, ErrInvalid)
	}
	if s := cfg.Scratch; s != nil && s.good == cfg.DCQCN {
		return nil // as for the adapters before
	}
	if err := cfg.DCQCN.Validate(); err != nil {
		return fmt.Errorf("adapter %q: %w: %w", cfg.Name, err, ErrInvalid)
	}
	if cfg.Scratch != nil {
		cfg.Scratch.good = cfg.DCQCN
	}
	return nil
}

// notified takes a notification for q: a CNP, or BECN in an acknowledgement.
func (a *Adapter) notified(now clock.Time, q *QP) {
	if s := q.eng.State(); a.cfg.DCQCN == nil || s != ib.RTS && s != ib.SQD {
		a.count.rpIgnored++
		return
	}
	a.count.rpHandled++
	if q.rp == nil {
		q.rp = new(dcqcn.RP)
		q.rp.Start(now, a.cfg.DCQCN, a.cfg.LineRate)
	}
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
	case q.rp != nil:
		rp = *q.rp
	case a.cfg.DCQCN == nil:
		return dcqcn.State{}
	default:
		rp.Start(now, a.cfg.DCQCN, a.cfg.LineRate)
	}
	rp.Rate(now)
	return rp.State()
}

// RateNow returns the rate that holds for a queue pair at the last call, in
// bits a second: the lower of its limit and R_C; 0 if there is none. Owner.
func (a *Adapter) RateNow(q *QP) uint64 { return q.pacer.rate }
