package tcp

import "github.com/verbena-rdma/verbena/fabric/sim"

// receiver is the receiving end.
type receiver struct {
	got   int64  // everything below has arrived
	holes []span // what has arrived beyond, in order, none touching another
	ce    bool   // DCTCP.CE: the mark of the last segment

	pending int      // segments that wait for their acknowledgement
	ackAt   sim.Time // it is sent then at the latest
	ackOn   bool     // an event is scheduled
}

// span is the bytes [from, to) of the stream.
type span struct{ from, to int64 }

// data takes a segment, which is borrowed.
func (c *Conn) data(now sim.Time, p *sim.Packet) {
	n := int64(p.Payload)
	marked := p.ECN == ce
	if marked {
		c.B.boss.Marked(now, p.Flow)
	}
	at := false // acknowledge at once
	if c.cfg.Kind == DCTCP && marked != c.ce {
		// What waits came under the other state and says so (RFC 8257 §3.2).
		if c.pending > 0 {
			c.reply()
		}
		c.ce, at = marked, true
	}
	switch {
	case p.Seq+n <= c.got:
		at = true
	case p.Seq > c.got:
		c.keep(span{p.Seq, p.Seq + n})
		at = true
	default:
		at = at || len(c.holes) > 0 // it fills a gap (RFC 5681 §4.2)
		was := c.got
		c.got = p.Seq + n
		c.join()
		c.deliver(now, was)
	}
	c.pending++
	if at || c.pending >= c.cfg.AckEvery {
		c.reply()
		return
	}
	if c.pending == 1 {
		c.ackAt = now + c.cfg.AckDelay
	}
	if !c.ackOn {
		c.ackOn = true
		c.B.s.At(c.ackAt, c, evAck)
	}
}

// keep notes a segment that came before its turn.
func (c *Conn) keep(s span) {
	i := len(c.holes)
	for i > 0 && c.holes[i-1].from > s.from {
		i--
	}
	// It joins what it touches on both sides.
	if i > 0 && c.holes[i-1].to >= s.from {
		i--
		c.holes[i].to = max(c.holes[i].to, s.to)
	} else {
		c.holes = append(c.holes, span{})
		copy(c.holes[i+1:], c.holes[i:])
		c.holes[i] = s
	}
	k := i + 1
	for k < len(c.holes) && c.holes[k].from <= c.holes[i].to {
		c.holes[i].to = max(c.holes[i].to, c.holes[k].to)
		k++
	}
	c.holes = append(c.holes[:i+1], c.holes[k:]...)
}

// join takes what follows without a gap.
func (c *Conn) join() {
	k := 0
	for k < len(c.holes) && c.holes[k].from <= c.got {
		c.got = max(c.got, c.holes[k].to)
		k++
	}
	c.holes = c.holes[:copy(c.holes, c.holes[k:])]
}

// deliver tells the boss of the bytes from was on, flow by flow.
func (c *Conn) deliver(now sim.Time, was int64) {
	for was < c.got && c.rx < len(c.msgs) {
		m := &c.msgs[c.rx]
		to := min(c.got, m.end)
		c.B.boss.Delivered(now, m.flow, int(to-was))
		was = to
		if to == m.end {
			c.rx++
		}
	}
}

// reply puts an acknowledgement of everything so far into the line.
func (c *Conn) reply() {
	c.pending = 0
	k := c.B
	k.class[c.prio].acks.push(pendingAck{c, c.got, c.ce})
	k.ready |= 1 << c.prio
}

// ackLate acknowledges what has waited long enough.
func (c *Conn) ackLate(now sim.Time) {
	c.ackOn = false
	switch {
	case c.pending == 0:
	case now < c.ackAt:
		c.ackOn = true
		c.B.s.At(c.ackAt, c, evAck)
	default:
		c.reply()
	}
}

// ack makes the packet of an acknowledgement.
func (c *Conn) ack(a pendingAck) *sim.Packet {
	p := c.packet(c.B, c.A, 0)
	p.AckSeq = a.ack
	p.Flow = -1
	if len(c.msgs) > 0 {
		p.Flow = c.msgs[0].flow
	}
	if a.ece {
		p.Flags |= FlagECE
	}
	return p
}
