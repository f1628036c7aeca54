package swtch

import (
	"math"
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// egress is the sending side of a port.
type egress struct {
	port     *port.Port
	ready    uint8 // classes with packets
	stopped  uint8 // classes that the neighbour stops
	ignore   uint8 // ... but the watchdog does not obey
	shut     uint8 // classes whose packets the watchdog drops
	lossless uint8
	strict   uint8
	cur      uint8 // class whose turn it is
	asks     bool  // the port will ask by itself
	mtu      int32
	deficit  [8]int32
	quantum  [8]int32
	q        [8]queue
}

// queue is one class of an egress.
type queue struct {
	fifo sim.Queue
	held int64 // bytes of buffer, in cells, of packets here and on the way here
	ecn  ECN
	// Whether it marks, or drops what cannot be marked, on the way out and in.
	markOut, markIn, wred bool

	area  area
	peak  int64
	limit Limit
	min   int64

	marked uint64
	drops  uint64
	rx     uint64 // drops by the ingress, of this port and class
	watch  watch
}

// area is bytes × picoseconds, in 128 bits.
type area struct {
	at     sim.Time
	lo, hi uint64
}

func (a *area) add(now sim.Time, bytes int64) {
	if dt := now - a.at; dt > 0 && bytes > 0 {
		hi, lo := bits.Mul64(uint64(bytes), uint64(dt))
		var c uint64
		a.lo, c = bits.Add64(a.lo, lo, 0)
		a.hi += hi + c
	}
	a.at = now
}

// mean returns the average over a span from instant 0.
func (a *area) mean(span sim.Time) float64 {
	if span <= 0 {
		return 0
	}
	sum := float64(float64(a.hi)*math.MaxUint64) + float64(a.lo)
	return sum / float64(span)
}

func (e *egress) init(c *PortConfig) {
	e.mtu = math.MaxInt32
	if c.MTU > 0 {
		e.mtu = int32(min(c.MTU, math.MaxInt32))
	}
	for i := range c.Queue {
		x, q := &c.Queue[i], &e.q[i]
		if x.Lossless {
			e.lossless |= 1 << i
		}
		if x.Strict {
			e.strict |= 1 << i
		}
		q.ecn = x.ECN
		on := x.ECN.KMax > 0
		q.markOut = on && !x.ECN.AtEnqueue
		q.markIn = on && x.ECN.AtEnqueue
		q.wred = on && !x.Lossless && !x.NoDrop
		q.limit, q.min = x.Limit, x.Reserved
	}
	e.quanta(c)
}

// takes says whether a lossy queue takes a packet.
func (w *Switch) takes(q *queue, p *sim.Packet) (result.DropReason, bool) {
	if q.wred && p.ECN == 0 && q.marks(w, p) {
		return result.DropWRED, false
	}
	if q.limit.Mode != Unlimited {
		if over := q.held + w.mmu.cost(p) - q.min; over > 0 && over > q.limit.of(w.mmu.shared-w.mmu.used) {
			return result.DropNoBuffer, false
		}
	}
	return 0, true
}

// enqueue gives a packet to its queue.
func (w *Switch) enqueue(now sim.Time, out int, p *sim.Packet) {
	e := &w.out[out]
	bit := uint8(1) << p.Prio
	q := &e.q[p.Prio]
	if q.markIn && q.marks(w, p) {
		q.mark(p)
	}
	p.At = now
	q.area.add(now, q.fifo.Bytes())
	q.fifo.Push(p)
	q.peak = max(q.peak, q.fifo.Bytes())
	if e.ready&bit == 0 {
		e.ready |= bit
		if e.stopped&bit != 0 {
			w.stopped(now, out, p.Prio)
		}
	}
	if !e.asks {
		e.port.Kick(now)
	}
}

func (q *queue) pop(now sim.Time) *sim.Packet {
	q.area.add(now, q.fifo.Bytes())
	return q.fifo.Pop()
}
