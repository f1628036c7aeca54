package tcp

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Spec describes a connection.
type Spec struct {
	Prio    uint8
	DSCP    uint8
	SrcPort uint16   // 0: chosen
	Rate    sim.Rate // at which segments leave at most; 0: no limit
	// RTT is the round trip that the handshake has measured; 0: nothing was
	// measured, and the first timeout is RFC 6298's second.
	RTT sim.Time
}

// Conn is a connection with both of its ends. Bytes move from A to B, in the
// congestion control of A.
type Conn struct {
	A, B *Stack
	cfg  *Config

	prio, dscp, ecn uint8
	sport           uint16
	hashAB, hashBA  uint32
	closed          bool

	inLine bool // waits for its turn in A
	next   *Conn

	msgs []message // not acknowledged, oldest first
	rx   int       // of them, the one that the receiver has next
	end  int64     // bytes that were given to Send

	sender
	receiver
}

// message is the part of the stream that belongs to one flow.
type message struct {
	flow int32
	end  int64
}

// endless is the length of a stream without end.
const endless = int64(1) << 60

// Dial connects two stacks.
func Dial(a, b *Stack, spec Spec) (*Conn, error) {
	if a == b {
		return nil, fmt.Errorf("connection of %s with itself", a.nic.Config().Name)
	}
	c := &Conn{A: a, B: b, cfg: &a.cfg, prio: spec.Prio & 7, dscp: spec.DSCP}
	if c.cfg.Kind == DCTCP {
		c.ecn = ect0
	}
	port, ok := a.freePort(b, spec.SrcPort)
	if !ok {
		return nil, fmt.Errorf("connection from %s to %s: source port %d is in use", a.nic.Config().Name, b.nic.Config().Name, port)
	}
	c.sport = port
	c.hashAB = tupleHash(a.addr, b.addr, port, Port)
	c.hashBA = tupleHash(b.addr, a.addr, Port, port)
	c.sender.init(c.cfg, spec)
	a.conns[tableKey(b.self, port, Port)] = c
	b.conns[tableKey(a.self, Port, port)] = c
	return c, nil
}

// The dynamic ports (RFC 6335 §6).
const (
	firstPort = 49152
	numPorts  = 65536 - firstPort
)

// freePort returns the wanted port, or one that no other connection between the
// two has. A wanted port in use is returned with false.
func (k *Stack) freePort(to *Stack, wanted uint16) (uint16, bool) {
	if wanted != 0 {
		return wanted, k.conns[tableKey(to.self, wanted, Port)] == nil
	}
	at := sim.Mix(uint64(uint32(k.self))<<32|uint64(uint32(to.self))) ^ uint64(len(k.conns))
	for i := range uint64(numPorts) {
		port := uint16(firstPort + (at+i)%numPorts)
		if k.conns[tableKey(to.self, port, Port)] == nil {
			return port, true
		}
	}
	return 0, false
}

// tupleHash is the hash over addresses, ports and protocol, before a switch
// mixes in its seed.
func tupleHash(src, dst uint32, sport, dport uint16) uint32 {
	const protocol = 6
	h := sim.Mix(uint64(src)<<32 | uint64(dst))
	return uint32(sim.Mix(h^uint64(protocol)<<32^uint64(sport)<<16^uint64(dport)) >> 32)
}

// Send adds n bytes of a flow to the stream, or with n < 0 bytes without end.
// The boss hears Acked when the last of them is acknowledged; 0 bytes are
// nothing, and nobody hears of them.
func (c *Conn) Send(now sim.Time, flow int32, n int64) {
	if n == 0 || c.closed {
		return
	}
	if n < 0 {
		n = endless - c.end
	}
	c.end += n
	c.msgs = append(c.msgs, message{flow, c.end})
	c.A.wake(now, c)
	c.A.kick(now)
}

// Close forgets the connection at both ends. Packets that are under way are
// nobody's.
func (c *Conn) Close() {
	if c.closed {
		return
	}
	c.closed = true
	delete(c.A.conns, tableKey(c.B.self, c.sport, Port))
	delete(c.B.conns, tableKey(c.A.self, Port, c.sport))
	for _, k := range [2]*Stack{c.A, c.B} {
		if k.last == c {
			k.last = nil
		}
	}
}

// SrcPort returns the source port of A's segments.
func (c *Conn) SrcPort() uint16 { return c.sport }

// Hash returns the 5-tuple hash of A's segments.
func (c *Conn) Hash() uint32 { return c.hashAB }

// ReverseHash returns the 5-tuple hash of B's segments.
func (c *Conn) ReverseHash() uint32 { return c.hashBA }

// The events of a connection.
const (
	evTimeout uint64 = iota // the retransmission timer may have run out
	evPace                  // the rate allows the next segment
	evAck                   // the receiver waits no longer for a second segment
)

// Handle implements sim.Handler.
func (c *Conn) Handle(now sim.Time, arg uint64) {
	if c.closed {
		return
	}
	switch arg {
	case evTimeout:
		c.timerRang(now)
	case evPace:
		c.paceOn = false
		c.A.wake(now, c)
	case evAck:
		c.ackLate(now)
		c.B.kick(now)
		return
	}
	c.A.kick(now)
}

// flowAt returns the flow that byte seq of the stream belongs to.
func (c *Conn) flowAt(seq int64) int32 {
	for i := range c.msgs {
		if seq < c.msgs[i].end {
			return c.msgs[i].flow
		}
	}
	return -1
}

// retire tells the boss of flows that are acknowledged whole.
func (c *Conn) retire(now sim.Time) {
	for len(c.msgs) > 0 && c.msgs[0].end <= c.una {
		flow := c.msgs[0].flow
		c.msgs = c.msgs[:copy(c.msgs, c.msgs[1:])]
		c.rx = max(0, c.rx-1)
		c.A.boss.Acked(now, c, flow)
	}
}

// packet returns a packet of n bytes of payload from one stack to another.
func (c *Conn) packet(from, to *Stack, n int) *sim.Packet {
	p := from.s.Pool.Get()
	p.Kind, p.Payload, p.Ack = sim.KindTCP, int32(n), n == 0
	b := n + HeaderBytes
	if from.tagged {
		b += TagBytes
	}
	p.Bytes = int32(max(b, AckBytes))
	p.Src, p.Dst = from.self, to.self
	p.SrcPort, p.DstPort, p.Hash = c.sport, Port, c.hashAB
	if from == c.B {
		p.SrcPort, p.DstPort, p.Hash = Port, c.sport, c.hashBA
	}
	p.DSCP, p.ECN, p.TTL = c.dscp, c.ecn, 64
	p.Prio, p.PCP, p.Tagged, p.In = c.prio, c.prio, from.tagged, -1
	p.Flags = FlagACK
	p.Seq, p.AckSeq = 0, 0
	return p
}
