package host

import (
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/frame"
)

// What surrounds the bytes from BTH to ICRC: Ethernet header and FCS with IPv4
// and UDP, or with a GRH.
const (
	ethernetBytes = 14 + 4 + 20 + 8
	v1Bytes       = 14 + 4 + 40
	tagBytes      = 4
	minFrame      = 64
	bthBytes      = 12 + 4 // BTH and ICRC
)

// Pull implements port.Node.
func (n *NIC) Pull(now sim.Time, _ int, stopped uint8) (*sim.Packet, bool) {
	if n.limited && now < n.gate {
		n.waitGate()
		return nil, false
	}
	var p *sim.Packet
	if n.mixed && n.turn {
		p = n.pullLossy(now, stopped)
	}
	if p == nil {
		p = n.pullRDMA(now)
	}
	if p == nil && n.mixed && !n.turn {
		p = n.pullLossy(now, stopped)
	}
	if p == nil {
		return nil, false
	}
	n.turn = !n.turn
	if n.limited {
		n.gate = max(now, n.gate) + n.perPkt
	}
	return p, true
}

// waitGate asks to be woken when the packet rate allows the next packet.
func (n *NIC) waitGate() {
	if !n.gateOn {
		n.gateOn = true
		n.s.At(n.gate, n, evGate)
	}
}

func (n *NIC) pullLossy(now sim.Time, stopped uint8) *sim.Packet {
	if stopped&(1<<n.lossy.Prio()) != 0 {
		return nil
	}
	return n.lossy.Pull(now)
}

// pullRDMA asks the adapter for a packet.
func (n *NIC) pullRDMA(now sim.Time) *sim.Packet {
	run := &n.x.run
	run.Reset()
	if !n.dev.Egress(now.Clock(), run) {
		if n.cq.Len() > 0 {
			n.poll(now)
		}
		n.arm()
		return nil
	}
	c := n.conns.get(run.QPN)
	p := n.s.Pool.Get()
	n.fill(p, run, c)
	if run.CNP {
		n.Stats.CNPSent++
		n.boss.CNP(now, p.Flow, true)
	} else if c != nil && !p.Ack {
		c.sent(n, p)
	} else if becn(p) {
		n.boss.CNP(now, p.Flow, true)
	}
	if n.cq.Len() > 0 { // datagrams end when they leave
		n.poll(now)
	}
	n.arm()
	return p
}

// fill makes a packet of what the adapter has written.
func (n *NIC) fill(p *sim.Packet, r *frame.Run, c *Conn) {
	p.N = uint8(copy(p.Head[:], r.Buf[:r.N]))
	p.Payload = int32(r.Phantom)
	p.Kind = sim.KindRoCE
	p.Src = n.endpoint
	p.Flow, p.Dst = -1, -1
	p.SrcPort, p.DstPort = r.SrcPort, rocePort
	p.DSCP, p.ECN = r.TOS>>2, r.TOS&3
	if n.noECT {
		p.ECN = 0
	}
	p.Prio, p.PCP, p.Tagged = r.Prio, r.Prio, n.tagged
	p.TTL, p.V1 = r.TTL, n.v1
	p.Ack = r.Phantom == 0
	p.In = -1
	if c != nil {
		me := c.side(n)
		p.Flow, p.Dst, p.Hash = c.flowOf(p), c.ends[1-me].endpoint, c.ends[me].hash
	}
	p.Bytes = int32(n.frameBytes(r.WireLen, r.Phantom))
}

// frameBytes is the length of a frame from destination MAC to FCS.
func (n *NIC) frameBytes(wireLen, payload int) int {
	switch {
	case payload > 0 && n.header > 0:
		return payload + int(n.header)
	case payload == 0 && n.control > 0:
		return int(n.control)
	}
	b := wireLen + ethernetBytes
	if n.v1 {
		b = wireLen + v1Bytes
	}
	if n.tagged {
		b += tagBytes
	}
	return max(b, minFrame)
}

const rocePort = 4791

// HeaderBytes returns what surrounds the payload of a packet in the middle of a
// message, destination MAC to FCS.
func HeaderBytes(c *Config) int {
	if c.Header > 0 {
		return c.Header
	}
	n := ethernetBytes
	if c.V1 {
		n = v1Bytes
	}
	if c.Tagged {
		n += tagBytes
	}
	return n + bthBytes
}

// AckBytes returns the length of the frame of an acknowledgement.
func AckBytes(c *Config) int {
	if c.Control > 0 {
		return c.Control
	}
	const aeth = 4
	bare := *c
	bare.Header = 0
	return max(minFrame, HeaderBytes(&bare)+aeth)
}
