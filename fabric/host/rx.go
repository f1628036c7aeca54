package host

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
)

// receiver is what is between the port and the adapter: a buffer that empties at
// the rate of PCIe into queues, each of which is served at its own rate.
type receiver struct {
	busy   bool // a packet is crossing PCIe
	storm  uint8
	held   int64 // bytes in buffer and queues
	byPrio [8]int64
	pcie   sim.Queue
	queues []rxQueue
}

type rxQueue struct {
	q    sim.Queue
	busy bool
}

// RxQueueStats is what one receive queue has done.
type RxQueueStats struct {
	Packets uint64
	Bytes   uint64
	Busy    sim.Time
}

func (r *receiver) init(c *Config) {
	c.RxQueues = max(c.RxQueues, 1)
	if c.RxBuffer == 0 {
		c.RxBuffer = 1 << 20
	}
	if c.XOFF == 0 {
		c.XOFF = c.RxBuffer / 2
	}
	if c.XON == 0 {
		c.XON = c.XOFF / 2
	}
	r.queues = make([]rxQueue, c.RxQueues)
}

// SetDrain changes the rate of PCIe from now on; 0 is without limit.
func (n *NIC) SetDrain(now sim.Time, rate sim.Rate) {
	n.cfg.DrainRate = rate
	n.slow = true
	n.drain(now)
}

// Held returns the bytes in the receive buffer.
func (n *NIC) Held() int64 { return n.in.held }

// HeldPackets returns the packets in the receive buffer.
func (n *NIC) HeldPackets() int64 {
	k := n.in.pcie.Len()
	for i := range n.in.queues {
		k += n.in.queues[i].q.Len()
	}
	return int64(k)
}

// Arrive implements port.Node.
func (n *NIC) Arrive(now sim.Time, _ int, p *sim.Packet) {
	if p.Dst != n.endpoint {
		n.drop(now, p, result.DropNoRoute)
		return
	}
	if !n.slow {
		n.deliver(now, p)
		return
	}
	r := &n.in
	lossless := n.cfg.Lossless&(1<<p.Prio) != 0
	if r.held+int64(p.Bytes) > n.cfg.RxBuffer {
		why := result.DropHostBuffer
		n.Stats.RxDiscards++
		n.drop(now, p, why)
		return
	}
	r.held += int64(p.Bytes)
	r.byPrio[p.Prio] += int64(p.Bytes)
	n.Stats.RxPeak = max(n.Stats.RxPeak, r.held)
	r.pcie.Push(p)
	if lossless && r.held > n.cfg.XOFF {
		n.stopNeighbour(now, p.Prio, result.CauseSlowReceiver)
	}
	n.drain(now)
}

func (n *NIC) stopNeighbour(now sim.Time, prio uint8, why result.Cause) {
	if n.port.Stop(now, prio) {
		n.boss.Pause(result.Pause{At: now, Node: n.cfg.Node, Port: int32(n.cfg.Port), Egress: -1, Prio: prio, On: true, Cause: why, Held: n.in.held, Limit: n.cfg.XOFF})
	}
}

func (n *NIC) resumeNeighbour(now sim.Time, prio uint8) {
	if n.in.storm&(1<<prio) == 0 && n.port.Resume(now, prio) {
		n.boss.Pause(result.Pause{At: now, Node: n.cfg.Node, Port: int32(n.cfg.Port), Egress: -1, Prio: prio, Held: n.in.held, Limit: n.cfg.XOFF})
	}
}

// drain moves packets over PCIe.
func (n *NIC) drain(now sim.Time) {
	r := &n.in
	for !r.busy && r.pcie.Front() != nil {
		if n.cfg.DrainRate != 0 {
			r.busy = true
			n.s.At(now+n.cfg.DrainRate.For(int(r.pcie.Front().Bytes)), n, evDrain)
			return
		}
		n.enqueue(now, r.pcie.Pop())
	}
}

func (n *NIC) drained(now sim.Time) {
	r := &n.in
	r.busy = false
	if p := r.pcie.Pop(); p != nil {
		n.enqueue(now, p)
	}
	n.drain(now)
}

// enqueue gives a packet to its receive queue.
func (n *NIC) enqueue(now sim.Time, p *sim.Packet) {
	i := n.rxQueue(p)
	q := &n.in.queues[i]
	q.q.Push(p)
	if !q.busy {
		n.serve(now, i)
	}
}

// rxQueue chooses the receive queue of a packet.
func (n *NIC) rxQueue(p *sim.Packet) int {
	k := uint64(n.cfg.RxQueues)
	if k == 1 || n.cfg.RSS == RSSOff {
		return 0
	}
	h := sim.Mix(uint64(uint32(p.Src))<<32 | uint64(uint32(p.Dst)))
	if n.cfg.RSS == RSSPorts {
		h = sim.Mix(uint64(p.Hash))
	}
	return int((h >> 32) * k >> 32)
}

// serve begins with the next packet of a queue.
func (n *NIC) serve(now sim.Time, i int) {
	q := &n.in.queues[i]
	for p := q.q.Front(); p != nil; p = q.q.Front() {
		t := sim.Time(0)
		if n.cfg.RxRate != 0 {
			t = n.cfg.RxRate.For(int(p.Bytes))
		}
		if n.cfg.RxPackets != 0 {
			t = max(t, sim.Second/sim.Time(n.cfg.RxPackets))
		}
		if t != 0 {
			q.busy = true
			n.Stats.queue(i, p, t)
			n.s.At(now+t, n, evServe|uint64(i)<<8)
			return
		}
		n.Stats.queue(i, p, 0)
		n.release(now, q.q.Pop())
	}
}

func (n *NIC) served(now sim.Time, i int) {
	q := &n.in.queues[i]
	q.busy = false
	if p := q.q.Pop(); p != nil {
		n.release(now, p)
	}
	n.serve(now, i)
}

// release takes a packet out of the buffer, and lets the neighbour go on when
// there is room.
func (n *NIC) release(now sim.Time, p *sim.Packet) {
	r := &n.in
	r.held -= int64(p.Bytes)
	r.byPrio[p.Prio] -= int64(p.Bytes)
	if stops := n.port.Stops(); stops != 0 && r.held <= n.cfg.XON {
		for prio := range uint8(8) {
			if stops&(1<<prio) != 0 {
				n.resumeNeighbour(now, prio)
			}
		}
	}
	n.deliver(now, p)
}

// deliver hands a packet to its transport.
func (n *NIC) deliver(now sim.Time, p *sim.Packet) {
	if p.Kind == sim.KindTCP {
		switch {
		case p.Bad:
			n.drop(now, p, result.DropError)
		case n.lossy == nil:
			n.drop(now, p, result.DropNoRoute)
		default:
			n.lossy.Arrive(now, p)
		}
		return
	}
	if p.ECN == 3 && !p.Bad && !p.Ack {
		n.boss.Marked(now, p.Flow)
	}
	rx := &n.x.rx
	rx.Data = p.Head[:p.N]
	rx.Phantom, rx.Bad = int(p.Payload), p.Bad
	rx.SrcPort, rx.TOS, rx.TTL = p.SrcPort, p.DSCP<<2|p.ECN, p.TTL
	c := n.conns.get(destQPN(p))
	if c != nil {
		me := c.side(n)
		rx.Src, rx.Dst = c.addrs[1-me], c.addrs[me]
		if p.Head[0] == opCNP {
			n.Stats.CNPHandled++
			n.boss.CNP(now, p.Flow, false)
		} else if p.Payload > 0 && !p.Bad {
			c.arrived(now, n, p)
		} else if p.Ack && !p.Bad {
			if becn(p) {
				n.boss.CNP(now, p.Flow, false)
			}
			if p.Head[0] == opAck {
				switch p.Head[12] >> 5 & 3 {
				case syndromeNAK:
					c.told = true
					n.boss.NAK(now, p.Flow)
				case syndromeRNR:
					c.told = true
				}
			}
		}
	}
	n.dev.Ingress(now.Clock(), rx)
	n.s.Pool.Put(p)
	n.after(now)
}

// Opcodes of a congestion notification packet and of an acknowledgement on RC,
// and the kinds of an AETH syndrome that make a requester go back.
const (
	opCNP       = 0x81
	opAck       = 0x11
	syndromeRNR = 1
	syndromeNAK = 3
)

// becn reports whether a packet has the backward congestion bit.
func becn(p *sim.Packet) bool { return p.Head[4]&0x40 != 0 }

// destQPN and psn read the BTH.
func destQPN(p *sim.Packet) uint32 {
	return uint32(p.Head[5])<<16 | uint32(p.Head[6])<<8 | uint32(p.Head[7])
}

func psn(p *sim.Packet) ib.PSN {
	return ib.PSN(uint32(p.Head[9])<<16 | uint32(p.Head[10])<<8 | uint32(p.Head[11]))
}
