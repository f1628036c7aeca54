package rnic

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/wire/ether"
)

// Priorities are stopped in two ways: by Pause, until it says otherwise, and by
// the quanta of PAUSE and PFC frames, which expire by themselves.
type pauses struct {
	steady, timed uint8 // pauseUntil says until when
}

// Pause sets the priorities that may not send, bit p for priority p, until the
// next call: what a simulator or a program knows from its neighbour. Those that
// frames have stopped stay so besides. Owner.
func (a *Adapter) Pause(prios uint8) {
	a.pauses.steady = prios
	a.hold()
}

// PauseUntil stops priorities, bit p for priority p, until an instant: what a
// PFC frame says. One that is over lets them go on. Others are not touched.
// Owner.
func (a *Adapter) PauseUntil(now clock.Time, prios uint8, until clock.Time) {
	s := &a.pauses
	if until <= now {
		s.timed &^= prios
	} else {
		s.timed |= prios
		for m := prios; m != 0; m &= m - 1 {
			a.pauseUntil[bits.TrailingZeros8(m)] = until
		}
	}
	a.hold()
}

// Paused returns the priorities that may not send now, bit p for priority p.
// Owner.
func (a *Adapter) Paused() uint8 { return a.sched.paused }

// hold tells the scheduler.
func (a *Adapter) hold() {
	m := a.pauses.steady | a.pauses.timed
	a.sched.fresh |= a.sched.paused &^ m
	a.sched.paused = m
}

// pauseEnd returns the instant at which the next pause expires, or Never.
func (a *Adapter) pauseEnd() clock.Time {
	end := clock.Never
	for m := a.pauses.timed; m != 0; m &= m - 1 {
		end = min(end, a.pauseUntil[bits.TrailingZeros8(m)])
	}
	return end
}

// endPauses lets go on what is paused no more.
func (a *Adapter) endPauses(now clock.Time) {
	for m := a.pauses.timed; m != 0; m &= m - 1 {
		if p := bits.TrailingZeros8(m); a.pauseUntil[p] <= now {
			a.pauses.timed &^= 1 << p
		}
	}
	a.hold()
}

// controlFrame obeys a MAC control frame, given what follows its Ethernet
// header (802.3 annex 31B, 802.1Qbb).
func (a *Adapter) controlFrame(now clock.Time, b []byte) {
	var pfc ether.PFC
	var all ether.Pause
	e := a.ether
	switch {
	case pfc.Decode(b):
		for p := range uint8(ether.Priorities) {
			if quanta, ok := pfc.For(p); ok {
				e.count.rxPause[p]++
				a.PauseUntil(now, 1<<p, now.Add(e.lasts(quanta)))
			}
		}
	case all.Decode(b):
		e.count.rxGlobal++
		a.PauseUntil(now, 0xFF, now.Add(e.lasts(all.Quanta)))
	default:
		e.count.envelope++
	}
}

// lasts returns how long quanta stop a sender at the link's rate, rounded up.
func (e *ethernet) lasts(quanta uint16) time.Duration {
	ns := uint64(quanta) * ether.QuantaBits * uint64(time.Second)
	return time.Duration((ns + e.rate - 1) / e.rate)
}

// controlOut are MAC control frames that wait to leave. They leave before all
// else, whatever is paused. Later ones take the place of those that wait.
type controlOut struct {
	pfc    ether.PFC
	all    ether.Pause
	global bool
}

func (c *controlOut) pending() bool { return c.global || c.pfc.Enable != 0 }

// SendPFC makes the neighbour stop sending priorities, bit p for priority p, for
// some quanta of 512 bit times, or with 0 go on. It matches ErrUnsupported on a
// link that does not carry whole frames. Owner.
func (a *Adapter) SendPFC(prios uint8, quanta uint16) error {
	if a.ether == nil {
		return fmt.Errorf("send PFC: the link carries no MAC control frames; use one that carries whole Ethernet frames: %w", ErrUnsupported)
	}
	for m := prios; m != 0; m &= m - 1 {
		a.ether.control.pfc.Set(uint8(bits.TrailingZeros8(m)), quanta)
	}
	return nil
}

// SendPause makes the neighbour stop sending for some quanta of 512 bit times,
// or with 0 go on. Errors as for [Adapter.SendPFC]. Owner.
func (a *Adapter) SendPause(quanta uint16) error {
	if a.ether == nil {
		return fmt.Errorf("send PAUSE: the link carries no MAC control frames; use one that carries whole Ethernet frames: %w", ErrUnsupported)
	}
	a.ether.control.all, a.ether.control.global = ether.Pause{Quanta: quanta}, true
	return nil
}

// buildControl fills r with a MAC control frame that waits. Its source address
// is the link's to write.
func (a *Adapter) buildControl(r *frame.Run) bool {
	e := a.ether
	c := &e.control
	switch {
	case c.global:
		r.N = c.all.EncodeFrame(r.Buf, ether.MAC{})
		c.global = false
		e.count.txGlobal++
	default:
		r.N = c.pfc.EncodeFrame(r.Buf, ether.MAC{})
		for p := range c.pfc.Quanta {
			e.count.txPause[p] += uint64(c.pfc.Enable >> p & 1)
		}
		c.pfc = ether.PFC{}
	}
	r.Seg, r.Segs = r.N, 1
	return r.N > 0
}
