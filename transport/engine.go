package transport

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/wire"
)

// Engine is the protocol machine of one queue pair. It is not safe for
// concurrent use, and never blocks.
type Engine interface {
	// Modify applies attributes that the adapter has validated against the
	// table of transitions; a.Mask says which. With AttrState it enters the
	// state: entering Error flushes both queues, entering Reset empties them
	// without completions. With AttrPKeyIndex a.PKey is the key in that row.
	Modify(now clock.Time, a *ib.QPAttr)
	// State returns the present state, which an engine may change to Error by
	// itself.
	State() ib.QPState
	// Query fills the attributes that the engine owns (PSNs as they are now).
	Query(a *ib.QPAttr)
	// Post says that one of the rings has grown.
	Post(now clock.Time)
	// Receive handles one packet whose ICRC was right and whose destination is
	// this queue pair. p, its payload and in are borrowed.
	Receive(now clock.Time, p *wire.Packet, in *In)
	// Advance fires what is due. Early or repeated calls do nothing.
	Advance(now clock.Time)
	// Deadline returns the instant of the next Advance, or Never.
	Deadline() clock.Time
	// SendAt returns the earliest instant at which Next may succeed, as far as
	// the protocol is concerned: 0 when there is something to send, Never when
	// there is nothing. Pacing is the adapter's.
	SendAt() clock.Time
	// Urgent is asked when pacing holds everything but ACKs and NAKs: it reports
	// whether one is due, and the next Next describes it, even if it would have
	// gone behind a request.
	Urgent() bool
	// Why says what the next packet waits for. It is for observers: it changes
	// nothing, and the adapter does not ask.
	Why() Wait
	// Next describes the packet that Emit would emit now; ok is false if there
	// is none. It may complete work requests (a local protection error, for
	// one), but it moves no data.
	Next(now clock.Time) (h Head, ok bool)
	// Emit fills out with the packet that the last Next described. It is called
	// at most once per Next, with nothing in between, of this engine or of those
	// that share its Scratch.
	Emit(now clock.Time, out *Out)
}

// Head is what the adapter must know of a packet before it takes it.
type Head struct {
	WireLen int   // bytes from BTH to ICRC
	AH      ib.AH // UD only: where it goes; 0 means the QP's own path
	// DestQPN is for UD only: the QP that it goes to. A run is for one.
	DestQPN ib.QPN
	Ack     bool // an ACK or NAK: it does not join a run of one, which it would delay
}

// Out is one packet as an engine emits it: header values, and references to
// the payload. The adapter encodes the headers and makes the one copy.
type Out struct {
	wire.Packet
	// Len is the number of payload bytes, without pad.
	Len int
	// Frags refer to the payload in registered memory, in order. The engine
	// appends to the empty slice that the caller supplies. They are borrowed
	// until the next call of the engine.
	Frags []mem.Frag
	// Inline is a small payload that is not in registered memory (inline data
	// of the work queue); used instead of Frags. Borrowed.
	Inline []byte
	// ECT asks for the ECN-capable code point.
	ECT bool
}

// In is what came with a packet besides itself.
type In struct {
	// GRH is what a UD receive buffer gets in its first 40 bytes: the GRH of
	// RoCEv1, the IPv6 header, or 20 zero bytes and the IPv4 header.
	GRH *[40]byte
	// SGIDIndex is the local GID table row that the packet was addressed to.
	SGIDIndex uint16
	// CE reports that the packet carried Congestion Experienced.
	CE bool
	// Payload bytes are not there: PhantomLen is their number.
	PhantomLen int
}

// Sink receives what an engine reports. Calls are synchronous and in order.
type Sink interface {
	// SendDone queues a completion of the send queue.
	SendDone(wc *ib.WC)
	// RecvDone queues a completion of the receive queue; solicited says whether
	// it raises a solicited event.
	RecvDone(wc *ib.WC, solicited bool)
	// Event reports an asynchronous event of the queue pair.
	Event(t ib.EventType)
	// Drop counts a packet that was discarded, or a protocol event.
	Drop(d Drop)
}

// Config is what an engine is given for life. A simulated adapter has many
// engines: small fields are together.
type Config struct {
	Mem  *mem.Table
	Send *SendQueue
	Recv *RecvQueue
	Sink Sink
	// Window limits what is in flight towards the destination; nil for no
	// limit. The adapter sets it with SetWindow when the path is known.
	Window *Window
	// Counters are the queue pair's, or, where nobody asks for those, the
	// adapter's, shared by its engines.
	Counters *Counters
	// Scratch is the adapter's, shared by its engines; nil for one of its own.
	Scratch *Scratch
	QPN     ib.QPN
	PD      mem.PD
	// Payload is how many payload bytes a full packet of a connected queue pair
	// has, where that is less than the path MTU; 0 for the path MTU. Both ends
	// must agree. Simulators use it, to compare with others that count so.
	Payload uint16
	// AckEvery is how many packets go at most without asking for an
	// acknowledgement; 0 for the engine's own choice, 1 for each. RC only.
	AckEvery uint16
	// SigAll reports every send work request, signaled or not.
	SigAll bool
	// NoCredits stops the responder from advertising end-to-end credits.
	NoCredits bool
	// MigReq is the value of the BTH's MigReq bit.
	MigReq bool
}

// Scratch is storage that engines would otherwise allocate on each use. It
// belongs to one of them from the beginning of a call to its end, or from Next
// to Emit. The zero Scratch is ready.
type Scratch struct {
	WC    ib.WC
	Word  [8]byte
	Frags []mem.Frag // payload of the packet that Next has described
	Copy  []byte     // its bytes, where they must not be looked at later: see [mem.Region.ReadAt]
}

// ReceivePD returns the protection domain that receives are checked against:
// that of a shared receive queue may be another than the queue pair's.
func (c *Config) ReceivePD() mem.PD {
	if s := c.Recv.sharing(); s != nil {
		return s.from.pd
	}
	return c.PD
}

// PacketBytes returns the payload bytes of a full packet on a path of the given
// MTU.
func (c *Config) PacketBytes(mtu ib.MTU) int {
	n := mtu.Bytes()
	if p := int(c.Payload); p > 0 && p < n {
		return p
	}
	return n
}
