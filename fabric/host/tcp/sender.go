package tcp

import "github.com/verbena-rdma/verbena/fabric/sim"

// sender is the sending end. The stream's bytes are numbered from 0:
//
//	una        nxt            max          end
//	 │ in flight │ to be sent   │ not sent   │
//	 │           │ again        │ yet        │
//
// nxt is below max only after a timeout, until everything was sent again.
type sender struct {
	una, nxt, max int64

	cwnd     int64 // congestion window, bytes
	ssthresh int64
	counted  int64 // bytes acknowledged toward the next segment of window
	blocked  int64 // nxt when the window last stopped the sender

	dups      int   // duplicate acknowledgements in a row
	limited   int64 // bytes that they let out (RFC 3042)
	recovery  bool  // fast recovery
	recover   int64 // max when the last loss was found; -1 before
	partial   bool  // a partial acknowledgement has restarted the timer
	resend    bool  // the oldest segment leaves again
	cwrEnd    int64 // max when the window was last cut for a mark; -1 before
	cwr       bool  // the next new segment says so
	timedOut  bool  // nothing was acknowledged since a timeout
	dctcp     estimator
	rtt       estimate
	timer     timer
	rate      sim.Rate
	paceAt    sim.Time // the rate allows the next segment then
	paceOn    bool     // an event is scheduled for that
	reduction uint64   // times the window was cut
}

func (s *sender) init(cfg *Config, spec Spec) {
	s.cwnd = int64(cfg.InitWindow) * int64(cfg.MSS)
	s.ssthresh = endless
	s.recover, s.cwrEnd = -1, -1
	s.rate = spec.Rate
	s.dctcp.init()
	s.timer.init()
	s.rtt.init(spec.RTT, cfg.MinRTO)
}

// window returns the bytes that may be in flight. The first two duplicate
// acknowledgements let out a segment each (RFC 3042).
func (c *Conn) window() int64 {
	w := c.cwnd
	if !c.recovery && c.dups < dupThreshold && c.una > c.recover {
		w += int64(c.dups * c.cfg.MSS)
	}
	if c.cfg.MaxWindow > 0 {
		w = min(w, c.cfg.MaxWindow)
	}
	return w
}

// ahead is the length of the next segment.
func (c *Conn) ahead() int64 { return min(int64(c.cfg.MSS), c.end-c.nxt) }

// room reports whether the window lets the next segment out. Only the last of
// the stream is shorter than MSS, so windows never get silly (RFC 9293
// §3.8.6.2).
func (c *Conn) room() bool { return c.nxt+c.ahead()-c.una <= c.window() }

// sendable reports whether a segment may leave now. Where only the rate forbids
// it, an event is scheduled.
func (c *Conn) sendable(now sim.Time) bool {
	if c.closed || !c.resend && (c.nxt >= c.end || !c.room()) {
		return false
	}
	if c.rate != 0 && now < c.paceAt {
		if !c.paceOn {
			c.paceOn = true
			c.A.s.At(c.paceAt, c, evPace)
		}
		return false
	}
	return true
}

// segment returns the next segment: what was found lost, or the next of the
// stream.
func (c *Conn) segment(now sim.Time) *sim.Packet {
	seq, n := c.nxt, c.ahead()
	if c.resend {
		c.resend = false
		seq, n = c.una, min(int64(c.cfg.MSS), c.max-c.una)
	}
	again := seq < c.max
	p := c.packet(c.A, c.B, int(n))
	p.Seq = seq
	p.Flow = c.flowAt(seq)
	if seq+n == c.end {
		p.Flags |= FlagPSH
	}
	if c.cwr && !again {
		c.cwr = false
		p.Flags |= FlagCWR
	}
	if !c.recovery && c.dups > 0 && !again {
		c.limited += n
	}
	c.nxt = max(c.nxt, seq+n)
	c.max = max(c.max, c.nxt)
	if c.nxt < c.end && c.nxt+c.ahead()-c.una > c.cwnd {
		c.blocked = c.nxt
	}
	if again {
		c.rtt.timed = false // Karn: nobody knows which copy is acknowledged
	} else if !c.rtt.timed {
		c.rtt.begin(now, seq+n)
	}
	if !c.timer.on() {
		c.timer.start(c, now.Add(c.rtt.rto))
	}
	if c.rate != 0 {
		c.paceAt = max(now, c.paceAt) + c.rate.For(int(p.Bytes))
	}
	c.A.boss.Segment(now, p.Flow, again)
	return p
}

// acked takes an acknowledgement of everything below ack; ece: with the echo of
// a mark.
func (c *Conn) acked(now sim.Time, ack int64, ece bool) {
	if ack < c.una || ack > c.max {
		return
	}
	n := ack - c.una
	if c.cfg.Kind == DCTCP {
		c.dctcp.count(c, ack, n, ece)
		if ece {
			c.cut(ack)
		}
	}
	switch {
	case n > 0:
		full := c.una < c.blocked
		c.una = ack
		c.nxt = max(c.nxt, ack)
		c.rtt.end(now, ack, c.cfg.MinRTO)
		c.advance(now, n, full && !ece)
		c.retire(now)
	case c.max > c.una:
		c.duplicate()
	}
	if !c.closed {
		c.A.wake(now, c)
	}
}

// advance follows an acknowledgement of n new bytes.
func (c *Conn) advance(now sim.Time, n int64, grow bool) {
	restart := true
	c.timedOut = false
	switch {
	case !c.recovery:
		if grow {
			c.grow(n)
		}
	case c.una >= c.recover:
		c.leaveRecovery()
	default:
		restart = c.stayInRecovery(n)
	}
	if !c.recovery {
		c.dups, c.limited = 0, 0
	}
	switch {
	case c.una == c.max:
		c.timer.stop()
	case restart:
		c.timer.start(c, now.Add(c.rtt.rto))
	}
}
