package port

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// air is what is on its way to the peer, oldest first: one event is scheduled
// for all of it.
type air struct {
	ring []flight
	head int
	n    int
}

type flight struct {
	p  *sim.Packet
	at sim.Time
}

func (a *air) push(f flight) {
	if a.n == len(a.ring) {
		ring := make([]flight, max(8, 2*len(a.ring)))
		for i := range a.n {
			ring[i] = a.ring[(a.head+i)&(len(a.ring)-1)]
		}
		a.ring, a.head = ring, 0
	}
	a.ring[(a.head+a.n)&(len(a.ring)-1)] = f
	a.n++
}

func (a *air) pop() flight {
	f := a.ring[a.head]
	a.ring[a.head].p = nil
	a.head = (a.head + 1) & (len(a.ring) - 1)
	a.n--
	return f
}

// launch puts a frame that begins to leave now into the air.
func (p *Port) launch(now sim.Time, k *sim.Packet) {
	tail := p.busy + p.cfg.Delay
	at := tail
	k.Tail = tail
	if p.peer.cfg.Early && k.Kind != sim.KindPFC && k.Kind != sim.KindPause {
		at = min(tail, now+p.last(min(int(k.Bytes), HeadBytes))+p.cfg.Delay)
	}
	if p.air.n > 0 {
		// A short frame behind a long one of which the head was enough.
		at = max(at, p.air.ring[(p.air.head+p.air.n-1)&(len(p.air.ring)-1)].at)
	}
	p.air.push(flight{k, at})
	if p.air.n == 1 {
		p.s.At(at, p, evAir)
	}
}

// arrive hands the oldest frame to the peer.
func (p *Port) arrive(now sim.Time) {
	if p.air.n == 0 || p.air.ring[p.air.head].at != now {
		return // the link went down meanwhile
	}
	f := p.air.pop()
	if p.air.n > 0 {
		p.s.At(p.air.ring[p.air.head].at, p, evAir)
	}
	p.peer.take(now, f.p)
}

// take is the receiving side of a link.
func (p *Port) take(now sim.Time, k *sim.Packet) {
	if p.Lose != nil && p.Lose(k) {
		p.node.Lost(now, p.index, k, result.DropFault)
		return
	}
	if (p.cfg.ErrorRate != 0 || p.faulty) && p.cfg.Rand.Below(p.errorRate(k)) {
		k.Bad = true
	}
	p.s.Note(p.id<<32 | uint64(k.Bytes)<<4 | uint64(k.Prio))
	if p.Tap != nil {
		p.Tap(now, k, false)
	}
	if k.Bad && !p.cfg.Early {
		p.Stats.Errors++
		p.node.Lost(now, p.index, k, result.DropError)
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
	p.node.Arrive(now, p.index, k)
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
		f := p.air.pop()
		p.peer.node.Lost(now, p.peer.index, f.p, result.DropDown)
	}
	for c := p.control.Pop(); c != nil; c = p.control.Pop() {
		p.s.Pool.Put(c)
	}
}
