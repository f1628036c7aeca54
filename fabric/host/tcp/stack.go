package tcp

import (
	"encoding/binary"
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Boss is told what becomes of flows. It must not send on a connection from
// inside such a call, but may close it.
type Boss interface {
	// Segment says that a data segment of a flow leaves; again: its first byte
	// has left before.
	Segment(now sim.Time, flow int32, again bool)
	// Delivered says that n bytes of a flow have arrived in order.
	Delivered(now sim.Time, flow int32, n int)
	// Marked says that a data segment of a flow has arrived with CE.
	Marked(now sim.Time, flow int32)
	// Timeout says that a retransmission timeout has passed.
	Timeout(now sim.Time, flow int32)
	// Acked says that the last byte that c was given for a flow is acknowledged.
	Acked(now sim.Time, c *Conn, flow int32)
}

// Stack is the lossy class of one NIC. It implements host.Lossy.
type Stack struct {
	s    *sim.Sim
	nic  *host.NIC
	cfg  Config
	boss Boss

	self   int32
	addr   uint32
	tagged bool

	conns   map[uint64]*Conn // by peer and ports
	last    *Conn
	lastKey uint64

	ready uint8 // priorities that have something to send
	turn  uint8 // the priority whose turn it is
	class [8]class
}

// class is what waits to be sent in one priority: acknowledgements, which go
// first, and connections in turns.
type class struct {
	acks       ackRing
	head, tail *Conn
}

// New makes the stack of a NIC and gives it to the NIC.
func New(s *sim.Sim, nic *host.NIC, cfg Config, boss Boss) *Stack {
	cfg.defaults()
	c := nic.Config()
	a := c.Addr.As4()
	k := &Stack{
		s: s, nic: nic, cfg: cfg, boss: boss, self: c.Endpoint, addr: binary.BigEndian.Uint32(a[:]), tagged: c.Tagged,
		conns: make(map[uint64]*Conn),
	}
	nic.SetLossy(k)
	return k
}

// Conns returns how many connections have an end here.
func (k *Stack) Conns() int { return len(k.conns) }

// pick returns the priority of what Pull would return next.
func (k *Stack) pick() (prio uint8, ok bool) {
	may := k.ready &^ k.nic.Port().Classes()
	if may == 0 {
		return 0, false
	}
	if later := may &^ (1<<k.turn - 1); later != 0 {
		may = later
	}
	return uint8(bits.TrailingZeros8(may)), true
}

// Prio implements host.Lossy: the priority of the next segment.
func (k *Stack) Prio() uint8 {
	if q, ok := k.pick(); ok {
		return q
	}
	return uint8(bits.TrailingZeros8(k.ready)) & 7
}

// Pull implements host.Lossy: acknowledgements first, then a segment of each
// connection that may send, in turns.
func (k *Stack) Pull(now sim.Time) *sim.Packet {
	for {
		q, ok := k.pick()
		if !ok {
			return nil
		}
		p := k.take(now, q)
		if p == nil {
			continue
		}
		k.turn = (q + 1) & 7
		return p
	}
}

// take returns the next packet of a priority; nil if what was ready is not any
// more.
func (k *Stack) take(now sim.Time, q uint8) *sim.Packet {
	l := &k.class[q]
	var p *sim.Packet
	if l.acks.n > 0 {
		a := l.acks.pop()
		p = a.c.ack(a)
	} else if c := l.pop(); c != nil {
		if c.sendable(now) {
			p = c.segment(now)
		}
		if c.sendable(now) {
			l.push(c)
		}
	}
	if l.acks.n == 0 && l.head == nil {
		k.ready &^= 1 << q
	}
	return p
}

// wake puts a connection that may send into the line of its priority. The
// caller kicks the NIC.
func (k *Stack) wake(now sim.Time, c *Conn) {
	if !c.inLine && c.sendable(now) {
		k.class[c.prio].push(c)
		k.ready |= 1 << c.prio
	}
}

// kick asks the NIC to pull, if there is something to.
func (k *Stack) kick(now sim.Time) {
	if k.ready != 0 {
		k.nic.Kick(now)
	}
}

// Arrive implements host.Lossy.
func (k *Stack) Arrive(now sim.Time, p *sim.Packet) {
	key := tableKey(p.Src, p.DstPort, p.SrcPort)
	c := k.last
	if c == nil || k.lastKey != key {
		if c = k.conns[key]; c == nil {
			k.s.Pool.Put(p) // of a connection that is closed
			return
		}
		k.last, k.lastKey = c, key
	}
	if k == c.B {
		c.data(now, p)
	} else {
		c.acked(now, p.AckSeq, p.Flags&FlagECE != 0)
	}
	k.s.Pool.Put(p)
	k.kick(now)
}

// tableKey names a connection by its peer and the ports here and there.
func tableKey(peer int32, local, remote uint16) uint64 {
	return uint64(uint32(peer))<<32 | uint64(local)<<16 | uint64(remote)
}

func (l *class) push(c *Conn) {
	c.inLine, c.next = true, nil
	if l.tail != nil {
		l.tail.next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *class) pop() *Conn {
	c := l.head
	if c == nil {
		return nil
	}
	if l.head = c.next; l.head == nil {
		l.tail = nil
	}
	c.inLine, c.next = false, nil
	return c
}

// ackRing is a FIFO of acknowledgements that wait to be sent.
type ackRing struct {
	ring []pendingAck
	head int
	n    int
}

type pendingAck struct {
	c   *Conn
	ack int64
	ece bool
}

func (r *ackRing) push(a pendingAck) {
	if r.n == len(r.ring) {
		ring := make([]pendingAck, max(8, 2*len(r.ring)))
		for i := range r.n {
			ring[i] = r.ring[(r.head+i)&(len(r.ring)-1)]
		}
		r.ring, r.head = ring, 0
	}
	r.ring[(r.head+r.n)&(len(r.ring)-1)] = a
	r.n++
}

func (r *ackRing) pop() pendingAck {
	a := r.ring[r.head]
	r.ring[r.head].c = nil
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.n--
	return a
}
