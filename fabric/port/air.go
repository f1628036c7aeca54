package port

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// air is what is on its way to the peer, oldest first, linked through the
// packets: one event is scheduled for all of it.
type air struct {
	head, tail *sim.Packet
	n          int32
}

func (a *air) push(k *sim.Packet) {
	k.Next = nil
	if a.n++; a.n > 1 {
		a.tail.Next = k
	} else {
		a.head = k
	}
	a.tail = k
}

func (a *air) pop() *sim.Packet {
	k := a.head
	a.n--
	a.head, k.Next = k.Next, nil
	return k
}

// due returns when a packet in the air is with the peer: with its last bit, or
// with its head where the peer wants that.
func (p *Port) due(k *sim.Packet) sim.Time {
	if p.ahead {
		return k.Due
	}
	return k.Tail
}

// launch puts a frame that begins to leave now into the air.
func (p *Port) launch(now sim.Time, k *sim.Packet) {
	k.Tail = p.busy + p.delay
	if p.ahead {
		k.Due = k.Tail
		if k.Kind != sim.KindPFC && k.Kind != sim.KindPause {
			k.Due = min(k.Due, now+p.last(min(int(k.Bytes), HeadBytes))+p.delay)
		}
		if p.air.n > 0 {
			// A short frame behind a long one of which the head was enough.
			k.Due = max(k.Due, p.air.tail.Due)
		}
	}
	p.air.push(k)
	if p.air.n == 1 {
		p.s.At(p.due(k), p, evAir)
	}
}

// arrive hands the oldest frame to the peer.
func (p *Port) arrive(now sim.Time) {
	if p.air.n == 0 || p.due(p.air.head) != now {
		return // the link went down meanwhile
	}
	k := p.air.pop()
	if p.air.n > 0 {
		p.s.At(p.due(p.air.head), p, evAir)
	}
	p.peer.take(now, k)
}

// take is the receiving side of a link.
func (p *Port) take(now sim.Time, k *sim.Packet) {
	if p.Lose != nil && p.Lose(k) {
		p.node.Lost(now, int(p.index), k, result.DropFault)
		return
	}
	if p.corrupts && p.cfg.Rand.Below(p.errorRate(k)) {
		k.Bad = true
	}
	p.s.Note(uint64(p.id)<<32 | uint64(k.Bytes)<<4 | uint64(k.Prio))
	if p.Tap != nil {
		p.Tap(now, k, false)
	}
	if k.Bad && !p.early {
		p.Stats.Errors++
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
	p.Stats.received(k)
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
	for p.air.n > 0 {
		p.peer.node.Lost(now, int(p.peer.index), p.air.pop(), result.DropDown)
	}
	for c := p.control.Pop(); c != nil; c = p.control.Pop() {
		p.s.Pool.Put(c)
	}
	p.urgent = false
}
