package swtch

import (
	"math"
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// egress is the sending side of a port. Its queues are made when they are first
// needed: most priorities are never used. What every packet needs is one cache
// line of 64 bytes, and the next is that of the queue that was made first, which
// lies within.
type egress struct {
	port     *port.Port
	conf     *portConf
	ready    uint8 // classes with packets
	stopped  uint8 // classes that the neighbour stops
	ignore   uint8 // ... but the watchdog does not obey
	shut     uint8 // classes whose packets the watchdog drops
	cur      uint8 // class whose turn it is
	asks     bool  // the port will ask by itself
	down     bool  // nothing may be routed here
	firstOf  uint8 // the class that has first; noClass: none yet
	lossless uint8 // classes with PFC
	markOut  uint8 // classes that mark on the way out
	markIn   uint8 // classes that mark on the way in
	strict   uint8 // classes that go before all others
	mtu      int32 // greatest frame
	deficit  [8]int32

	first queue
	q     [8]*queue
	_     [32]byte
}

// noClass is none of the eight.
const noClass = 8

// portConf is the configuration of a port, shared by all that have the same.
type portConf struct {
	lossless uint8
	strict   uint8
	mtu      int32
	markOut  uint8
	markIn   uint8
	quantum  [8]int32
	queue    [8]Queue
	group    [8]groupConf
}

// queue is one class of an egress. What every packet needs is in front, in one
// cache line.
type queue struct {
	fifo sim.Queue
	// Bytes × picoseconds up to at, in 128 bits of which areaHi has the upper.
	at     sim.Time
	areaLo uint64
	peak   int64
	// Marking: at most kmin bytes none, above kmax all, between up to pmax/2^32.
	kmin int64

	kmax   int64
	pmax   uint64
	areaHi uint64
	marked uint64
	held   int64 // see Switch.holds
	limit  Limit
	min    int64
	drops  uint64 // here
	rx     uint64 // of this port as an ingress
	watch  watch
	wred   bool // what cannot be marked is dropped on the way in
}

// lasted accounts for the bytes that have waited until now.
func (q *queue) lasted(now sim.Time) {
	bytes := q.fifo.Bytes()
	if dt := now - q.at; dt > 0 && bytes > 0 {
		hi, lo := bits.Mul64(uint64(bytes), uint64(dt))
		sum, c := bits.Add64(q.areaLo, lo, 0)
		q.areaLo = sum
		if hi += c; hi != 0 {
			q.areaHi += hi
		}
	}
	q.at = now
}

// mean returns the average of the bytes from instant 0 to now; for output only.
func (q *queue) mean(now sim.Time) float64 {
	if now <= 0 {
		return 0
	}
	c := *q
	c.lasted(now)
	return (float64(float64(c.areaHi)*(1<<64)) + float64(c.areaLo)) / float64(now)
}

// holds returns the bytes of buffer, in cells, of packets in a queue and on the
// way to it. They are counted for themselves only where that is not what waits
// in it.
func (w *Switch) holds(q *queue) int64 {
	if w.counts {
		return q.held
	}
	return q.fifo.Bytes()
}

// newConf makes what the ports with a configuration share.
func newConf(c *PortConfig, k *confKey) *portConf {
	f := &portConf{mtu: math.MaxInt32, queue: c.Queue}
	if c.MTU > 0 {
		f.mtu = int32(c.MTU)
	}
	for i := range c.Group {
		f.group[i].Group = c.Group[i]
		f.group[i].Reserved = cells(c.Group[i].Reserved, k.cell)
	}
	for i := range c.Queue {
		if c.Queue[i].Lossless {
			f.lossless |= 1 << i
			f.group[k.groups[i]].lossless = true
		}
		if c.Queue[i].Strict {
			f.strict |= 1 << i
		}
		if e := &c.Queue[i].ECN; e.KMax > 0 && e.AtEnqueue {
			f.markIn |= 1 << i
		} else if e.KMax > 0 {
			f.markOut |= 1 << i
		}
	}
	f.quanta(k.quantum)
	return f
}

// initPorts makes the egresses.
func (w *Switch) initPorts(m *Memory) {
	w.out, w.in = m.ports(w.cfg.Ports)
	k := confKey{w.cfg.Buffer.Cell, w.cfg.Quantum, w.cfg.PrioToGroup}
	for i := range w.out {
		e := &w.out[i]
		e.conf = m.confOf(&w.cfg, i, &k)
		e.firstOf, e.lossless, e.mtu, e.strict = noClass, e.conf.lossless, e.conf.mtu, e.conf.strict
		e.markIn, e.markOut = e.conf.markIn, e.conf.markOut
		for l := e.lossless; l != 0; l &= l - 1 {
			w.groups[w.cfg.PrioToGroup[lowest(l)]] |= l & -l
		}
	}
}

// queue returns a class of an egress.
func (w *Switch) queue(out int, c uint8) *queue {
	e := &w.out[out]
	if e.firstOf == c {
		return &e.first
	}
	if q := e.q[c]; q != nil {
		return q
	}
	return w.openQueue(out, c)
}

// open returns a class of an egress that has been used.
func (e *egress) open(c uint8) *queue {
	if e.firstOf == c {
		return &e.first
	}
	return e.q[c]
}

func (w *Switch) openQueue(out int, c uint8) *queue {
	e := &w.out[out]
	conf := &e.conf.queue[c]
	var q *queue
	if e.firstOf == noClass {
		e.firstOf, q = c, &e.first
	} else {
		q = new(queue)
	}
	*q = queue{
		kmin: conf.ECN.KMin, kmax: conf.ECN.KMax, pmax: uint64(conf.ECN.PMax),
		wred:  conf.ECN.KMax > 0 && !conf.Lossless && !conf.NoDrop,
		limit: conf.Limit, min: conf.Reserved,
	}
	if conf.ECN.PMax == math.MaxUint32 {
		q.pmax = 1 << 32
	}
	e.q[c] = q
	return q
}

// takes says whether a lossy queue takes a packet.
func (w *Switch) takes(q *queue, p *sim.Packet) (result.DropReason, bool) {
	if q.wred && p.ECN == 0 && q.marks(w.rand) {
		return result.DropWRED, false
	}
	if q.limit.Mode != Unlimited {
		if over := w.holds(q) + w.mmu.cost(p) - q.min; over > 0 && over > q.limit.of(w.mmu.free()) {
			return result.DropNoBuffer, false
		}
	}
	return 0, true
}

// enqueue gives a packet to its queue.
func (w *Switch) enqueue(now sim.Time, out int, q *queue, p *sim.Packet) {
	e := &w.out[out]
	bit := uint8(1) << p.Prio
	if e.markIn&bit != 0 && q.marks(w.rand) {
		q.mark(p)
	}
	q.lasted(now)
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

// dequeue takes the oldest packet of a class out of its queue, not yet out of
// the buffer.
func (e *egress) dequeue(now sim.Time, c uint8) *sim.Packet {
	q := e.open(c)
	q.lasted(now)
	p := q.fifo.Pop()
	if q.fifo.Front() == nil {
		e.ready &^= 1 << c
		e.deficit[c] = 0
	}
	return p
}
