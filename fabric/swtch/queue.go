package swtch

import (
	"math"
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// egress is the sending side of a port. Its queues are made when they are first
// needed: most priorities are never used.
type egress struct {
	port    *port.Port
	conf    *portConf
	ready   uint8 // classes with packets
	stopped uint8 // classes that the neighbour stops
	ignore  uint8 // ... but the watchdog does not obey
	shut    uint8 // classes whose packets the watchdog drops
	cur     uint8 // class whose turn it is
	asks    bool  // the port will ask by itself
	down    bool  // nothing may be routed here
	deficit [8]int32
	q       [8]*queue
}

// portConf is the configuration of a port, shared by all that have the same.
type portConf struct {
	lossless uint8
	strict   uint8
	mtu      int32
	quantum  [8]int32
	queue    [8]Queue
	group    [8]groupConf
}

// queue is one class of an egress. What every packet needs is in front.
type queue struct {
	fifo sim.Queue
	held int64 // bytes of buffer, in cells, of packets here and on the way here

	// Marking: at most kmin bytes none, above kmax all, between up to pmax/2^32.
	kmin, kmax int64
	pmax       uint64

	area area
	peak int64
	// markOut and markIn: it marks on the way out, on the way in. wred: what
	// cannot be marked is dropped on the way in.
	markOut, markIn, wred bool
	marked                uint64

	limit Limit
	min   int64
	drops uint64 // here
	rx    uint64 // of this port as an ingress
	watch watch
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

// mean returns the average over a span from instant 0; for output only.
func (a *area) mean(span sim.Time) float64 {
	if span <= 0 {
		return 0
	}
	return (float64(float64(a.hi)*(1<<64)) + float64(a.lo)) / float64(span)
}

// confOf returns what the ports with a configuration share.
func (w *Switch) confOf(c *PortConfig) *portConf {
	f := &portConf{mtu: math.MaxInt32, queue: c.Queue}
	if c.MTU > 0 {
		f.mtu = int32(c.MTU)
	}
	for i := range c.Group {
		f.group[i].Group = c.Group[i]
		f.group[i].Reserved = cells(c.Group[i].Reserved, w.cfg.Buffer.Cell)
	}
	for i := range c.Queue {
		if c.Queue[i].Lossless {
			f.lossless |= 1 << i
			f.group[w.cfg.PrioToGroup[i]].lossless = true
			w.groups[w.cfg.PrioToGroup[i]] |= 1 << i
		}
		if c.Queue[i].Strict {
			f.strict |= 1 << i
		}
	}
	f.quanta(w.cfg.Quantum)
	return f
}

// initPorts makes the egresses.
func (w *Switch) initPorts() {
	w.out = make([]egress, w.cfg.Ports)
	var seen []PortConfig
	var confs []*portConf
	for i := range w.out {
		c := w.cfg.port(i)
		for k := range seen {
			if seen[k] == c {
				w.out[i].conf = confs[k]
				break
			}
		}
		if w.out[i].conf == nil {
			seen, confs = append(seen, c), append(confs, w.confOf(&c))
			w.out[i].conf = confs[len(confs)-1]
		}
	}
}

// queue returns a class of an egress.
func (w *Switch) queue(out int, c uint8) *queue {
	if q := w.out[out].q[c]; q != nil {
		return q
	}
	return w.openQueue(out, c)
}

func (w *Switch) openQueue(out int, c uint8) *queue {
	conf := &w.out[out].conf.queue[c]
	on := conf.ECN.KMax > 0
	q := &queue{
		kmin: conf.ECN.KMin, kmax: conf.ECN.KMax, pmax: uint64(conf.ECN.PMax),
		markOut: on && !conf.ECN.AtEnqueue, markIn: on && conf.ECN.AtEnqueue,
		wred:  on && !conf.Lossless && !conf.NoDrop,
		limit: conf.Limit, min: conf.Reserved,
	}
	if conf.ECN.PMax == math.MaxUint32 {
		q.pmax = 1 << 32
	}
	w.out[out].q[c] = q
	return q
}

// takes says whether a lossy queue takes a packet.
func (w *Switch) takes(q *queue, p *sim.Packet) (result.DropReason, bool) {
	if q.wred && p.ECN == 0 && q.marks(w.rand) {
		return result.DropWRED, false
	}
	if q.limit.Mode != Unlimited {
		if over := q.held + w.mmu.cost(p) - q.min; over > 0 && over > q.limit.of(w.mmu.free()) {
			return result.DropNoBuffer, false
		}
	}
	return 0, true
}

// enqueue gives a packet to its queue.
func (w *Switch) enqueue(now sim.Time, out int, q *queue, p *sim.Packet) {
	e := &w.out[out]
	if q.markIn && q.marks(w.rand) {
		q.mark(p)
	}
	q.area.add(now, q.fifo.Bytes())
	q.fifo.Push(p)
	q.peak = max(q.peak, q.fifo.Bytes())
	if bit := uint8(1) << p.Prio; e.ready&bit == 0 {
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
	q := e.q[c]
	q.area.add(now, q.fifo.Bytes())
	p := q.fifo.Pop()
	if q.fifo.Front() == nil {
		e.ready &^= 1 << c
		e.deficit[c] = 0
	}
	return p
}
