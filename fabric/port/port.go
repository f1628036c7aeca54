package port

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// GapBytes is preamble, start of frame delimiter and the least gap between
// frames (802.3 4.4.2): what a frame costs on the link beside its own bytes.
const GapBytes = 20

// Node is what a port belongs to. Packets are given with the call.
type Node interface {
	// Pull returns the next packet that may leave by the port, none of a class
	// in stopped, or nil. more says that it may be worth asking again when
	// that one has left; who answers nil or false calls Kick later.
	Pull(now sim.Time, port int, stopped uint8) (p *sim.Packet, more bool)
	// Arrive takes a packet that came in by the port.
	Arrive(now sim.Time, port int, p *sim.Packet)
	// Stopped says that the set of classes that the neighbour stops has
	// changed. The port asks for a packet by itself.
	Stopped(now sim.Time, port int, classes uint8)
	// Lost takes a packet that the link has lost on its way to this port
	// (DropError, DropDown), or that had to leave by it (DropDown).
	Lost(now sim.Time, port int, p *sim.Packet, why result.DropReason)
}

// Config describes one end of a link.
type Config struct {
	Rate  sim.Rate
	Delay sim.Time // one way
	// Gap is what each frame costs beside its bytes: GapBytes, or 0 where the
	// other side of a comparison does not count it; less than 256.
	Gap int
	// Early hands a packet to this end's node when its first HeadBytes are
	// there; its Tail tells when the rest is (cut-through). Otherwise Arrive is
	// called with the last bit.
	Early bool
	// ErrorRate is how many of 2^32 packets arrive here corrupted.
	ErrorRate uint64
	// Rand is needed for an ErrorRate.
	Rand *sim.Rand
	// Quanta is what the PFC frames of this end ask for; 0 means 65535.
	Quanta uint16
	// Global makes this end stop its neighbour with 802.3x PAUSE.
	Global bool
}

// HeadBytes is how much of a frame a cut-through switch must have seen.
const HeadBytes = 64

// Port is one end of a link. Create two with New and join them with Connect.
//
// It is two cache lines of 64 bytes, and points to what is needed seldom: in a
// large fabric a port is cold whenever a frame comes to it, each line is a miss,
// and so is each page.
type Port struct {
	// Both of sending and of receiving.
	s    *sim.Sim
	node Node
	// Lose takes packets that arrive here out of the way when it says true: faults
	// on demand; nil for none. It borrows the packet.
	Lose func(p *sim.Packet) bool
	// Tap sees every frame that begins to leave (out) or arrives; nil for none.
	// It borrows the packet.
	Tap func(now sim.Time, p *sim.Packet, out bool)
	*rest
	index    int32
	id       uint32
	classes  uint8 // stopped, as the node knows it
	down     bool
	waiting  bool // an event at busy is scheduled
	urgent   bool // there are control frames
	early    bool // this end takes packets by their head
	metered  bool // meter is not nil
	corrupts bool // frames may arrive here corrupted
	gap      uint8

	// Of sending alone.
	busy    sim.Time // the present frame has left then
	peer    *Port
	delay   sim.Time
	air     air
	tx      count  // what has left of priority first
	perByte int32  // picoseconds that a byte takes, if that is a whole number
	epoch   uint16 // how often what was in the air was lost, modulo 65,536
	ahead   bool   // the other end takes packets by their head
	first   uint8
}

// rest is the part of a port that frames of the usual kind do not need.
type rest struct {
	Stats Stats
	// Refreshed is called when the classes that this end stops are told so again;
	// nil for nobody.
	Refreshed func(now sim.Time, classes uint8)

	others      [8]count // what has left of other priorities
	lost        [8]count // data that left and did not come to the other end
	controls    count    // control frames that left
	longer      sim.Time // time spent sending, if a byte takes no whole picoseconds
	rate        sim.Rate
	rand        *sim.Rand
	quanta      uint16
	global      bool
	fc          FlowControl
	meter       Meter
	control     sim.Queue
	downAt      sim.Time
	lastDue     sim.Time  // when the last that was sent arrives, if ahead
	errors      [8]uint64 // see SetErrors
	errorsOfAll uint64    // Config.ErrorRate
	stop        stopper
	pause       pauseClock
}

// noPrio is none of the eight.
const noPrio = 8

// The events of a port.
const (
	evFree    uint64 = iota // the transmitter is free
	evAir                   // the oldest frame on its way from here arrives
	evRefresh               // what this end stops wants to be told again
	evFC                    // an event of the flow control; its argument above
	evShift   = 8
)

// New returns port index of a node. fc says what may leave; nil lets everything.
func New(s *sim.Sim, node Node, index int, id uint64, cfg Config, fc FlowControl) *Port {
	p := new(Port)
	p.Init(s, node, index, id, cfg, fc)
	return p
}

// Init makes a port as New does, in memory that the caller has: ports that lie
// together cost fewer misses of the address translation.
func (p *Port) Init(s *sim.Sim, node Node, index int, id uint64, cfg Config, fc FlowControl) {
	if cfg.Quanta == 0 {
		cfg.Quanta = 65535
	}
	*p = Port{
		s: s, node: node, index: int32(index), id: uint32(id), delay: cfg.Delay, gap: uint8(cfg.Gap), first: noPrio,
		early: cfg.Early, corrupts: cfg.ErrorRate != 0,
		rest: &rest{fc: fc, rate: cfg.Rate, rand: cfg.Rand, quanta: cfg.Quanta, global: cfg.Global, errorsOfAll: cfg.ErrorRate},
	}
	const bits = 8 * int64(sim.Second)
	if cfg.Rate > 0 && bits%int64(cfg.Rate) == 0 && bits/int64(cfg.Rate) < 1<<31 {
		p.perByte = int32(bits / int64(cfg.Rate))
	}
	if fc != nil {
		p.meter, p.metered = fc.(Meter)
		fc.Attach(p)
	}
}

// Connect joins the two ends of a link.
func Connect(a, b *Port) {
	a.peer, b.peer = b, a
	a.ahead, b.ahead = b.early, a.early
}

// Index returns the number of the port at its node.
func (p *Port) Index() int { return int(p.index) }

// Peer returns the other end.
func (p *Port) Peer() *Port { return p.peer }

// Rate returns the speed of the link.
func (p *Port) Rate() sim.Rate { return p.rate }

// Delay returns the one-way delay of the link.
func (p *Port) Delay() sim.Time { return p.delay }

// Classes returns the classes that the neighbour stops, bit by priority.
func (p *Port) Classes() uint8 { return p.classes }

// Busy returns the instant at which the present frame has left.
func (p *Port) Busy() sim.Time { return p.busy }

// SetErrors says how many of 2^32 frames of each priority arrive here corrupted
// beside what Config.ErrorRate says of all; the greater holds. A control frame
// counts as the worst of the priorities that it is about (PAUSE: all). The port
// must have been given a Rand.
func (p *Port) SetErrors(rates [8]uint64) {
	p.errors = rates
	p.corrupts = p.errorsOfAll != 0 || rates != [8]uint64{}
}

// errorRate is how many of 2^32 frames like k arrive here corrupted.
func (p *Port) errorRate(k *sim.Packet) uint64 {
	rate := p.errorsOfAll
	m := uint8(1) << (k.Prio & 7)
	switch k.Kind {
	case sim.KindPFC:
		m = k.Enable
	case sim.KindPause:
		m = 0xFF
	case sim.KindRoCE, sim.KindTCP:
	}
	for ; m != 0; m &= m - 1 {
		rate = max(rate, p.errors[lowest(m)])
	}
	return rate
}

// DownFor returns how long the link has been down in all, up to now.
func (p *Port) DownFor(now sim.Time) sim.Time {
	if p.down {
		return p.Stats.Down + now - p.downAt
	}
	return p.Stats.Down
}

// InAir returns how many packets are on their way from this end, and how many
// control frames wait to be sent.
func (p *Port) InAir() int {
	n := p.control.Len()
	for k := p.air.head; k != nil; k = k.Next {
		n++
	}
	return n
}

// Down reports whether the link is down.
func (p *Port) Down() bool { return p.down }

// last is how long n bytes and the gap take.
func (p *Port) last(n int) sim.Time {
	n += int(p.gap)
	if p.perByte != 0 {
		return sim.Time(n) * sim.Time(p.perByte)
	}
	return p.rate.For(n)
}

// Kick says that the node has something to send.
func (p *Port) Kick(now sim.Time) {
	switch {
	case p.down || p.waiting:
	case now < p.busy:
		p.waiting = true
		p.s.At(p.busy, p, evFree)
	default:
		p.transmit(now)
	}
}

// Control gives the port a control frame, which goes ahead of data.
func (p *Port) Control(now sim.Time, c *sim.Packet) {
	if p.down {
		p.node.Lost(now, int(p.index), c, result.DropDown)
		return
	}
	p.control.Push(c)
	p.urgent = true
	p.Kick(now)
}

// Handle implements sim.Handler.
func (p *Port) Handle(now sim.Time, arg uint64) {
	switch arg & (1<<evShift - 1) {
	case evFree:
		p.waiting = false
		if !p.down {
			p.transmit(now)
		}
	case evAir:
		p.arrive(now, uint16(arg>>evShift))
	case evRefresh:
		p.refresh(now)
	case evFC:
		p.fc.Handle(now, arg>>evShift)
	}
}

// transmit begins to send the next frame, if there is one.
func (p *Port) transmit(now sim.Time) {
	more := true
	var k *sim.Packet
	if p.urgent {
		k = p.control.Pop()
		p.urgent = p.control.Front() != nil
		p.controls.add(k)
	} else {
		if k, more = p.node.Pull(now, int(p.index), p.classes); k == nil {
			return
		}
		if p.metered {
			p.meter.Sent(now, k)
		}
		p.sent(k)
	}
	t := p.last(int(k.Bytes))
	p.busy = now + t
	if k.Tail > p.busy {
		p.busy = k.Tail // a cut-through frame leaves no faster than it comes
	}
	if p.perByte == 0 {
		p.longer += t
	}
	if p.Tap != nil {
		p.Tap(now, k, true)
	}
	p.launch(now, k)
	if more {
		p.waiting = true
		p.s.At(p.busy, p, evFree)
	}
}
