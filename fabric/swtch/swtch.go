package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Router knows the ways of a topology.
type Router interface {
	// Ports returns the ports of switch sw by which endpoint dst is reached in
	// the fewest hops, in order; none if it cannot be reached. The slice is
	// borrowed.
	Ports(sw, dst int32) []uint16
}

// Log is told what is worth a line. None of it happens on the way of a packet
// that passes. An implementation must not call the switch.
type Log interface {
	// Pause is called when the switch stops a neighbour or lets it go on.
	Pause(result.Pause)
	// Drop is called for each packet that is lost.
	Drop(result.Drop)
	// Storm is called when the watchdog finds a class stuck, with To = Never,
	// and again with the same From when that is over.
	Storm(result.Storm)
}

// Switch is one switch. It implements port.Node and sim.Handler. What every packet
// needs is in front, in three cache lines.
type Switch struct {
	*rules
	out   []egress
	in    []ingress // see ingress
	id    int32
	downs int32 // ports to which nothing may be routed

	routes Router
	seed   uint64 // of ECMP
	mmu    mmu
	Stats  Stats

	s      *sim.Sim
	rand   *sim.Rand
	log    Log
	cfg    Config
	groups [8]uint8 // the lossless priorities of each group
	held   held
	lines  []line // nil: a packet is queued at once
	_      [40]byte
}

// The events of a switch.
const (
	evLine  uint64 = iota + 1 // the oldest packet of a line is due
	evWatch                   // the watchdog looks at a class
	evXON                     // an ingress may go on
	evShift = 4
)

// New returns a switch without ports. routes may be shared; log may be nil.
func New(s *sim.Sim, cfg Config, routes Router, log Log) (*Switch, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Watchdog.Restore == 0 {
		cfg.Watchdog.Restore = cfg.Watchdog.Detect
	}
	m := cfg.Memory
	if m == nil {
		m = &Memory{alone: true}
	}
	w := m.newSwitch()
	w.s, w.cfg, w.routes, w.log, w.rand = s, cfg, routes, log, s.Rand("ecn "+cfg.Name)
	w.id, w.seed, w.rules = cfg.ID, cfg.ECMP.Seed, m.rulesOf(&cfg)
	w.initPorts(m)
	w.cfg.Port = nil
	w.initBuffer()
	w.initHeld()
	w.initLines()
	return w, nil
}

// SetPort joins port i, made by port.New with this switch as its node.
func (w *Switch) SetPort(i int, p *port.Port) { w.out[i].port = p }

// ID returns the node's number.
func (w *Switch) ID() int32 { return w.cfg.ID }

// Name returns the node's name.
func (w *Switch) Name() string { return w.cfg.Name }

// Arrive implements [port.Node].
func (w *Switch) Arrive(now sim.Time, in int, p *sim.Packet) {
	w.Stats.RxBytes += uint64(p.Bytes)
	w.Stats.RxPackets++
	if p.Bad && w.cutThrough {
		w.out[in].port.Stats.Errors++ // its FCS comes too late to hold it back
	}
	prio := w.classify(p)
	p.Prio, p.Pool, p.In = prio, w.toGroup[prio], int16(in)
	if why, ok := w.mayPass(p); !ok {
		w.drop(now, -1, p, why)
		return
	}
	out := w.route(p)
	if out < 0 {
		w.drop(now, -1, p, result.DropNoRoute)
		return
	}
	e := &w.out[out]
	if e.down {
		w.drop(now, out, p, result.DropDown)
		return
	}
	if p.Bytes > e.mtu {
		w.drop(now, out, p, result.DropMTU)
		return
	}
	q := w.queue(out, prio)
	if bit := uint8(1) << prio; e.shut&bit != 0 {
		q.watch.dropped++
		w.drop(now, out, p, result.DropWatchdog)
		return
	} else if e.lossless&bit == 0 {
		if why, ok := w.takes(q, p); !ok {
			w.drop(now, out, p, why)
			return
		}
	}
	if !w.admit(now, p, out, q) {
		why := result.DropNoBuffer
		if w.ingress(in<<3 | int(p.Pool)).conf.lossless {
			why = result.DropHeadroom
		}
		w.drop(now, -1, p, why)
		return
	}
	if w.delays {
		w.delay(now, out, p)
		return
	}
	w.enqueue(now, out, q, p)
}

// Pull implements [port.Node].
func (w *Switch) Pull(now sim.Time, out int, stopped uint8) (*sim.Packet, bool) {
	e := &w.out[out]
	ok := e.ready &^ (stopped &^ e.ignore)
	if ok == 0 {
		e.asks = false
		return nil, false
	}
	c := e.pick(ok)
	q := e.open(c)
	p := e.dequeue(now, c)
	if e.markOut&(1<<c) != 0 && q.marks(w.rand) {
		q.mark(p)
	}
	w.Stats.TxBytes += uint64(p.Bytes)
	w.release(now, p, out, q)
	e.asks = ok&e.ready != 0
	return p, e.asks
}

// Stopped implements [port.Node].
func (w *Switch) Stopped(now sim.Time, out int, classes uint8) {
	e := &w.out[out]
	was := e.stopped
	e.stopped = classes
	for m := was ^ classes; m != 0; m &= m - 1 {
		c := lowest(m)
		if classes&(1<<c) != 0 {
			w.stopped(now, out, c)
		} else {
			w.resumed(now, out, c)
		}
	}
}

// Lost implements [port.Node].
func (w *Switch) Lost(now sim.Time, port int, p *sim.Packet, why result.DropReason) {
	if p.Kind != sim.KindPFC && p.Kind != sim.KindPause {
		w.logDrop(now, port, p, why)
	}
	w.s.Pool.Put(p)
}

// Handle implements sim.Handler.
func (w *Switch) Handle(now sim.Time, arg uint64) {
	i := int(arg >> evShift)
	switch arg & (1<<evShift - 1) {
	case evLine:
		w.runLine(now, i)
	case evWatch:
		w.watch(now, i>>3, uint8(i&7))
	case evXON:
		w.maybeXON(now, i)
	}
}
