package sim

// Kind says what a packet is to a switch and a host.
type Kind uint8

// The kinds.
const (
	KindRoCE  Kind = iota // BTH and what follows, in Head
	KindPFC               // 802.1Qbb frame: Quanta by priority in Enable
	KindPause             // 802.3x PAUSE: Quanta[0]
	KindTCP               // segment or ACK of the lossy class
)

// HeadLen is room for every header of a RoCE packet (BTH and AtomicETH).
const HeadLen = 48

// Packet is one frame. It has one owner: who holds it may change it, and gives
// it away with the call that passes it on, or back to the Pool.
type Packet struct {
	Next *Packet // link of the queue that holds it

	// Bytes is the length of the frame from destination MAC to FCS: what
	// buffers and counters count. Preamble and gap are the port's.
	Bytes int32
	// Payload is the bytes of user data in it.
	Payload int32
	// Flow is the index of the flow it belongs to, or -1: for explanations, no
	// decision looks at it.
	Flow int32
	Src  int32  // endpoint (NIC port) it comes from and
	Dst  int32  // goes to; a switch routes by it
	Hash uint32 // over addresses, ports and protocol; a switch mixes in its seed

	SrcPort uint16 // UDP or TCP
	DstPort uint16
	Kind    Kind
	DSCP    uint8
	ECN     uint8 // 0 not capable, 2 ECT(0), 1 ECT(1), 3 CE
	PCP     uint8 // 802.1p priority of the tag, if Tagged
	Tagged  bool
	TTL     uint8
	Bad     bool // a bit was flipped: the ICRC or FCS is wrong
	V1      bool // RoCEv1: no IP header, so nobody routes it
	Ack     bool // carries no user data: ACK, NAK, CNP, READ request

	// The holder's notes.
	Prio    uint8 // priority in the switch or NIC that holds it
	Pool    uint8 // where its buffer space is taken from
	In      int16 // port it came in by
	At      Time  // when it was queued
	Tail    Time  // when its last bit is there (cut-through)
	Phantom int32 // payload bytes behind Head that do not exist
	N       uint8 // bytes of Head in use
	Head    [HeadLen]byte
	Ext     []byte // bytes behind Head, where payload is real

	// Kinds PFC and Pause.
	Enable uint8
	Quanta [8]uint16

	// Kind TCP.
	Seq, AckSeq int64
	Flags       uint8
}

// Pool recycles packets of one run.
type Pool struct {
	free *Packet
	live int64
	made int64
	slab []Packet
}

const slabPackets = 256

// Get returns a packet whose fields are zero, but for the bytes of Head.
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
	head := p.Head
	*p = Packet{Head: head}
	return p
}

// Put takes a packet back.
func (l *Pool) Put(p *Packet) {
	l.live--
	p.Next = l.free
	l.free = p
}

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
