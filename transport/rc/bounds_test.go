package rc_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/rc"
	"github.com/verbena-rdma/verbena/wire"
)

// TestEveryOpcodeEveryLength: each byte that an opcode may be, followed by 0 to
// 64 bytes, in three situations, never panics; what is answered is an ACK, a
// NAK or a response, and memory changes only where the region lets it.
// rule: every opcode with every short length
func TestEveryOpcodeEveryLength(t *testing.T) {
	situations := []struct {
		name  string
		setup func(b *node)
	}{
		{"idle", func(*node) {}},
		{"within a SEND", func(b *node) { b.give(0, raw(wire.RCSendFirst, 0x10, 256, b.mr)) }},
		{"within a WRITE", func(b *node) { b.give(0, raw(wire.RCWriteFirst, 0x10, 256, b.mr)) }},
	}
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			for op := range 256 {
				for n := range 65 {
					p := make([]byte, wire.BTHLen+n)
					h, _ := wire.BTHOf(p)
					h.SetOpcode(wire.Opcode(op))
					h.SetPKey(ib.DefaultPKey)
					h.SetDestQPN(qpnB)
					h.SetAckReq(true)
					var q wire.Packet
					if q.Decode(p) != wire.ReasonNone {
						// The adapter drops it. An opcode nobody knows goes on, to be refused.
						if q.Op.Info() != nil || n > 0 {
							continue
						}
						q = wire.Packet{Op: wire.Opcode(op), PKey: ib.DefaultPKey}
					}
					o := lossless()
					o.psnA, o.mem = 0x10, 4096
					_, b := connect(t, o)
					b.recv(0, ib.RecvWR{ID: 1, SGL: []ib.SGE{b.sge(0, 4096)}})
					s.setup(b)
					q.PSN = b.expected()
					before := bytes.Clone(b.buf)
					b.eng.Receive(0, &q, &transport.In{})
					judge(t, b, &q, before)
				}
			}
		})
	}
}

func (n *node) expected() ib.PSN {
	var q ib.QPAttr
	n.eng.Query(&q)
	return q.RQPSN
}

// raw makes a request of n payload bytes, of a message of 600 for the start of
// region r.
func raw(op wire.Opcode, psn ib.PSN, n int, r *mem.Region) packet {
	var q wire.Packet
	q.SetOp(op)
	q.PSN, q.PKey, q.DestQPN = psn, ib.DefaultPKey, qpnB
	q.RETH = wire.RETH{VA: r.Base, RKey: r.RKey, Len: 600}
	b := make([]byte, q.HeaderLen())
	q.EncodeHeaders(b)
	return packet{b: append(b, make([]byte, n)...)}
}

// judge checks what a responder made of one packet.
func judge(t *testing.T, b *node, q *wire.Packet, before []byte) {
	t.Helper()
	info := q.Op.Info()
	service := q.Op >> 5
	answer := ""
	for p, ok := b.pull(0); ok; p, ok = b.pull(0) {
		var r wire.Packet
		if r.Decode(p.b) != wire.ReasonNone || !r.Info.Response {
			t.Fatalf("%v, %d bytes: answered with %v", q.Op, len(q.Payload), r.Op)
		}
		answer = r.AETH.Syndrome.Kind().String()
	}
	switch {
	case service != 0 || info != nil && info.Response:
		if answer != "" || b.eng.State() != ib.RTS {
			t.Errorf("%v, %d bytes: answer %q, state %v", q.Op, len(q.Payload), answer, b.eng.State())
		}
	case answer == "NAK":
		if b.eng.State() != ib.Error {
			t.Errorf("%v, %d bytes: NAK in %v", q.Op, len(q.Payload), b.eng.State())
		}
	case answer == "ACK":
		if b.eng.State() != ib.RTS {
			t.Errorf("%v, %d bytes: ACK in %v", q.Op, len(q.Payload), b.eng.State())
		}
	default:
		t.Errorf("%v, %d bytes: answer %q", q.Op, len(q.Payload), answer)
	}
	if !bytes.Equal(before, b.buf) {
		ok := answer == "ACK" && info.Kind == wire.KindSend // all zeroes into the receive
		if !ok && answer != "ACK" {
			t.Errorf("%v, %d bytes: memory changed, answer %q", q.Op, len(q.Payload), answer)
		}
	}
}

// TestEmitOverwrites: whatever was in Out before, what an engine emits is the
// same.
// rule: segmentation
func TestEmitOverwrites(t *testing.T) {
	talk := func(dirty bool) (all []string) {
		o := lossless()
		o.noCredits = true
		a, b := connect(t, o)
		for range 3 {
			b.recv(0, ib.RecvWR{SGL: []ib.SGE{b.sge(0, 600)}})
		}
		for _, op := range allOps {
			size := 600
			if op.IsAtomic() {
				size = 8
			}
			a.wr(0, ib.SendWR{Op: op, SGL: []ib.SGE{a.sge(0, size)}, Remote: b.remote(0)})
		}
		for moved := true; moved; {
			moved = false
			for _, d := range [2][2]*node{{a, b}, {b, a}} {
				h, ok := d[0].eng.Next(0)
				if !ok {
					continue
				}
				moved = true
				var out transport.Out
				if dirty {
					out.Packet = wire.Packet{
						Solicited: true, MigReq: true, FECN: true, BECN: true, AckReq: true, Pad: 3, TVer: 9, PKey: 1, DestQPN: 5,
						PSN: 77, AETH: wire.AETH{Syndrome: 0xFF, MSN: 9}, Imm: 4, IETH: 5, RETH: wire.RETH{VA: 1, RKey: 2, Len: 3},
						Atomic: wire.AtomicETH{VA: 1}, AtomicAck: 6, Payload: make([]byte, 7),
					}
					out.Len, out.Inline = 5, make([]byte, 5)
				}
				d[0].eng.Emit(0, &out)
				b := make([]byte, out.HeaderLen())
				out.EncodeHeaders(b)
				body := []byte{}
				for _, f := range out.Frags {
					body = append(body, f.Data...)
				}
				all = append(all, fmt.Sprintf("%d %x %x %d", h.WireLen, b, body, len(out.Inline)))
				d[1].give(0, packet{b: append(append(b, body...), make([]byte, wire.PadFor(len(body)))...)})
			}
		}
		return all
	}
	clean, dirty := talk(false), talk(true)
	if len(clean) < 20 || fmt.Sprint(clean) != fmt.Sprint(dirty) {
		t.Errorf("%d packets, %d packets", len(clean), len(dirty))
		for i := range min(len(clean), len(dirty)) {
			if clean[i] != dirty[i] {
				t.Fatalf("packet %d\n%s\n%s", i, clean[i], dirty[i])
			}
		}
	}
}

// TestUnusedEngineIsSmall: an engine that has not been used costs little.
// rule: size of an unused engine
func TestUnusedEngineIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(rc.Engine{}); n > 1024 {
		t.Errorf("an engine has %d bytes", n)
	}
	table := mem.NewTable(rand.New(rand.NewPCG(1, 2)).Uint32)
	sink := &node{}
	cfg := transport.Config{
		Mem: table, Send: transport.NewSendQueue(128, 4, 64), Recv: transport.NewRecvQueue(512, 4), Sink: sink,
		Counters: &sink.cnt,
	}
	if n := testing.AllocsPerRun(10, func() {
		e := rc.New(cfg)
		(&node{eng: e}).ready(1, 0, 0, options{mtu: ib.MTU4096, rd: 16, access: ib.RemoteAll, timeout: 14, retry: 7})
	}); n > 2 {
		t.Errorf("bringing up an engine allocates %v times", n)
	}
}

// quietSink counts and forgets.
type quietSink struct{ done int }

func (s *quietSink) SendDone(wc *ib.WC) {
	if wc.Status == ib.Success {
		s.done++
	}
}
func (s *quietSink) RecvDone(*ib.WC, bool) { s.done++ }
func (s *quietSink) Event(ib.EventType)    {}
func (s *quietSink) Drop(transport.Drop)   {}

// couple is a pair of engines without bytes in between: what one emits the
// other receives as values.
type couple struct {
	a, b *node
	out  transport.Out
	now  clock.Time
	lose func() bool
}

func newCouple(t tester, o options) (*couple, *quietSink, *quietSink) {
	o.defaults()
	sa, sb := &quietSink{}, &quietSink{}
	a, b := newNode(t, "A", qpnA, baseA, o), newNode(t, "B", qpnB, baseB, o)
	for _, x := range []struct {
		n *node
		s *quietSink
	}{{a, sa}, {b, sb}} {
		qpn := x.n.qpn()
		x.n.eng = rc.New(transport.Config{
			QPN: qpn, PD: pd, Mem: x.n.mem, Send: x.n.sq, Recv: x.n.rq, Sink: x.s, SigAll: o.sigAll,
			Window: x.n.win, NoCredits: o.noCredits, Counters: &x.n.cnt,
		})
	}
	a.ready(qpnB, o.psnA, o.psnB, o)
	b.ready(qpnA, o.psnB, o.psnA, o)
	return &couple{a: a, b: b}, sa, sb
}

// pump moves packets until both are quiet, without allocating.
func (c *couple) pump() (packets int) {
	for {
		moved := c.step(c.a, c.b)
		if c.step(c.b, c.a) || moved {
			packets++
			continue
		}
		next := clock.Min(c.a.eng.Deadline(), c.b.eng.Deadline())
		for _, at := range [2]clock.Time{c.a.eng.SendAt(), c.b.eng.SendAt()} {
			if at > c.now {
				next = clock.Min(next, at)
			}
		}
		if next == clock.Never {
			return packets
		}
		c.now = max(c.now, next)
		c.a.eng.Advance(c.now)
		c.b.eng.Advance(c.now)
	}
}

func (c *couple) step(from, to *node) bool {
	if from.eng.SendAt() > c.now {
		return false
	}
	if _, ok := from.eng.Next(c.now); !ok {
		return false
	}
	c.out.Frags = c.out.Frags[:0]
	from.eng.Emit(c.now, &c.out)
	if c.lose != nil && c.lose() {
		return true
	}
	in := transport.In{}
	c.out.Payload = c.out.Inline
	switch len(c.out.Frags) {
	case 0:
	case 1:
		c.out.Payload, in.PhantomLen = c.out.Frags[0].Data, c.out.Frags[0].Phantom
	default:
		from.t.Fatal("one fragment expected")
	}
	to.eng.Receive(c.now, &c.out.Packet, &in)
	return true
}

func (n *node) fastPost(now clock.Time, id uint64, op ib.WROp, size uint32, to ib.Remote) {
	w := n.sq.Slot(0)
	w.ID, w.Op, w.Flags, w.Remote, w.Len = id, op, ib.Signaled, to, size
	w.SGL = append(w.SGL, ib.SGE{Addr: n.mr.Base, Length: size, LKey: n.mr.LKey})
	n.sq.Publish(1)
	n.eng.Post(now)
}

func (n *node) fastRecv(now clock.Time, id uint64, size uint32) {
	w := n.rq.Slot(0)
	w.ID = id
	w.SGL = append(w.SGL, ib.SGE{Addr: n.mr.Base, Length: size, LKey: n.mr.LKey})
	n.rq.Publish(1)
	n.eng.Post(now)
}

// TestNoAllocation: no operation allocates in the steady state, nor does
// recovery from loss.
// rule: no allocation
func TestNoAllocation(t *testing.T) {
	for _, op := range allOps {
		for _, loss := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/loss=%v", op, loss), func(t *testing.T) {
				o := lossless()
				o.mtu = ib.MTU1024
				c, done, _ := newCouple(t, o)
				if loss {
					n := 0
					c.lose = func() bool { n++; return n%13 == 0 }
				}
				size := uint32(10_000)
				if op.IsAtomic() {
					size = 8
				}
				id := uint64(0)
				round := func() {
					for range 8 {
						id++
						c.b.fastRecv(c.now, id, 10_000)
						c.a.fastPost(c.now, id, op, size, c.b.remote(0))
						if op == ib.Read || op == ib.Write || op.IsAtomic() {
							c.b.rq.Pop()
						}
					}
					c.pump()
				}
				for range 20 {
					round()
				}
				if n := testing.AllocsPerRun(20, round); n != 0 {
					t.Errorf("%v allocations for eight messages", n)
				}
				if done.done != int(id) {
					t.Errorf("%d of %d messages completed", done.done, id)
				}
			})
		}
	}
}

// TestPhantom: a connection between regions without bytes has the same headers
// and completions as one with bytes.
// rule: phantom payload
func TestPhantom(t *testing.T) {
	talk := func(phantom bool) (headers []string, wcs []ib.WC) {
		o := lossless()
		o.phantom, o.mtu, o.noCredits = phantom, ib.MTU512, true
		a, b := connect(t, o)
		for i := range 3 {
			b.recv(0, ib.RecvWR{ID: uint64(i), SGL: []ib.SGE{b.sge(0, 4000)}})
		}
		for i, op := range []ib.WROp{ib.Write, ib.Read, ib.SendImm, ib.WriteImm, ib.Send, ib.Read} {
			a.wr(0, ib.SendWR{ID: uint64(i), Op: op, SGL: []ib.SGE{a.sge(0, 100), a.sge(100, 1900+i)}, Remote: b.remote(64)})
		}
		lost := 0
		for range 1000 {
			moved := false
			for _, d := range [2][2]*node{{a, b}, {b, a}} {
				p, ok := d[0].pull(0)
				if !ok {
					continue
				}
				moved = true
				h, _ := wire.BTHOf(p.b)
				headers = append(headers, fmt.Sprintf("%x", p.b[:h.Opcode().Info().Len]))
				if lost++; lost%11 != 0 {
					d[1].give(0, p)
				}
			}
			if !moved {
				return headers, append(a.sent, b.recvd...)
			}
		}
		t.Fatal("never quiet")
		return nil, nil
	}
	h1, w1 := talk(false)
	h2, w2 := talk(true)
	// Regions have keys of their own kind, but the same seed draws the same.
	if len(h1) < 20 || fmt.Sprint(h1) != fmt.Sprint(h2) || fmt.Sprint(w1) != fmt.Sprint(w2) {
		t.Errorf("with bytes %d packets, completions %v\nphantom %d packets, completions %v", len(h1), w1, len(h2), w2)
	}
}

// TestLargest: a message of 2^31 bytes, and the same with the smallest path MTU,
// whose PSNs go half way round the circle.
// rule: messages up to 2^31 bytes
func TestLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of packets")
	}
	most := uint32(ib.MaxMessage)
	if int(most) < 0 {
		t.Skip("the rig counts bytes in int, which has 32 bits here")
	}
	for _, c := range []struct {
		op     ib.WROp
		mtu    ib.MTU
		window bool
	}{{ib.Write, ib.MTU4096, true}, {ib.Read, ib.MTU4096, false}, {ib.Send, ib.MTU256, false}, {ib.Read, ib.MTU256, false}} {
		if raceDetector && c.mtu == ib.MTU256 {
			continue // eight million packets
		}
		t.Run(fmt.Sprintf("%v/%v/window=%v", c.op, c.mtu, c.window), func(t *testing.T) {
			o := lossless()
			o.mtu, o.phantom, o.mem, o.window, o.psnA = c.mtu, true, int(most), c.window, 0xFFFFFE
			cp, done, got := newCouple(t, o)
			n := 0
			cp.lose = func() bool { n++; return n%1_000_003 == 0 }
			cp.b.fastRecv(0, 1, ib.MaxMessage)
			cp.a.fastPost(0, 1, c.op, ib.MaxMessage, cp.b.remote(0))
			cp.a.fastPost(0, 2, ib.Write, 8, cp.b.remote(0))
			cp.pump()
			if done.done != 2 || c.op == ib.Send && got.done != 1 {
				t.Errorf("completions: %d, %d; state %v %v", done.done, got.done, cp.a.eng.State(), cp.b.eng.State())
			}
			var q ib.QPAttr
			cp.a.eng.Query(&q)
			if want := o.psnA.Add(int(most)/c.mtu.Bytes() + 1); q.SQPSN != want {
				t.Errorf("next PSN %v, want %v", q.SQPSN, want)
			}
		})
	}
}
