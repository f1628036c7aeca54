package port

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// air is what is on its way to the peer, oldest first, linked through the
// packets: one event is scheduled for all of it.
//
// When a packet arrives, the next event is scheduled for the one behind it, which
// is cold then. So each carries when the one behind it arrives: in Tail, since on
// a plain link its own is the instant at which it arrives itself, or in Due where
// the other end wants heads.
type air struct{ head, tail *sim.Packet }

// launch puts a frame that begins to leave now into the air.
func (p *Port) launch(now sim.Time, k *sim.Packet) {
	due := p.busy + p.delay
	k.Tail, k.Next = due, nil
	if p.ahead {
		if k.Kind != sim.KindPFC && k.Kind != sim.KindPause {
			due = min(due, now+p.last(min(int(k.Bytes), HeadBytes))+p.delay)
		}
		// A short frame behind a long one of which the head was enough.
		due = max(due, p.lastDue)
		p.lastDue = due
	}
	a := &p.air
	if a.head == nil {
		a.head, a.tail = k, k
		p.s.At(due, p, evAir|uint64(p.epoch)<<evShift)
		return
	}
	a.tail.Next = k
	if p.ahead {
		a.tail.Due = due
	} else {
		a.tail.Tail = due
	}
	a.tail = k
}

// arrive hands the oldest frame to the peer. It looks at the part of the port
// that sends, and no other.
func (p *Port) arrive(now sim.Time, epoch uint16) {
	a := &p.air
	k := a.head
	if k == nil || epoch != p.epoch {
		return // the link went down meanwhile
	}
	if a.head = k.Next; a.head != nil {
		due := k.Tail
		if p.ahead {
			due = k.Due
		}
		p.peer.s.At(due, p, evAir|uint64(epoch)<<evShift)
	}
	k.Next = nil
	if !p.ahead {
		k.Tail = now
	}
	p.peer.take(now, k)
}

// take is the receiving side of a link.
func (p *Port) take(now sim.Time, k *sim.Packet) {
	if p.Lose != nil && p.Lose(k) {
		p.peer.gone(k)
		p.node.Lost(now, int(p.index), k, result.DropFault)
		return
	}
	if p.corrupts && p.rand.Below(p.errorRate(k)) {
		k.Bad = true
	}
	p.s.Note(uint64(p.id)<<32 | uint64(k.Bytes)<<4 | uint64(k.Prio))
	if p.Tap != nil {
		p.Tap(now, k, false)
	}
	if k.Bad && !p.early {
		p.Stats.Errors++
		p.peer.gone(k)
		p.node.Lost(now, int(p.index), k, result.DropError)
		return
	}
	if k.Kind == sim.KindPFC || k.Kind == sim.KindPause {
		p.Stats.controlIn(k)
		if p.fc != nil {
			p.fc.Receive(now, k)
		}
		p.s.Pool.Put(k)
		return
	}
	p.node.Arrive(now, int(p.index), k)
}

// SetDown takes the link down, or up again, at both ends. What is on its way is
// lost; what a neighbour had stopped is not stopped any more.
func (p *Port) SetDown(now sim.Time, down bool) {
	for _, e := range [2]*Port{p, p.peer} {
		if e.down == down {
			continue
		}
		e.down = down
		if down {
			e.downAt = now
			e.drain(now)
			e.stop = stopper{timer: e.stop.timer} // an event of it may be scheduled
			if e.fc != nil {
				e.fc.Reset(now)
			}
			continue
		}
		e.Stats.Down += now - e.downAt
		e.busy = max(e.busy, now)
		e.Kick(now)
	}
}

// drain loses everything that is on its way from this end.
func (p *Port) drain(now sim.Time) {
	p.epoch++
	for k := p.air.head; k != nil; k = p.air.head {
		p.air.head, k.Next = k.Next, nil
		p.gone(k)
		p.peer.node.Lost(now, int(p.peer.index), k, result.DropDown)
	}
	for c := p.control.Pop(); c != nil; c = p.control.Pop() {
		p.s.Pool.Put(c)
	}
	p.urgent = false
}
