package port

import "github.com/verbena-rdma/verbena/fabric/sim"

// ControlBytes is the length of PFC and PAUSE frames.
const ControlBytes = 64

// stopper is the receiver's half of PFC: which classes of the neighbour are
// told to stop. What stays stopped is told again when half of its quanta are
// over, so that it never goes on by itself.
type stopper struct {
	off   uint8
	timer bool // a refresh is scheduled
	due   sim.Time
}

// Stops returns the classes in which this end stops its neighbour.
func (p *Port) Stops() uint8 { return p.stop.off }

// Stop tells the neighbour to stop a class (XOFF), and again in time until
// Resume. It reports whether that was news.
func (p *Port) Stop(now sim.Time, prio uint8) bool {
	bit := uint8(1) << (prio & 7)
	if p.stop.off&bit != 0 || p.down {
		return false
	}
	p.stop.off |= bit
	p.tell(now, bit, p.quanta)
	p.scheduleRefresh(now)
	return true
}

// Resume tells the neighbour that a class may go on (XON). It reports whether
// that was news.
func (p *Port) Resume(now sim.Time, prio uint8) bool {
	bit := uint8(1) << (prio & 7)
	if p.stop.off&bit == 0 || p.down {
		return false
	}
	p.stop.off &^= bit
	if !p.global || p.stop.off == 0 {
		p.tell(now, bit, 0)
	}
	return true
}

func (p *Port) scheduleRefresh(now sim.Time) {
	// Quanta of which half is shorter than the frame that asks for them would
	// fill the link, and the queue before it, with nothing but pauses.
	p.stop.due = now + max(p.QuantaTime(p.quanta)/2, 2*p.last(ControlBytes))
	if !p.stop.timer {
		p.stop.timer = true
		p.s.At(p.stop.due, p, evRefresh)
	}
}

func (p *Port) refresh(now sim.Time) {
	p.stop.timer = false
	if p.stop.off == 0 || p.down {
		return
	}
	if now < p.stop.due {
		p.stop.timer = true
		p.s.At(p.stop.due, p, evRefresh)
		return
	}
	p.Stats.Refreshes++
	p.tell(now, p.stop.off, p.quanta)
	if p.Refreshed != nil {
		p.Refreshed(now, p.stop.off)
	}
	p.scheduleRefresh(now)
}

// tell sends a control frame for the classes in m.
func (p *Port) tell(now sim.Time, m uint8, quanta uint16) {
	k := p.s.Pool.Get()
	k.Bytes, k.Flow, k.Src, k.Dst = ControlBytes, -1, -1, -1
	if p.global {
		k.Kind = sim.KindPause
		k.SetQuanta(0, quanta)
	} else {
		k.Kind = sim.KindPFC
		k.Enable = m
		for r := m; r != 0; r &= r - 1 {
			k.SetQuanta(lowest(r), quanta)
		}
	}
	p.Stats.controlOut(k)
	p.Control(now, k)
}
