package port

import "github.com/verbena-rdma/verbena/fabric/sim"

// FlowControl is the sender's half of a link's flow control: it learns what the
// neighbour says and tells the port, by SetClasses, which classes may not
// leave.
type FlowControl interface {
	// Attach is called once, by New.
	Attach(p *Port)
	// Receive takes a control frame of the neighbour, which is borrowed.
	Receive(now sim.Time, k *sim.Packet)
	// Handle is called for what After has scheduled.
	Handle(now sim.Time, arg uint64)
	// Reset forgets everything: the link went down.
	Reset(now sim.Time)
}

// Meter is a FlowControl that counts what leaves, as credits do.
type Meter interface {
	// Sent says that a data frame begins to leave.
	Sent(now sim.Time, k *sim.Packet)
}

// SetClasses says which classes may not leave from now on, bit by priority.
func (p *Port) SetClasses(now sim.Time, stopped uint8) {
	was := p.classes
	if was == stopped {
		return
	}
	p.classes = stopped
	p.pause.changed(now, was, stopped, &p.Stats)
	p.s.Note(uint64(p.id)<<32 | 1<<31 | uint64(stopped))
	p.node.Stopped(now, int(p.index), stopped)
	if was&^stopped != 0 {
		p.Kick(now)
	}
}

// At calls Handle of the port's flow control at t with arg, which has 56 bits.
func (p *Port) At(t sim.Time, arg uint64) { p.s.At(t, p, evFC|arg<<evShift) }

// pauseClock keeps since when each class is stopped.
type pauseClock struct{ since [8]sim.Time }

func (c *pauseClock) changed(now sim.Time, was, is uint8, st *Stats) {
	for d := was ^ is; d != 0; d &= d - 1 {
		q := lowest(d)
		if is&(1<<q) != 0 {
			c.since[q] = now
		} else {
			st.PausedFor[q] += now - c.since[q]
		}
	}
}

// PausedFor returns how long a class has been stopped in all, up to now.
func (p *Port) PausedFor(now sim.Time, prio uint8) sim.Time {
	t := p.Stats.PausedFor[prio&7]
	if p.classes&(1<<(prio&7)) != 0 {
		t += now - p.pause.since[prio&7]
	}
	return t
}

// StoppedSince returns since when a class is stopped without a break, or Never.
func (p *Port) StoppedSince(prio uint8) sim.Time {
	if p.classes&(1<<(prio&7)) == 0 {
		return sim.Never
	}
	return p.pause.since[prio&7]
}
