package host

import (
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/rnic"
)

// Boss is told what becomes of work and of packets.
type Boss interface {
	// Done says that a message of a connection has ended: that of its flow, with
	// the ID it was posted under.
	Done(now sim.Time, c *Conn, flow int32, id uint64, status ib.WCStatus)
	// Delivered says that n bytes of user data of a flow arrived in order.
	Delivered(now sim.Time, c *Conn, flow int32, n int)
	// Marked says that a data packet arrived with CE.
	Marked(now sim.Time, flow int32)
	// CNP says that a congestion notification for a flow leaves (sent) or has
	// arrived: a CNP packet, or an acknowledgement with BECN.
	CNP(now sim.Time, flow int32, sent bool)
	// NAK says that a negative acknowledgement for a flow has arrived.
	NAK(now sim.Time, flow int32)
	Drop(d result.Drop)
	Pause(p result.Pause)
}

// NIC is one network adapter with one port. It implements port.Node. What every
// packet needs is in front.
type NIC struct {
	s    *sim.Sim
	boss Boss
	port *port.Port
	dev  *rnic.Adapter
	cq   *rnic.CQ
	x    *scratch
	wake sim.Time // an event for the adapter is scheduled then

	conns    connTable
	endpoint int32
	header   int32 // Config.Header and Config.Control
	control  int32
	limited  bool // there is a packet rate
	mixed    bool // there is a lossy class
	turn     bool // the lossy class is next
	slow     bool // packets wait before the adapter gets them
	noECT    bool
	tagged   bool
	v1       bool
	gateOn   bool
	stopped  uint8
	want     uint16 // source port of the connection that is being made

	lossy  Lossy
	perPkt sim.Time // of the packet rate
	gate   sim.Time // the packet rate allows the next packet then
	in     receiver
	cfg    Config
	pd     mem.PD
	mr     *mem.Region
	Stats  Stats
	_      [104]byte // to an odd number of lines
}

// Memory is where the NICs of one run lie, in pieces that begin at cache lines,
// and what they need between the beginning and the end of a call: one for all, so
// that it stays in the fastest cache. The zero Memory is ready.
type Memory struct {
	scratch scratch
	nics    []NIC
}

type scratch struct {
	rnic rnic.Scratch
	run  frame.Run
	rx   frame.Rx
	buf  [64]byte
	wcs  [16]ib.WC
}

// piece is how many NICs are made at a time: more than 32 KB.
const piece = 64

func (m *Memory) nic() *NIC {
	if len(m.nics) == 0 {
		m.nics = make([]NIC, piece)
	}
	n := &m.nics[0]
	m.nics = m.nics[1:]
	return n
}

// Lossy is a transport beside RDMA, of the lossy class; see package tcp.
type Lossy interface {
	// Pull returns the next segment, or nil.
	Pull(now sim.Time) *sim.Packet
	// Arrive takes a segment.
	Arrive(now sim.Time, p *sim.Packet)
	// Prio is the priority that its segments are sent in.
	Prio() uint8
}

// The events of a NIC.
const (
	evWake uint64 = iota // the adapter wants to be called
	evGate               // the packet rate allows the next packet
	evDrain
	evServe // + queue number << 8
)

// addrBase is where the phantom memory of every NIC begins.
const addrBase = 1 << 20

// memBytes is the phantom memory of a NIC.
const memBytes = 1 << 42

// New makes a NIC.
func New(s *sim.Sim, cfg Config, boss Boss) (*NIC, error) {
	m := cfg.Memory
	if m == nil {
		m = &Memory{nics: make([]NIC, 1)}
	}
	n := m.nic()
	*n = NIC{
		s: s, cfg: cfg, boss: boss, x: &m.scratch, wake: sim.Never, endpoint: cfg.Endpoint, header: int32(cfg.Header), control: int32(cfg.Control),
		limited: cfg.PacketRate > 0, noECT: cfg.NoECT, tagged: cfg.Tagged, v1: cfg.V1,
	}
	n.x.run.Buf = n.x.buf[:]
	rnd := s.Rand(fmt.Sprintf("nic %d", cfg.Endpoint))
	gid := ib.GIDFromAddr(cfg.Addr)
	overhead := ethernetBytes
	if cfg.Header > 0 {
		overhead = cfg.Header - bthBytes
	}
	dev, err := rnic.New(rnic.Config{
		Name: cfg.Name,
		GIDs: []rnic.GIDEntry{{GID: gid, Type: ib.GIDTypeRoCEv2, Netdev: fmt.Sprintf("eth%d", cfg.Port)}},
		Wire: rnic.WireCaps{Encap: frame.UDPPayload, MTU: cfg.MTU.Bytes() + 64, Phantom: true},
		Rand: rnd.Uint32, NoLossWindow: true, MixQPNs: false,
		Payload: cfg.Payload, AckEvery: cfg.AckEvery,
		Limits: rnic.Limits{MaxCQE: cqDepth, MaxMRSize: memBytes},
		Path: func(netip.Addr, netip.Addr, uint16) (uint16, int, error) {
			return n.want, 0, nil
		},
		DCQCN: cfg.DCQCN, LineRate: uint64(cfg.Rate), CNPPrio: cfg.CNPPrio, CNPTOS: cfg.CNPDSCP << 2, ECT: true,
		Pacing: rnic.Pacing{Burst: -1, Overhead: overhead}, Scratch: &n.x.rnic,
	})
	if err != nil {
		return nil, err
	}
	n.dev = dev
	if n.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	access := ib.LocalWrite | ib.RemoteWrite | ib.RemoteRead | ib.RemoteAtomic
	if n.mr, err = dev.RegisterPhantomMR(n.pd, memBytes, addrBase, access); err != nil {
		return nil, err
	}
	if n.cq, err = dev.CreateCQ(cqDepth); err != nil {
		return nil, err
	}
	if cfg.PacketRate > 0 {
		n.perPkt = sim.Second / sim.Time(cfg.PacketRate)
	}
	n.in.init(&n.cfg)
	n.slow = n.cfg.DrainRate != 0 || n.cfg.RxRate != 0 || n.cfg.RxPackets != 0
	return n, nil
}

const cqDepth = 64

// SetPort gives the NIC its port.
func (n *NIC) SetPort(p *port.Port) { n.port = p }

// Port returns the port.
func (n *NIC) Port() *port.Port { return n.port }

// Adapter returns the adapter.
func (n *NIC) Adapter() *rnic.Adapter { return n.dev }

// Config returns what the NIC was made from, defaults filled in.
func (n *NIC) Config() Config { return n.cfg }

// SetLossy gives the NIC a transport of the lossy class.
func (n *NIC) SetLossy(l Lossy) { n.lossy, n.mixed = l, l != nil }

// Kick says that the lossy class has something to send.
func (n *NIC) Kick(now sim.Time) { n.port.Kick(now) }

// Handle implements sim.Handler.
func (n *NIC) Handle(now sim.Time, arg uint64) {
	switch arg & 0xFF {
	case evWake:
		if now != n.wake {
			return // there is an earlier one by now, or it has been
		}
		n.wake = sim.Never
		n.dev.Advance(now.Clock())
		n.after(now)
	case evGate:
		n.gateOn = false
		n.port.Kick(now)
	case evDrain:
		n.drained(now)
	case evServe:
		n.served(now, int(arg>>8))
	}
}

// after looks at what a call of the adapter has changed.
func (n *NIC) after(now sim.Time) {
	if n.cq.Len() > 0 {
		n.poll(now)
	}
	if n.dev.Pending() {
		n.port.Kick(now)
	}
	n.arm()
}

// arm schedules the adapter's next call.
func (n *NIC) arm() {
	d := n.dev.Deadline()
	if d == clock.Never {
		return
	}
	// What is due already counts from the present picosecond on.
	if t := max(sim.FromClock(d), n.s.Now()); t < n.wake {
		n.wake = t
		n.s.At(t, n, evWake)
	}
}

// poll hands completions to their connections.
func (n *NIC) poll(now sim.Time) {
	for {
		k := n.cq.Poll(n.x.wcs[:])
		for i := range n.x.wcs[:k] {
			wc := &n.x.wcs[i]
			c := n.conns.get(uint32(wc.QPN))
			switch {
			case c == nil:
			case wc.ID == recvID:
				if wc.Status == ib.Success {
					c.received(now)
				}
			default:
				c.completed(now, wc)
			}
		}
		if k < len(n.x.wcs) {
			return
		}
	}
}

// Stopped implements port.Node.
func (n *NIC) Stopped(_ sim.Time, _ int, classes uint8) {
	n.stopped = classes
	n.dev.Pause(classes)
}

// Lost implements port.Node.
func (n *NIC) Lost(now sim.Time, _ int, p *sim.Packet, why result.DropReason) {
	n.drop(now, p, why)
}

func (n *NIC) drop(now sim.Time, p *sim.Packet, why result.DropReason) {
	n.boss.Drop(result.Drop{At: now, Node: n.cfg.Node, Port: int32(n.cfg.Port), Flow: p.Flow, Prio: p.Prio, Reason: why, Bytes: p.Bytes})
	n.s.Pool.Put(p)
}

// Storm makes the NIC stop its neighbour in a priority until it is told not to.
func (n *NIC) Storm(now sim.Time, prio uint8, on bool) {
	n.in.storm &^= 1 << (prio & 7)
	if on {
		n.in.storm |= 1 << (prio & 7)
		n.stopNeighbour(now, prio, result.CauseStorm)
		return
	}
	n.resumeNeighbour(now, prio)
}

// LinkUp says that the link is back: a storm says again what the neighbour has
// forgotten.
func (n *NIC) LinkUp(now sim.Time) {
	for m := n.in.storm; m != 0; m &= m - 1 {
		n.stopNeighbour(now, uint8(bits.TrailingZeros8(m)), result.CauseStorm)
	}
}

// Standing tells of a stop that still stands, as the boss was told when it began.
func (n *NIC) Standing(now sim.Time, prio uint8) result.Pause {
	p := result.Pause{
		At: now, Node: n.cfg.Node, Port: int32(n.cfg.Port), Egress: -1, Prio: prio, On: true,
		Cause: result.CauseSlowReceiver, Held: n.in.held, Limit: n.cfg.XOFF,
	}
	if n.in.storm&(1<<(prio&7)) != 0 {
		p.Cause = result.CauseStorm
	}
	return p
}
