package rc_test

import (
	"math/rand/v2"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/rc"
	"github.com/verbena-rdma/verbena/wire"
)

// tester is what tests of package testing and of rapid have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// node is one end of a connection: an engine with its rings, memory and a sink
// that remembers.
type node struct {
	t    tester
	name string
	eng  *rc.Engine
	mem  *mem.Table
	sq   *transport.SendQueue
	rq   *transport.RecvQueue
	win  *transport.Window
	cnt  transport.Counters
	buf  []byte
	mr   *mem.Region
	mw   *mem.Window // of transcripts

	sent   []ib.WC // completions of the send queue
	recvd  []ib.WC // completions of the receive queue
	sol    []bool
	events []ib.EventType
	drops  [transport.NumDrops]int
	note   func(format string, args ...any) // transcript tests listen here
}

func (n *node) SendDone(wc *ib.WC) {
	n.sent = append(n.sent, *wc)
	n.say("completion %s", wcString(wc, true))
}

func (n *node) RecvDone(wc *ib.WC, solicited bool) {
	n.recvd = append(n.recvd, *wc)
	n.sol = append(n.sol, solicited)
	s := ""
	if solicited && wc.Status == ib.Success {
		s = " solicited"
	}
	n.say("receive %s%s", wcString(wc, false), s)
}

func (n *node) Event(t ib.EventType) {
	n.events = append(n.events, t)
	n.say("event %v", t)
}

func (n *node) Drop(d transport.Drop) {
	n.drops[d]++
	n.say("drop %v", d)
}

func (n *node) say(format string, args ...any) {
	if n.note != nil {
		n.note(format, args...)
	}
}

// options of a connection; the zero value gives path MTU 256 and the rest as
// connect says.
type options struct {
	mtu       ib.MTU
	psnA      ib.PSN // of requests from A to B
	psnB      ib.PSN
	rd        uint8 // READs and ATOMICs under way, both ways
	timeout   uint8
	retry     uint8
	rnrRetry  uint8
	rnrTimer  uint8
	access    ib.Access // of B towards A, and of A towards B
	sigAll    bool
	window    bool
	noCredits bool
	lateAck   bool
	depth     int
	sges      int
	mem       int
	phantom   bool
	seed      uint64
}

const (
	baseA = 0x10000
	baseB = 0x20000
	pd    = mem.PD(1)
)

func (o *options) defaults() {
	if o.mtu == 0 {
		o.mtu = ib.MTU256
	}
	if o.depth == 0 {
		o.depth = 64
	}
	if o.sges == 0 {
		o.sges = 8
	}
	if o.mem == 0 {
		o.mem = 64 << 10
	}
}

func newNode(t tester, name string, qpn ib.QPN, base uint64, o options) *node {
	n := &node{t: t, name: name}
	r := rand.New(rand.NewPCG(o.seed, uint64(qpn)))
	n.mem = mem.NewTable(r.Uint32)
	n.sq = transport.NewSendQueue(o.depth, o.sges, 512)
	n.rq = transport.NewRecvQueue(o.depth, o.sges)
	if o.window {
		n.win = transport.NewWindow(0)
	}
	var err error
	if o.phantom {
		n.mr, err = n.mem.RegisterPhantom(pd, uint64(o.mem), base, ib.AccessAll)
	} else {
		n.buf = make([]byte, o.mem)
		n.mr, err = n.mem.Register(pd, n.buf, base, ib.AccessAll|ib.RemoteFlush)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.eng = rc.New(transport.Config{
		QPN: qpn, PD: pd, Mem: n.mem, Send: n.sq, Recv: n.rq, Sink: n, SigAll: o.sigAll,
		Window: n.win, NoCredits: o.noCredits, Counters: &n.cnt,
	})
	return n
}

// ready takes a node from Reset to RTS.
func (n *node) ready(dest ib.QPN, sq, rq ib.PSN, o options) {
	n.eng.Modify(0, &ib.QPAttr{
		Mask: ib.AttrState | ib.AttrAccess | ib.AttrPKeyIndex | ib.AttrPort, State: ib.Init,
		Access: o.access, Port: 1,
	})
	n.eng.Modify(0, &ib.QPAttr{
		Mask: ib.AttrState | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN | ib.AttrMaxDestRdAtomic |
			ib.AttrMinRNRTimer | ib.AttrAV,
		State: ib.RTR, PathMTU: o.mtu, DestQPN: dest, RQPSN: rq, MaxDestRdAtomic: o.rd, MinRNRTimer: o.rnrTimer,
	})
	n.eng.Modify(0, &ib.QPAttr{
		Mask: ib.AttrState | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrSQPSN |
			ib.AttrMaxRdAtomic | ib.AttrLateAck,
		State: ib.RTS, TimeoutExp: o.timeout, RetryCnt: o.retry, RNRRetry: o.rnrRetry, SQPSN: sq,
		MaxRdAtomic: o.rd, LateAck: o.lateAck,
	})
}

const (
	qpnA = ib.QPN(0x11)
	qpnB = ib.QPN(0x22)
)

// connect returns two nodes in RTS.
func connect(t tester, o options) (a, b *node) {
	o.defaults()
	a, b = newNode(t, "A", qpnA, baseA, o), newNode(t, "B", qpnB, baseB, o)
	a.ready(qpnB, o.psnA, o.psnB, o)
	b.ready(qpnA, o.psnB, o.psnA, o)
	return a, b
}

// wr posts a send work request as the adapter does.
func (n *node) wr(now clock.Time, wr ib.SendWR) {
	w := n.sq.Slot(0)
	w.ID, w.Op, w.Flags, w.Imm = wr.ID, wr.Op, wr.Flags, wr.Imm
	w.Remote, w.Compare, w.SwapAdd = wr.Remote, wr.Compare, wr.SwapAdd
	if wr.Bind != nil {
		w.SetBind(wr.Bind)
	}
	if wr.Op == ib.Flush {
		w.SetFlush(&wr.Flush)
	}
	w.SGL = append(w.SGL, wr.SGL...)
	for _, s := range wr.SGL {
		w.Len += s.Length
	}
	if wr.Flags&ib.Inline != 0 {
		w.Inline = append(n.sq.InlineRoom(0), wr.InlineData...)
		w.Len = uint32(len(wr.InlineData))
	}
	n.sq.Publish(1)
	n.eng.Post(now)
}

// recv posts a receive.
func (n *node) recv(now clock.Time, wr ib.RecvWR) {
	w := n.rq.Slot(0)
	w.ID = wr.ID
	w.SGL = append(w.SGL, wr.SGL...)
	n.rq.Publish(1)
	n.eng.Post(now)
}

// sge returns an element of the node's region.
func (n *node) sge(off, length int) ib.SGE {
	return ib.SGE{Addr: n.mr.Base + uint64(off), Length: uint32(length), LKey: n.mr.LKey}
}

func (n *node) remote(off int) ib.Remote {
	return ib.Remote{Addr: n.mr.Base + uint64(off), RKey: n.mr.RKey}
}

// packet is what travels between two nodes in tests.
type packet struct {
	b       []byte // BTH to pad
	phantom int    // payload bytes that are not in b
}

// pull returns the next packet of the node, encoded.
func (n *node) pull(now clock.Time) (packet, bool) {
	h, ok := n.eng.Next(now)
	if !ok {
		return packet{}, false
	}
	var out transport.Out
	n.eng.Emit(now, &out)
	b := make([]byte, out.HeaderLen(), h.WireLen)
	if out.EncodeHeaders(b) != len(b) || len(b) == 0 {
		n.t.Fatalf("%s: cannot encode %v", n.name, out.Op)
	}
	body := 0
	p := packet{}
	for _, f := range out.Frags {
		b = append(b, f.Data...)
		p.phantom += f.Phantom
		body += f.Len()
	}
	b = append(b, out.Inline...)
	body += len(out.Inline)
	if body != out.Len {
		n.t.Fatalf("%s: %v has %d payload bytes, said %d", n.name, out.Op, body, out.Len)
	}
	if p.phantom == 0 {
		b = append(b, make([]byte, out.Pad)...)
	}
	if got := len(b) + wire.ICRCLen; p.phantom == 0 && got != h.WireLen {
		n.t.Fatalf("%s: %v is %d bytes long, Next said %d", n.name, out.Op, got, h.WireLen)
	}
	if want := out.WireLen(out.Len); want != h.WireLen {
		n.t.Fatalf("%s: %v: WireLen %d, Next said %d", n.name, out.Op, want, h.WireLen)
	}
	p.b = b
	return p, true
}

// give delivers a packet.
func (n *node) give(now clock.Time, p packet) {
	var q wire.Packet
	b := p.b
	if p.phantom > 0 {
		b = append([]byte(nil), p.b...)
		b[1] &^= 0x30 // the pad is as phantom as the payload
	}
	if r := q.Decode(b); r != wire.ReasonNone {
		n.t.Fatalf("%s: decode: %v", n.name, r)
	}
	n.eng.Receive(now, &q, &transport.In{PhantomLen: p.phantom})
}

// exchange moves packets without loss until nobody has any, firing timers that
// are due and, when nothing else moves, advancing to the next instant at which
// something happens. It returns the time at the end.
func exchange(t tester, now clock.Time, a, b *node) clock.Time {
	for range 1_000_000 {
		moved := false
		for _, d := range [2][2]*node{{a, b}, {b, a}} {
			if p, ok := d[0].pull(now); ok {
				d[1].give(now, p)
				moved = true
			}
		}
		if moved {
			continue
		}
		next := clock.Never
		for _, n := range []*node{a, b} {
			next = clock.Min(next, n.eng.Deadline())
			if s := n.eng.SendAt(); s > now {
				next = clock.Min(next, s)
			}
		}
		if next == clock.Never {
			return now
		}
		now = max(now, next)
		a.eng.Advance(now)
		b.eng.Advance(now)
	}
	t.Fatal("never quiet")
	return now
}

func pattern(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i*7) + byte(i>>8)*3 + seed
	}
}

func wcString(wc *ib.WC, send bool) string {
	s := ""
	if send {
		s = wc.Op.String() + " "
	}
	s += "id=" + itoa(wc.ID) + " " + wc.Status.String()
	if wc.Status == ib.Success {
		if !send && wc.Op == ib.WCRecvImm {
			s += " by WRITE"
		}
		if wc.Bytes != 0 {
			s += " bytes=" + itoa(uint64(wc.Bytes))
		}
		if wc.Flags&ib.WCWithImm != 0 {
			s += " imm=" + itoa(uint64(wc.Imm))
		}
		if wc.Flags&ib.WCWithInv != 0 {
			s += " invalidated tag=" + itoa(uint64(wc.Imm&0xFF))
		}
	} else if wc.VendorErr != 0 {
		s += " vendor=" + itoa(uint64(wc.VendorErr))
	}
	return s
}
