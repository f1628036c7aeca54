package sim

import "encoding/binary"

// Kind says what a packet is to a switch and a host.
type Kind uint8

// The kinds.
const (
	KindRoCE  Kind = iota // BTH and what follows, in Head
	KindPFC               // 802.1Qbb frame: quanta by class for those in Enable
	KindPause             // 802.3x PAUSE
	KindTCP               // segment or ACK of the lossy class
)

// HeadLen is room for every header of a RoCE packet (BTH and AtomicETH).
const HeadLen = 40

// Packet is one frame. It has one owner: who holds it may change it, and gives
// it away with the call that passes it on, or back to the Pool.
//
// It is two cache lines long: switches look at the first alone.
type Packet struct {
	Next *Packet // link of the queue that holds it
	// Tail is when its last bit is there (cut-through).
	Tail Time
	// Bytes is the length of the frame from destination MAC to FCS: what
	// buffers and counters count. Preamble and gap are the port's.
	Bytes int32
	// Payload is the bytes of user data in it, of which there is nothing but
	// their number.
	Payload int32
	// Flow is the index of the flow it belongs to, or -1: for explanations, no
	// decision looks at it.
	Flow int32
	Src  int32  // endpoint (NIC port) it comes from and
	Dst  int32  // goes to; a switch routes by it
	Hash uint32 // over addresses, ports and protocol; a switch mixes in its seed

	In      int16  // port it came in by, of who holds it
	SrcPort uint16 // UDP or TCP
	DstPort uint16
	Kind    Kind
	DSCP    uint8
	ECN     uint8 // 0 not capable, 2 ECT(0), 1 ECT(1), 3 CE
	PCP     uint8 // 802.1p priority of the tag, if Tagged
	TTL     uint8
	Prio    uint8 // priority in the switch or NIC that holds it
	Pool    uint8 // where its buffer space is taken from, of who holds it
	N       uint8 // bytes of Head in use
	Enable  uint8 // PFC: classes that the frame speaks of
	Flags   uint8 // TCP
	Tagged  bool
	Bad     bool // a bit was flipped: the ICRC or FCS is wrong
	V1      bool // RoCEv1: no IP header, so nobody routes it
	Ack     bool // carries no user data: ACK, NAK, CNP, READ request

	// Head is the bytes from the BTH on.
	Head        [HeadLen]byte
	Seq, AckSeq int64 // TCP
	Due         Time  // when it arrives, on links of which the other end wants heads
}

// Quanta returns the pause quanta of a class in a PFC frame, of class 0 in a
// PAUSE.
func (p *Packet) Quanta(class uint8) uint16 {
	return binary.BigEndian.Uint16(p.Head[2*(class&7):])
}

// SetQuanta sets them.
func (p *Packet) SetQuanta(class uint8, quanta uint16) {
	binary.BigEndian.PutUint16(p.Head[2*(class&7):], quanta)
}

// Pool recycles packets of one run.
type Pool struct {
	free *Packet
	live int64
	made int64
	slab []Packet
}

const slabPackets = 256

// Get returns a packet whose fields are zero, but for the bytes of Head, Seq,
// AckSeq and Due.
func (l *Pool) Get() *Packet {
	l.live++
	p := l.free
	if p == nil {
		if len(l.slab) == 0 {
			l.slab = make([]Packet, slabPackets)
			l.made += slabPackets
		}
		p = &l.slab[0]
		l.slab = l.slab[1:]
		return p
	}
	l.free = p.Next
	p.reset()
	return p
}

// reset zeroes everything but the bytes of Head and what only TCP reads.
func (p *Packet) reset() {
	p.Next, p.Tail = nil, 0
	p.Bytes, p.Payload, p.Flow, p.Src, p.Dst, p.Hash = 0, 0, 0, 0, 0, 0
	p.In, p.SrcPort, p.DstPort, p.Kind, p.DSCP, p.ECN, p.PCP, p.TTL = 0, 0, 0, 0, 0, 0, 0, 0
	p.Prio, p.Pool, p.N, p.Enable, p.Flags = 0, 0, 0, 0, 0
	p.Tagged, p.Bad, p.V1, p.Ack = false, false, false, false
}

// Put takes a packet back.
func (l *Pool) Put(p *Packet) {
	l.live--
	p.Next = l.free
	l.free = p
}

// Release lets go of the packets that nobody holds, for the garbage collector.
func (l *Pool) Release() { l.free, l.slab = nil, nil }

// Live returns how many packets are somewhere in the run.
func (l *Pool) Live() int64 { return l.live }

// Made returns how many packets exist.
func (l *Pool) Made() int64 { return l.made }

// Queue is a FIFO of packets.
type Queue struct {
	head, tail *Packet
	n          int
	bytes      int64
}

// Push gives a packet to the end of the queue.
func (q *Queue) Push(p *Packet) {
	p.Next = nil
	if q.tail != nil {
		q.tail.Next = p
	} else {
		q.head = p
	}
	q.tail = p
	q.n++
	q.bytes += int64(p.Bytes)
}

// Pop takes the oldest packet, or nil.
func (q *Queue) Pop() *Packet {
	p := q.head
	if p == nil {
		return nil
	}
	if q.head = p.Next; q.head == nil {
		q.tail = nil
	}
	p.Next = nil
	q.n--
	q.bytes -= int64(p.Bytes)
	return p
}

// Front returns the oldest packet, or nil; it stays in the queue.
func (q *Queue) Front() *Packet { return q.head }

// Len returns the number of packets.
func (q *Queue) Len() int { return q.n }

// Bytes returns their bytes.
func (q *Queue) Bytes() int64 { return q.bytes }
