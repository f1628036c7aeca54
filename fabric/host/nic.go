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

// NIC is one network adapter with one port. It implements port.Node.
type NIC struct {
	s    *sim.Sim
	cfg  Config
	boss Boss
	port *port.Port
	dev  *rnic.Adapter
	pd   mem.PD
	mr   *mem.Region
	cq   *rnic.CQ

	conns  map[uint32]*Conn // by local QPN
	lastQP uint32
	last   *Conn

	wake    sim.Time // an event for the adapter is scheduled then
	run     frame.Run
	rx      frame.Rx
	wcs     [16]ib.WC
	gate    sim.Time // the packet rate allows the next packet then
	gateOn  bool
	perPkt  sim.Time
	want    uint16 // source port of the connection that is being made
	lossy   Lossy
	turn    bool // the lossy class is next
	in      receiver
	Stats   Stats
	stopped uint8
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
	n := &NIC{s: s, cfg: cfg, boss: boss, conns: make(map[uint32]*Conn), wake: sim.Never}
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
		DCQCN: cfg.DCQCN, LineRate: uint64(cfg.Rate), CNPPrio: cfg.CNPPrio, CNPTOS: cfg.CNPDSCP << 2,
		Pacing: rnic.Pacing{Burst: -1, Overhead: overhead},
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
	n.run.Buf = make([]byte, 64)
	n.in.init(&n.cfg)
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
func (n *NIC) SetLossy(l Lossy) { n.lossy = l }

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
		k := n.cq.Poll(n.wcs[:])
		for i := range n.wcs[:k] {
			wc := &n.wcs[i]
			c := n.conns[uint32(wc.QPN)]
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
		if k < len(n.wcs) {
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
