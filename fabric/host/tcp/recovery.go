package tcp

import "github.com/verbena-rdma/verbena/fabric/sim"

// duplicate counts an acknowledgement of nothing new while data is in flight.
func (c *Conn) duplicate() {
	c.dups++
	switch {
	case c.recovery:
		c.cwnd += int64(c.cfg.MSS) // a segment has left the network
	case c.dups == dupThreshold && c.una > c.recover:
		c.enterRecovery()
	}
}

// enterRecovery is fast retransmit (RFC 5681 §3.2, RFC 6582 §3.2 step 2).
// Duplicates for what was in flight when the last loss was found do not get
// here: those may come from segments that were sent again for nothing.
func (c *Conn) enterRecovery() {
	mss := int64(c.cfg.MSS)
	c.halve(c.max - c.una - c.limited)
	c.recover = c.max
	c.cwnd = c.ssthresh + dupThreshold*mss
	c.recovery, c.partial, c.resend = true, false, true
	c.rtt.timed = false
}

// halve sets the threshold after a loss (RFC 5681 equation 4).
func (c *Conn) halve(flight int64) {
	c.ssthresh = max(flight/2, 2*int64(c.cfg.MSS))
	c.counted = 0
	c.reduction++
}

// leaveRecovery follows the acknowledgement of all that was in flight when the
// loss was found (RFC 6582 §3.2 step 3, the window that makes no burst).
func (c *Conn) leaveRecovery() {
	mss := int64(c.cfg.MSS)
	c.recovery, c.resend = false, false
	c.cwnd = min(c.ssthresh, max(c.max-c.una, mss)+mss)
	c.dups = 0
}

// stayInRecovery follows a partial acknowledgement of n bytes: the next segment
// is lost too. It reports whether the timer is restarted: by the first one only
// (the impatient variant of RFC 6582 §3.2 step 3).
func (c *Conn) stayInRecovery(n int64) (restart bool) {
	mss := int64(c.cfg.MSS)
	c.resend = true
	c.cwnd = max(c.cwnd-n, mss)
	if n >= mss {
		c.cwnd += mss
	}
	restart = !c.partial
	c.partial = true
	return restart
}

// timeout starts again from the oldest byte that is not acknowledged (RFC 5681
// §3.1, RFC 6298 5.4–5.6, RFC 6582 §3.2 step 4).
func (c *Conn) timeout(now sim.Time) {
	mss := int64(c.cfg.MSS)
	if !c.timedOut {
		// Not again for a segment that was already sent again by the timer.
		c.halve(c.max - c.una)
	}
	c.timedOut = true
	c.cwnd = mss
	c.recovery, c.resend = false, false
	c.dups, c.limited = 0, 0
	c.recover = c.max
	c.nxt = c.una
	c.rtt.backOff()
	c.timer.start(c, now.Add(c.rtt.rto))
	c.A.boss.Timeout(now, c.flowAt(c.una))
	c.A.wake(now, c)
}

// timer is the retransmission timer. Acknowledgements move it all the time, so
// one event is scheduled for the earliest instant only and looks again then.
type timer struct {
	at   sim.Time // it runs out; Never: it does not run
	rang sim.Time // the event that counts is scheduled for then; Never: none
}

func (t *timer) init()    { t.at, t.rang = sim.Never, sim.Never }
func (t *timer) on() bool { return t.at != sim.Never }
func (t *timer) stop()    { t.at = sim.Never }

func (t *timer) start(c *Conn, at sim.Time) {
	t.at = at
	if at < t.rang {
		t.rang = at
		c.A.s.At(at, c, evTimeout)
	}
}

func (c *Conn) timerRang(now sim.Time) {
	t := &c.timer
	if now != t.rang {
		return // there was an earlier one
	}
	t.rang = sim.Never
	switch {
	case !t.on():
	case now < t.at:
		t.start(c, t.at)
	default:
		c.timeout(now)
	}
}
