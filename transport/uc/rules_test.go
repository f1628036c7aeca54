package uc

import (
	"bytes"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
	"github.com/verbena-rdma/verbena/wire"
)

const mtu = 256

func newEngine(c transport.Config) transport.Engine { return New(c) }

// pair is two connected queue pairs in RTS: a sends from PSN 100 on.
type pair struct {
	*testing.T
	a, b *enginetest.Node
}

func connect(t enginetest.Fatal, ca, cb enginetest.Config) (a, b *enginetest.Node) {
	ca.Name, cb.Name = "a", "b"
	ca.QPN, cb.QPN = 0x11, 0x22
	a, b = enginetest.New(t, ca, newEngine), enginetest.New(t, cb, newEngine)
	toRTR(a, 0x22, 500)
	toRTR(b, 0x11, 100)
	toRTS(a, 100)
	toRTS(b, 500)
	return a, b
}

func toRTR(n *enginetest.Node, peer ib.QPN, psn ib.PSN) {
	n.Modify(ib.QPAttr{
		Mask: ib.AttrState | ib.AttrAccess | ib.AttrPort | ib.AttrPKeyIndex, State: ib.Init, Access: ib.RemoteWrite, Port: 1,
	})
	n.Modify(ib.QPAttr{
		Mask: ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN, State: ib.RTR,
		PathMTU: ib.MTU256, DestQPN: peer, RQPSN: psn,
	})
}

func toRTS(n *enginetest.Node, psn ib.PSN) {
	n.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrSQPSN, State: ib.RTS, SQPSN: psn})
}

// write fills n bytes of a's memory with a pattern and returns them.
func (p pair) write(off, n int) []byte {
	for i := range n {
		p.a.Buf[off+i] = byte(off + i*5 + i/256 + 1)
	}
	return bytes.Clone(p.a.Buf[off : off+n])
}

// at compares b's memory.
func (p pair) at(off int, want []byte) {
	p.Helper()
	if got := p.b.Buf[off : off+len(want)]; !bytes.Equal(got, want) {
		p.Fatalf("memory at %d is\n% x\nwant\n% x", off, got, want)
	}
}

// untouched says that nothing of b's memory has changed.
func (p pair) untouched() {
	p.Helper()
	for i, v := range p.b.Buf {
		if v != 0 {
			p.Fatalf("memory at %d has changed", i)
		}
	}
}

func (p pair) state(n *enginetest.Node, want ib.QPState) {
	p.Helper()
	if s := n.Eng.State(); s != want {
		p.Fatalf("state is %v, want %v", s, want)
	}
}

func (p pair) send(id uint64, op ib.WROp, n int) ib.SendWR {
	wr := ib.SendWR{ID: id, Op: op, Flags: ib.Signaled, Imm: 0xCAFE}
	if n > 0 {
		wr.SGL = []ib.SGE{p.a.SGE(0, n)}
	}
	if op.IsWrite() {
		wr.Remote = p.b.Remote(4096)
	}
	return wr
}

// rules are the transcripts: what is posted and delivered, and what has to come
// of it.
var rules = []struct {
	name string
	run  func(p pair)
}{
	{"a message is cut at the path MTU", func(p pair) {
		data := p.write(0, 700)
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(10, ib.Send, 700))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps,
			"UC SEND First, PSN 0x000064, 256 bytes",
			"UC SEND Middle, PSN 0x000065, 256 bytes",
			"UC SEND Last, PSN 0x000066, 188 bytes")
		p.b.Deliver(ps...)
		p.a.Want("send 10: SEND SUCCESS")
		p.b.Want("recv 1: RECV SUCCESS, 700 bytes")
		p.at(0, data)
	}},
	{"a message that fits the path MTU is one packet", func(p pair) {
		for i, n := range []int{0, 1, mtu - 1, mtu} {
			p.a.PostSend(p.send(uint64(i), ib.Send, n))
			if ps := p.a.Drain(); len(ps) != 1 || ps[0].Decode().Op != wire.UCSendOnly {
				p.Errorf("%d bytes: %v", n, ps)
			}
		}
	}},
	{"a multiple of the path MTU ends with a full packet", func(p pair) {
		p.a.PostSend(p.send(1, ib.Write, 2*mtu))
		enginetest.WantPackets(p, p.a.Drain(),
			"UC RDMA WRITE First, PSN 0x000064, 256 bytes",
			"UC RDMA WRITE Last, PSN 0x000065, 256 bytes")
	}},
	{"immediate data is in the last packet", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.b.PostRecv(2)
		p.a.PostSend(p.send(10, ib.SendImm, 300))
		p.a.PostSend(p.send(11, ib.WriteImm, 300))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps,
			"UC SEND First, PSN 0x000064, 256 bytes",
			"UC SEND Last with Immediate, PSN 0x000065, 44 bytes",
			"UC RDMA WRITE First, PSN 0x000066, 256 bytes",
			"UC RDMA WRITE Last with Immediate, PSN 0x000067, 44 bytes")
		p.b.Deliver(ps...)
		p.b.Want("recv 1: RECV SUCCESS, 300 bytes, imm 0xcafe", "recv 2: RECV_RDMA_WITH_IMM SUCCESS, 300 bytes, imm 0xcafe")
	}},
	{"the first packet of a WRITE names place and length of all", func(p pair) {
		p.a.PostSend(p.send(1, ib.Write, 700))
		v := p.a.Drain()[0]
		if h, want := v.Decode().RETH, (wire.RETH{VA: enginetest.Base + 4096, RKey: p.b.MR.RKey, Len: 700}); h != want {
			p.Errorf("RETH is %+v, want %+v", h, want)
		}
	}},
	{"the solicited event is asked for in the last packet", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.b.PostRecv(2)
		for _, op := range []ib.WROp{ib.Send, ib.WriteImm, ib.Write} {
			wr := p.send(10, op, 300)
			wr.Flags = ib.Solicited
			p.a.PostSend(wr)
		}
		ps := p.a.Drain()
		for i := range ps {
			if got, want := ps[i].Decode().Solicited, i == 1 || i == 3; got != want {
				p.Errorf("%v: solicited %v, want %v", &ps[i], got, want)
			}
		}
		p.b.Deliver(ps...)
		p.b.Want("recv 1: RECV SUCCESS, 300 bytes, solicited", "recv 2: RECV_RDMA_WITH_IMM SUCCESS, 300 bytes, imm 0xcafe, solicited")
	}},
	{"a request completes when its last packet has left", func(p pair) {
		p.a.PostSend(p.send(10, ib.Send, 300))
		p.a.PostSend(p.send(11, ib.Send, 10))
		p.a.Next()
		p.a.Want()
		p.a.Next() // the last of 10; its bytes are copied when the next call comes
		p.a.Want()
		p.a.Next()
		p.a.Want("send 10: SEND SUCCESS")
		p.a.Drain()
		p.a.Want("send 11: SEND SUCCESS")
	}},
	{"an unsignaled request completes in silence", func(p pair) {
		for range 40 { // more than the queue holds
			wr := p.send(10, ib.Send, 10)
			wr.Flags = 0
			p.a.PostSend(wr)
			p.a.Drain()
		}
		p.a.Want()
	}},
	{"PSNs wrap at 24 bits", func(p pair) {
		p.a, p.b = connect(p, enginetest.Config{}, enginetest.Config{})
		p.a.Enter(ib.Reset)
		toRTR(p.a, 0x22, 500)
		toRTS(p.a, 0xFFFFFF)
		p.b.Enter(ib.Reset)
		toRTR(p.b, 0x11, 0xFFFFFF)
		data := p.write(0, 700)
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(10, ib.Send, 700))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps,
			"UC SEND First, PSN 0xffffff, 256 bytes",
			"UC SEND Middle, PSN 0x000000, 256 bytes",
			"UC SEND Last, PSN 0x000001, 188 bytes")
		p.b.Deliver(ps...)
		p.b.Want("event COMM_EST", "recv 1: RECV SUCCESS, 700 bytes")
		p.at(0, data)
	}},
	{"inline data needs no region", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 300))
		p.a.PostSend(ib.SendWR{ID: 10, Op: ib.Send, Flags: ib.Inline | ib.Signaled, InlineData: []byte("hello")})
		p.a.PostSend(ib.SendWR{ID: 11, Op: ib.Write, Flags: ib.Inline, InlineData: []byte("there"), Remote: p.b.Remote(100)})
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 5 bytes")
		p.a.Want("send 10: SEND SUCCESS")
		p.at(0, []byte("hello"))
		p.at(100, []byte("there"))
	}},
	{"lists are gathered and scattered across packets", func(p pair) {
		data := p.write(0, 900)
		p.b.PostRecv(1, p.b.SGE(2000, 3), p.b.SGE(3000, 300), ib.SGE{LKey: 0xBAD}, p.b.SGE(5000, 500))
		wr := p.send(10, ib.Send, 0)
		wr.SGL = []ib.SGE{p.a.SGE(400, 300), {LKey: 0xBAD}, p.a.SGE(0, 400), p.a.SGE(800, 1)}
		p.a.PostSend(wr)
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 701 bytes")
		sent := append(append(bytes.Clone(data[400:700]), data[:400]...), data[800])
		p.at(2000, sent[:3])
		p.at(3000, sent[3:303])
		p.at(5000, sent[303:])
	}},
	{"a bad lkey fails the request, flushes what follows and leads to SQE", func(p pair) {
		bad := p.send(10, ib.Send, 700)
		bad.SGL = append(bad.SGL, ib.SGE{Addr: enginetest.Base, Length: 1, LKey: 0xBAD})
		p.a.PostRecv(5, p.a.SGE(0, 10))
		p.a.PostSend(p.send(9, ib.Send, 1))
		p.a.PostSend(bad)
		p.a.PostSend(p.send(11, ib.Write, 1))
		enginetest.WantPackets(p, p.a.Drain(), "UC SEND Only, PSN 0x000064, 1 bytes")
		p.a.Want("send 9: SEND SUCCESS", "send 10: SEND LOC_PROT_ERR", "send 11: RDMA_WRITE WR_FLUSH_ERR")
		p.state(p.a, ib.SQE)
	}},
	{"an element beyond its region fails the request", func(p pair) {
		for _, sge := range []ib.SGE{
			p.a.SGE(len(p.a.Buf)-1, 2), p.a.SGE(-1, 2), {Addr: ^uint64(0), Length: 2, LKey: p.a.MR.LKey},
		} {
			p.a.PostSend(ib.SendWR{ID: 1, Op: ib.Send, SGL: []ib.SGE{sge}})
			enginetest.WantPackets(p, p.a.Drain())
			p.a.Want("send 1: SEND LOC_PROT_ERR")
			p.a.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.RTS})
		}
	}},
	{"a region that goes away ends the message under way", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(10, ib.Send, 700))
		first, _ := p.a.Next()
		p.a.Mem.Deregister(p.a.MR)
		enginetest.WantPackets(p, p.a.Drain())
		p.a.Want("send 10: SEND LOC_PROT_ERR")
		p.state(p.a, ib.SQE)
		p.b.Deliver(first)
		p.b.Want()
	}},
	{"in SQE sends are flushed and receives go on", func(p pair) {
		p.a.PostSend(ib.SendWR{ID: 1, Op: ib.Send, SGL: []ib.SGE{{Length: 1, LKey: 0xBAD}}})
		p.a.Drain()
		p.a.Want("send 1: SEND LOC_PROT_ERR")
		p.a.PostSend(p.send(2, ib.Send, 1))
		p.a.Want("send 2: SEND WR_FLUSH_ERR")
		p.a.PostRecv(3, p.a.SGE(0, 10))
		p.a.Deliver(packet(wire.UCSendOnly, 500, []byte("abc")))
		p.a.Want("recv 3: RECV SUCCESS, 3 bytes")
		p.state(p.a, ib.SQE)
	}},
	{"SQE to RTS sends again from the next PSN", func(p pair) {
		p.b.PostRecv(7, p.b.SGE(0, 10))
		p.a.PostSend(p.send(0, ib.Send, 1))
		p.a.PostSend(ib.SendWR{ID: 1, Op: ib.Send, SGL: []ib.SGE{{Length: 1, LKey: 0xBAD}}})
		p.b.Deliver(p.a.Drain()...)
		p.a.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.RTS})
		p.b.PostRecv(8, p.b.SGE(0, 10))
		p.a.PostSend(p.send(2, ib.Send, 1))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps, "UC SEND Only, PSN 0x000065, 1 bytes")
		p.b.Deliver(ps...)
		p.b.Want("recv 7: RECV SUCCESS, 1 bytes", "recv 8: RECV SUCCESS, 1 bytes")
	}},
	{"Error flushes both queues in order", func(p pair) {
		for id := range uint64(3) {
			p.a.PostSend(p.send(id, ib.Send, 300))
			p.a.PostRecv(10+id, p.a.SGE(0, 10))
		}
		p.a.Next()
		p.a.Enter(ib.Error)
		p.a.Want("send 0: SEND WR_FLUSH_ERR", "send 1: SEND WR_FLUSH_ERR", "send 2: SEND WR_FLUSH_ERR",
			"recv 10: RECV WR_FLUSH_ERR", "recv 11: RECV WR_FLUSH_ERR", "recv 12: RECV WR_FLUSH_ERR")
		enginetest.WantPackets(p, p.a.Drain())
	}},
	{"a request that has left is not flushed", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostSend(p.send(2, ib.Send, 3))
		p.a.Next()
		p.a.Enter(ib.Error)
		p.a.Want("send 1: SEND SUCCESS", "send 2: SEND WR_FLUSH_ERR")
	}},
	{"what is posted in Error is flushed", func(p pair) {
		p.a.Enter(ib.Error)
		p.a.PostRecv(1, p.a.SGE(0, 10))
		p.a.PostSend(p.send(2, ib.Write, 1))
		p.a.Want("recv 1: RECV WR_FLUSH_ERR", "send 2: RDMA_WRITE WR_FLUSH_ERR")
	}},
	{"Reset empties both queues without completions", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostSend(p.send(2, ib.Send, 3))
		p.a.PostRecv(3, p.a.SGE(0, 10))
		p.a.Enter(ib.Reset)
		p.a.Want()
		if p.a.Send.Free() != p.a.Send.Depth() || p.a.Recv.Posted() != 0 {
			p.Error("the queues are not empty")
		}
		enginetest.WantPackets(p, p.a.Drain())
		toRTR(p.a, 0x22, 500)
		toRTS(p.a, 7)
		p.a.PostSend(p.send(4, ib.Send, 3))
		enginetest.WantPackets(p, p.a.Drain(), "UC SEND Only, PSN 0x000007, 3 bytes")
	}},
	{"SQD finishes the message under way and says when it is drained", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.a.PostSend(p.send(2, ib.Send, 3))
		p.a.Next()
		p.a.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrEnSQDAsyncNotify, State: ib.SQD, SQDAsyncNotify: true})
		p.a.Want()
		enginetest.WantPackets(p, p.a.Drain(), "UC SEND Middle, PSN 0x000065, 256 bytes", "UC SEND Last, PSN 0x000066, 188 bytes")
		p.a.Want("send 1: SEND SUCCESS", "event SQ_DRAINED")
		p.a.Enter(ib.RTS)
		enginetest.WantPackets(p, p.a.Drain(), "UC SEND Only, PSN 0x000067, 3 bytes")
		p.a.Want("send 2: SEND SUCCESS")
	}},
	{"SQD with nothing under way is drained at once", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.Enter(ib.SQD)
		p.a.Want() // not asked for
		p.a.Enter(ib.RTS)
		p.a.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrEnSQDAsyncNotify, State: ib.SQD, SQDAsyncNotify: true})
		p.a.Want("event SQ_DRAINED")
		enginetest.WantPackets(p, p.a.Drain())
	}},
	{"nothing is sent before RTS", func(p pair) {
		p.a.Enter(ib.Reset)
		toRTR(p.a, 0x22, 500)
		p.a.PostSend(p.send(1, ib.Send, 3))
		enginetest.WantPackets(p, p.a.Drain())
		toRTS(p.a, 1)
		enginetest.WantPackets(p, p.a.Drain(), "UC SEND Only, PSN 0x000001, 3 bytes")
	}},
	{"a query tells the PSNs as they are", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.b.Deliver(p.a.Drain()...)
		var qa, qb ib.QPAttr
		p.a.Eng.Query(&qa)
		p.b.Eng.Query(&qb)
		if qa.SQPSN != 103 || qb.RQPSN != 103 || qa.DestQPN != 0x22 || qa.PathMTU != ib.MTU256 || qa.State != ib.RTS || qa.Access != ib.RemoteWrite {
			p.Errorf("%+v\n%+v", qa, qb)
		}
	}},

	{"a WRITE reports nothing to the peer", func(p pair) {
		data := p.write(0, 700)
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Write, 700))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want()
		p.at(4096, data)
	}},
	{"a WRITE with immediate takes a receive and reports the length of the WRITE", func(p pair) {
		data := p.write(0, 700)
		p.b.PostRecv(1)
		p.a.PostSend(p.send(1, ib.WriteImm, 700))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV_RDMA_WITH_IMM SUCCESS, 700 bytes, imm 0xcafe")
		p.at(4096, data)
	}},
	{"messages of no bytes arrive, and a WRITE of none needs no key", func(p pair) {
		p.b.PostRecv(1)
		p.b.PostRecv(2)
		p.a.PostSend(p.send(1, ib.Send, 0))
		wr := p.send(1, ib.WriteImm, 0)
		wr.Remote = ib.Remote{Addr: ^uint64(0), RKey: 0xBAD}
		p.a.PostSend(wr)
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 0 bytes", "recv 2: RECV_RDMA_WITH_IMM SUCCESS, 0 bytes, imm 0xcafe")
	}},
	{"a gap drops the rest of the message and its receive serves the next", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 1000))
		p.a.PostSend(p.send(2, ib.Send, 1000))
		ps := p.a.Drain()
		p.b.Deliver(ps[0], ps[2], ps[3])
		p.b.Want("drop broken_message", "drop broken_message")
		data := p.write(0, 1000)
		p.a.PostSend(p.send(3, ib.Send, 1000))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 1000 bytes")
		p.at(0, data)
	}},
	{"a lost first packet drops the message", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.b.Deliver(p.a.Drain()[1:]...)
		p.b.Want("drop broken_message", "drop broken_message")
		p.untouched()
	}},
	{"a lost last packet leaves the receive to the next message", func(p pair) {
		p.write(0, 700)
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.b.Deliver(p.a.Drain()[:2]...)
		data := p.write(0, 10)
		p.a.PostSend(p.send(2, ib.Send, 10))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 10 bytes")
		p.at(0, data)
	}},
	{"a lost WRITE packet leaves the rest unwritten", func(p pair) {
		data := p.write(0, 700)
		p.b.PostRecv(1)
		p.a.PostSend(p.send(1, ib.WriteImm, 700))
		ps := p.a.Drain()
		p.b.Deliver(ps[0], ps[2])
		p.b.Want("drop broken_message")
		p.at(4096, data[:mtu])
		p.at(4096+mtu, make([]byte, 700-mtu))
	}},
	{"a message starts at a FIRST or ONLY with any PSN ahead", func(p pair) {
		for i, psn := range []ib.PSN{100, 105, 5000, 5000 + 1<<22, 5000 + 1<<23} {
			p.b.PostRecv(uint64(i), p.b.SGE(0, 10))
			p.b.Deliver(packet(wire.UCSendOnly, psn, []byte("abc")))
		}
		p.b.PostRecv(9, p.b.SGE(0, 1000))
		p.b.Deliver(packet(wire.UCSendFirst, 9000000, make([]byte, mtu)), packet(wire.UCSendLast, 9000001, []byte("abc")))
		p.b.Want("recv 0: RECV SUCCESS, 3 bytes", "recv 1: RECV SUCCESS, 3 bytes", "recv 2: RECV SUCCESS, 3 bytes",
			"recv 3: RECV SUCCESS, 3 bytes", "recv 4: RECV SUCCESS, 3 bytes", "recv 9: RECV SUCCESS, 259 bytes")
	}},
	{"what was seen does not come again", func(p pair) {
		data := p.write(0, 700)
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.b.PostRecv(2, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		ps := p.a.Drain()
		p.b.Deliver(ps[0], ps[0], ps[1], ps[0], ps[1], ps[2], ps[2], ps[0])
		p.b.Want("drop duplicate", "drop duplicate", "drop duplicate", "recv 1: RECV SUCCESS, 700 bytes", "drop duplicate", "drop duplicate")
		p.at(0, data)
		if p.b.Counters.Events[transport.DuplicateRequest] != 5 {
			p.Errorf("%d duplicates counted", p.b.Counters.Events[transport.DuplicateRequest])
		}
	}},
	{"a stray packet far ahead does not deafen", func(p pair) {
		for i := range uint64(4) {
			p.b.PostRecv(i, p.b.SGE(0, 10))
		}
		p.b.Deliver(packet(wire.UCSendOnly, 100+3*recent, []byte("stray")))
		p.b.Want("recv 0: RECV SUCCESS, 5 bytes")
		p.b.Deliver(packet(wire.UCSendMiddle, 100, make([]byte, mtu)), packet(wire.UCSendLast, 101, []byte("x")))
		p.b.Want("drop duplicate", "drop duplicate")
		p.b.Deliver(packet(wire.UCSendOnly, 102, []byte("abc")), packet(wire.UCSendOnly, 103, []byte("abc")))
		p.b.Want("recv 1: RECV SUCCESS, 3 bytes", "recv 2: RECV SUCCESS, 3 bytes")
		p.b.Deliver(packet(wire.UCSendOnly, ib.PSN(104).Add(-recent), nil), packet(wire.UCSendOnly, ib.PSN(104).Add(-recent-1), nil))
		p.b.Want("drop duplicate", "recv 3: RECV SUCCESS, 0 bytes")
	}},
	{"packets out of order break the message", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		ps := p.a.Drain()
		p.b.Deliver(ps[0], ps[2], ps[1])
		p.b.Want("drop broken_message", "drop duplicate")
	}},
	{"a FIRST in the middle of a message starts anew", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.b.Deliver(packet(wire.UCSendFirst, 100, bytes.Repeat([]byte("x"), mtu)),
			packet(wire.UCSendFirst, 101, bytes.Repeat([]byte("y"), mtu)), packet(wire.UCSendLast, 102, []byte("z")))
		p.b.Want("recv 1: RECV SUCCESS, 257 bytes")
		p.at(0, append(bytes.Repeat([]byte("y"), mtu), 'z'))
	}},
	{"an opcode out of sequence ends the message", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		full := make([]byte, mtu)
		p.b.Deliver(packet(wire.UCSendMiddle, 100, full)) // no message at all
		p.b.Want("drop opcode")
		p.b.Deliver(packet(wire.UCSendFirst, 101, full), packet(wire.UCWriteMiddle, 102, full), packet(wire.UCSendLast, 103, full))
		p.b.Want("drop opcode", "drop broken_message")
		p.b.Deliver(packet(wire.UCSendOnly, 104, full), packet(wire.UCSendLast, 105, full))
		p.b.Want("recv 1: RECV SUCCESS, 256 bytes", "drop opcode")
	}},
	{"a payload that does not fit its opcode drops the message", func(p pair) {
		for _, c := range []struct {
			op wire.Opcode
			n  int
		}{
			{wire.UCSendFirst, mtu - 1},
			{wire.UCSendFirst, mtu + 4},
			{wire.UCSendFirst, 0},
			{wire.UCSendOnly, mtu + 1},
			{wire.UCSendOnlyImm, mtu + 1},
			{wire.UCSendMiddle, mtu - 1},
			{wire.UCSendMiddle, 0},
			{wire.UCSendLast, 0},
			{wire.UCSendLast, mtu + 1},
			{wire.UCSendLastImm, 0},
		} {
			p.a, p.b = connect(p, enginetest.Config{}, enginetest.Config{})
			p.b.PostRecv(1, p.b.SGE(0, 5000))
			psn := ib.PSN(100)
			want := []string{"drop length"}
			if !c.op.Info().Pos.Starts() {
				p.b.Deliver(packet(wire.UCSendFirst, psn, make([]byte, mtu)))
				psn++
			}
			p.b.Deliver(packet(c.op, psn, make([]byte, c.n)), packet(wire.UCSendLast, psn+1, []byte("x")))
			p.b.Want(append(want, "drop broken_message")...)
		}
	}},
	{"a WRITE must have the length that it announced", func(p pair) {
		full := make([]byte, mtu)
		for _, c := range []struct {
			name string
			ps   []enginetest.Packet
		}{
			{"only, short", []enginetest.Packet{p.writePacket(wire.UCWriteOnly, 100, 11, make([]byte, 10))}},
			{"only, long", []enginetest.Packet{p.writePacket(wire.UCWriteOnly, 100, 9, make([]byte, 10))}},
			{"only, empty", []enginetest.Packet{p.writePacket(wire.UCWriteOnlyImm, 100, 9, nil)}},
			{"first is all", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, mtu, full)}},
			{"first is more than all", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, 9, full)}},
			{"last too short", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, 300, full), packet(wire.UCWriteLast, 101, make([]byte, 43))}},
			{"last too long", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, 300, full), packet(wire.UCWriteLast, 101, make([]byte, 45))}},
			{"middle is the end", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, 512, full), packet(wire.UCWriteMiddle, 101, full)}},
			{"above 2^31", []enginetest.Packet{p.writePacket(wire.UCWriteFirst, 100, 1<<31+1, full)}},
		} {
			_, p.b = connect(p, enginetest.Config{}, enginetest.Config{})
			p.b.PostRecv(1)
			p.b.Deliver(c.ps...)
			if got := p.b.Take(); got != "drop length" {
				p.Errorf("%s: %s", c.name, got)
			}
			p.state(p.b, ib.RTS)
		}
	}},
	{"a SEND longer than the receive is dropped", func(p pair) {
		data := p.write(0, 10)
		p.b.PostRecv(1, p.b.SGE(0, 300))
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.a.PostSend(p.send(2, ib.Send, 10))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("drop too_long", "drop broken_message", "recv 1: RECV SUCCESS, 10 bytes")
		p.at(0, data)
		p.state(p.b, ib.RTS)
	}},
	{"without a receive a SEND is dropped as a whole", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 700))
		ps := p.a.Drain()
		p.b.Deliver(ps[0])
		p.b.PostRecv(1, p.b.SGE(0, 1000)) // too late for this one
		p.b.Deliver(ps[1:]...)
		p.b.Want("drop no_recv", "drop broken_message", "drop broken_message")
		p.state(p.b, ib.RTS)
	}},
	{"without a receive the last packet of a WRITE with immediate is dropped", func(p pair) {
		data := p.write(0, 300)
		p.a.PostSend(p.send(1, ib.WriteImm, 300))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("drop no_recv")
		p.at(4096, append(data[:mtu:mtu], make([]byte, 44)...))
		p.state(p.b, ib.RTS)
	}},
	{"a WRITE that memory or access rights forbid is dropped", func(p pair) {
		full := make([]byte, mtu)
		for i := range full {
			full[i] = 1
		}
		other, _ := p.b.Mem.Register(enginetest.PD+1, p.b.Buf, enginetest.Base, ib.LocalWrite|ib.RemoteAll)
		end := uint64(enginetest.Base + len(p.b.Buf))
		for _, c := range []struct {
			name string
			reth wire.RETH
		}{
			{"no such key", wire.RETH{VA: enginetest.Base, RKey: 0xBAD, Len: 300}},
			{"read-only region", wire.RETH{VA: enginetest.Base, RKey: p.b.RO.RKey, Len: 300}},
			{"other protection domain", wire.RETH{VA: enginetest.Base, RKey: other.RKey, Len: 300}},
			{"before the region", wire.RETH{VA: enginetest.Base - 1, RKey: p.b.MR.RKey, Len: 300}},
			{"beyond the region in a later packet", wire.RETH{VA: end - 299, RKey: p.b.MR.RKey, Len: 300}},
			{"wraps", wire.RETH{VA: ^uint64(0) - 200, RKey: p.b.MR.RKey, Len: 300}},
		} {
			psn := p.query().RQPSN
			v := wire.Packet{PSN: psn, PKey: ib.DefaultPKey, RETH: c.reth, Payload: full}
			v.SetOp(wire.UCWriteFirst)
			p.b.Deliver(encode(v), packet(wire.UCWriteLast, psn+1, full[:44]))
			if got := p.b.Take(); got != "drop access\ndrop broken_message" {
				p.Errorf("%s: %s", c.name, got)
			}
		}
		p.b.Modify(ib.QPAttr{Mask: ib.AttrAccess, Access: ib.RemoteRead})
		p.b.Deliver(p.writePacket(wire.UCWriteOnly, p.query().RQPSN, 10, full[:10]))
		p.b.Want("drop access")
		p.untouched()
		p.state(p.b, ib.RTS)
	}},
	{"a region that goes away ends the WRITE under way", func(p pair) {
		p.a.PostSend(p.send(1, ib.Write, 700))
		ps := p.a.Drain()
		p.b.Deliver(ps[0])
		p.b.Mem.Deregister(p.b.MR)
		p.b.Deliver(ps[1:]...)
		p.b.Want("drop access", "drop broken_message")
		p.state(p.b, ib.RTS)
	}},
	{"a receive whose memory cannot be written fails and leads to Error", func(p pair) {
		p.b.PostRecv(1, ib.SGE{Addr: enginetest.Base, Length: 100, LKey: p.b.RO.LKey})
		p.b.PostRecv(2, p.b.SGE(0, 100))
		p.b.PostSend(ib.SendWR{ID: 3, Op: ib.Send})
		p.a.PostSend(p.send(1, ib.Send, 10))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV LOC_PROT_ERR", "send 3: SEND WR_FLUSH_ERR", "recv 2: RECV WR_FLUSH_ERR")
		p.state(p.b, ib.Error)
		p.untouched()
	}},
	{"packets of other services are dropped", func(p pair) {
		wire.Opcodes(func(i *wire.OpInfo) {
			if i.Transport == ib.UC {
				return
			}
			p.b.Deliver(packet(i.Op, 100, nil))
			p.b.Want("drop opcode")
		})
		if p.query().RQPSN != 100 {
			p.Error("they moved the expected PSN")
		}
	}},
	{"a packet of another partition is dropped", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		for _, k := range []ib.PKey{0, 0x8000, 0x7FFE, 0x8001} {
			v := wire.Packet{PSN: 100, PKey: k}
			v.SetOp(wire.UCSendOnly)
			p.b.Deliver(encode(v))
			p.b.Want("drop pkey")
		}
		v := wire.Packet{PSN: 100, PKey: 0x7FFF} // a limited member of ours
		v.SetOp(wire.UCSendOnly)
		p.b.Deliver(encode(v))
		p.b.Want("recv 1: RECV SUCCESS, 0 bytes")
	}},
	{"packets are taken in RTR, RTS, SQD and SQE", func(p pair) {
		p.b.Enter(ib.Reset)
		p.b.Deliver(packet(wire.UCSendOnly, 100, nil))
		p.b.Enter(ib.Init)
		p.b.Deliver(packet(wire.UCSendOnly, 100, nil))
		p.b.Want("drop state", "drop state")
		toRTR(p.b, 0x11, 100)
		p.b.PostRecv(1, p.b.SGE(0, 10))
		p.b.Deliver(packet(wire.UCSendOnly, 100, nil))
		p.b.Want("event COMM_EST", "recv 1: RECV SUCCESS, 0 bytes")
		toRTS(p.b, 1)
		for i, s := range []ib.QPState{ib.RTS, ib.SQD, ib.SQE} {
			p.b.Enter(s)
			p.b.PostRecv(2, p.b.SGE(0, 10))
			p.b.Deliver(packet(wire.UCSendOnly, 101+ib.PSN(i), nil))
			p.b.Want("recv 2: RECV SUCCESS, 0 bytes")
		}
		p.b.Enter(ib.Error)
		p.b.Deliver(packet(wire.UCSendOnly, 104, nil))
		p.b.Want("drop state")
	}},
	{"the first packet in RTR establishes communication, once", func(p pair) {
		p.b.Enter(ib.Reset)
		toRTR(p.b, 0x11, 100)
		p.b.Deliver(packet(wire.UCSendOnly, 100, nil), packet(wire.UCSendOnly, 101, nil))
		p.b.Want("event COMM_EST", "drop no_recv", "drop no_recv")
	}},
	{"phantom memory behaves like memory", func(p pair) {
		p.a, p.b = connect(p, enginetest.Config{Phantom: true}, enginetest.Config{Phantom: true})
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.a.PostSend(p.send(1, ib.Send, 700))
		p.a.PostSend(p.send(2, ib.Write, 700))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps,
			"UC SEND First, PSN 0x000064, 256 bytes",
			"UC SEND Middle, PSN 0x000065, 256 bytes",
			"UC SEND Last, PSN 0x000066, 188 bytes",
			"UC RDMA WRITE First, PSN 0x000067, 256 bytes",
			"UC RDMA WRITE Middle, PSN 0x000068, 256 bytes",
			"UC RDMA WRITE Last, PSN 0x000069, 188 bytes")
		p.b.Deliver(ps...)
		p.a.Want("send 1: SEND SUCCESS", "send 2: RDMA_WRITE SUCCESS")
		p.b.Want("recv 1: RECV SUCCESS, 700 bytes")
		p.a.PostSend(ib.SendWR{ID: 3, Op: ib.Send, SGL: []ib.SGE{p.a.SGE(1<<16-1, 2)}})
		p.a.Drain()
		p.a.Want("send 3: SEND LOC_PROT_ERR")
	}},
	{"MigReq is what the adapter says", func(p pair) {
		for _, on := range []bool{false, true} {
			p.a, _ = connect(p, enginetest.Config{MigReq: on}, enginetest.Config{})
			p.a.PostSend(p.send(1, ib.Send, 3)) // Next holds every packet against the configuration
			if ps := p.a.Drain(); ps[0].Decode().MigReq != on {
				p.Errorf("MigReq is %v", !on)
			}
		}
	}},
}

func (p pair) query() (a ib.QPAttr) {
	p.b.Eng.Query(&a)
	return a
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			p := pair{T: t}
			p.a, p.b = connect(t, enginetest.Config{}, enginetest.Config{})
			r.run(p)
		})
	}
}

func TestRuleList(t *testing.T) {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	enginetest.CheckRules(t, "testdata/rules.txt", names)
}

// packet returns a packet from the peer of b.
func packet(op wire.Opcode, psn ib.PSN, payload []byte) enginetest.Packet {
	v := wire.Packet{PSN: psn, PKey: ib.DefaultPKey, Payload: payload}
	v.SetOp(op)
	return encode(v)
}

func (p pair) writePacket(op wire.Opcode, psn ib.PSN, n uint32, payload []byte) enginetest.Packet {
	v := wire.Packet{PSN: psn, PKey: ib.DefaultPKey, Payload: payload, RETH: wire.RETH{VA: enginetest.Base, RKey: p.b.MR.RKey, Len: n}}
	v.SetOp(op)
	return encode(v)
}

func encode(v wire.Packet) enginetest.Packet {
	v.Pad = wire.PadFor(len(v.Payload))
	b := make([]byte, v.HeaderLen(), v.HeaderLen()+len(v.Payload)+3)
	v.EncodeHeaders(b)
	b = append(b, v.Payload...)
	return enginetest.Packet{Bytes: append(b, 0, 0, 0)[:len(b)+int(v.Pad)]}
}
