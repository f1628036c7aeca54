package ud

import (
	"bytes"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
	"github.com/verbena-rdma/verbena/wire"
)

const (
	mtu  = 256
	qkey = 0x11111111
)

func newEngine(c transport.Config) transport.Engine { return New(c) }

// pair is two queue pairs in RTS; a sends from PSN 100 on.
type pair struct {
	*testing.T
	a, b *enginetest.Node
}

func newPair(t enginetest.Fatal, ca, cb enginetest.Config) (a, b *enginetest.Node) {
	ca.Name, cb.Name = "a", "b"
	ca.QPN, cb.QPN = 0x11, 0x22
	a, b = enginetest.New(t, ca, newEngine), enginetest.New(t, cb, newEngine)
	for _, n := range []*enginetest.Node{a, b} {
		toRTR(n)
		toRTS(n, 100)
	}
	return a, b
}

func toInit(n *enginetest.Node) {
	n.Modify(ib.QPAttr{
		Mask: ib.AttrState | ib.AttrQKey | ib.AttrPort | ib.AttrPKeyIndex | ib.AttrPathMTU, State: ib.Init,
		QKey: qkey, Port: 1, PathMTU: ib.MTU256,
	})
}

func toRTR(n *enginetest.Node) {
	toInit(n)
	n.Enter(ib.RTR)
}

func toRTS(n *enginetest.Node, psn ib.PSN) {
	n.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrSQPSN, State: ib.RTS, SQPSN: psn})
}

// send is a request of a for n bytes to b.
func (p pair) send(id uint64, op ib.WROp, n int) ib.SendWR {
	wr := ib.SendWR{
		ID: id, Op: op, Flags: ib.Signaled, Imm: 0xCAFE,
		UD: ib.Datagram{AH: 5, QPN: 0x22, QKey: qkey},
	}
	if n > 0 {
		wr.SGL = []ib.SGE{p.a.SGE(0, n)}
	}
	return wr
}

// write fills n bytes of a's memory with a pattern and returns them.
func (p pair) write(off, n int) []byte {
	for i := range n {
		p.a.Buf[off+i] = byte(off + i*5 + 1)
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

// datagram is a packet for b from queue pair 0x77 of somebody.
func datagram(payload []byte, change ...func(*wire.Packet)) enginetest.Packet {
	v := wire.Packet{PKey: ib.DefaultPKey, Payload: payload, DETH: wire.DETH{QKey: qkey, SrcQPN: 0x77}}
	v.SetOp(wire.UDSendOnly)
	for _, c := range change {
		c(&v)
	}
	v.Pad = wire.PadFor(len(v.Payload))
	b := make([]byte, v.HeaderLen(), v.HeaderLen()+len(v.Payload)+3)
	v.EncodeHeaders(b)
	b = append(b, v.Payload...)
	return enginetest.Packet{Bytes: append(b, 0, 0, 0)[:len(b)+int(v.Pad)]}
}

// rules are the transcripts: what is posted and delivered, and what has to come
// of it.
var rules = []struct {
	name string
	run  func(p pair)
}{
	{"a message is one packet", func(p pair) {
		data := p.write(0, 200)
		p.b.PostRecv(1, p.b.SGE(0, 40+200))
		p.a.PostSend(p.send(10, ib.Send, 200))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps, "UD SEND Only, PSN 0x000064, 200 bytes")
		p.b.Deliver(ps...)
		p.a.Want("send 10: SEND SUCCESS")
		p.b.Want("recv 1: RECV SUCCESS, 240 bytes, GRH")
		p.at(0, enginetest.GRH[:])
		p.at(40, data)
	}},
	{"the request says where the packet goes", func(p pair) {
		wr := p.send(1, ib.Send, 3)
		wr.UD = ib.Datagram{AH: 9, QPN: 0xABCDEF, QKey: 0x1234}
		p.a.PostSend(wr)
		pk := p.a.Drain()[0]
		v := pk.Decode()
		if pk.Head.AH != 9 || pk.Head.DestQPN != 0xABCDEF || v.DestQPN != 0xABCDEF {
			p.Errorf("head %+v, BTH to %v", pk.Head, v.DestQPN)
		}
		if want := (wire.DETH{QKey: 0x1234, SrcQPN: 0x11}); v.DETH != want {
			p.Errorf("DETH is %+v, want %+v", v.DETH, want)
		}
	}},
	{"a privileged Q_Key stands for the queue pair's own", func(p pair) {
		for _, k := range []ib.QKey{0x80000000, 0xFFFFFFFF, 0x80010000} {
			wr := p.send(1, ib.Send, 3)
			wr.UD.QKey = k
			p.a.PostSend(wr)
			if v := p.a.Drain()[0].Decode(); v.DETH.QKey != qkey {
				p.Errorf("0x%x sends 0x%x", k, v.DETH.QKey)
			}
		}
		p.a.Modify(ib.QPAttr{Mask: ib.AttrQKey, QKey: 0x99})
		wr := p.send(1, ib.Send, 3)
		wr.UD.QKey = 0x80000000
		p.a.PostSend(wr)
		if v := p.a.Drain()[0].Decode(); v.DETH.QKey != 0x99 {
			p.Errorf("after a change of key 0x%x", v.DETH.QKey)
		}
	}},
	{"immediate data and the solicited event arrive", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		wr := p.send(1, ib.SendImm, 3)
		wr.Flags |= ib.Solicited
		p.a.PostSend(wr)
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps, "UD SEND Only with Immediate, PSN 0x000064, 3 bytes")
		p.b.Deliver(ps...)
		p.b.Want("recv 1: RECV SUCCESS, 43 bytes, imm 0xcafe, GRH, solicited")
	}},
	{"the completion names the sender and the local GID", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		p.b.Deliver(datagram([]byte("abc")))
		if wc := p.b.RecvWCs[0]; wc.SrcQPN != 0x77 || wc.SGIDIndex != enginetest.SGIDIndex || wc.QPN != 0x22 || wc.Bytes != 43 {
			p.Errorf("%+v", wc)
		}
	}},
	{"a message of the MTU is sent, one more byte is a length error", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, mtu))
		p.a.PostSend(p.send(2, ib.Send, mtu+1))
		p.a.PostSend(p.send(3, ib.Send, 1))
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000064, 256 bytes")
		p.a.Want("send 1: SEND SUCCESS", "send 2: SEND LOC_LEN_ERR", "send 3: SEND WR_FLUSH_ERR")
		p.state(p.a, ib.SQE)
	}},
	{"the length is checked before the memory", func(p pair) {
		wr := p.send(1, ib.Send, 0)
		wr.SGL = []ib.SGE{{Length: 1 << 31, LKey: 0xBAD}}
		p.a.PostSend(wr)
		p.a.Drain()
		p.a.Want("send 1: SEND LOC_LEN_ERR")
	}},
	{"a request completes when its packet has left", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostSend(p.send(2, ib.Send, 3))
		p.a.Next()
		p.a.Want()
		p.a.Next() // now the bytes of 1 are copied
		p.a.Want("send 1: SEND SUCCESS")
		p.a.Drain()
		p.a.Want("send 2: SEND SUCCESS")
	}},
	{"an unsignaled request completes in silence", func(p pair) {
		for range 40 {
			wr := p.send(10, ib.Send, 10)
			wr.Flags = 0
			p.a.PostSend(wr)
			p.a.Drain()
		}
		p.a.Want()
	}},
	{"each packet has a PSN of its own, and they wrap", func(p pair) {
		p.a.Enter(ib.Reset)
		toRTR(p.a)
		toRTS(p.a, 0xFFFFFF)
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostSend(p.send(2, ib.Send, 3))
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0xffffff, 3 bytes", "UD SEND Only, PSN 0x000000, 3 bytes")
	}},
	{"PSNs are not looked at", func(p pair) {
		for i, psn := range []ib.PSN{5, 5, 3, 0x800000} {
			p.b.PostRecv(uint64(i), p.b.SGE(0, 100))
			p.b.Deliver(datagram(nil, func(v *wire.Packet) { v.PSN = psn }))
		}
		p.b.Want("recv 0: RECV SUCCESS, 40 bytes, GRH", "recv 1: RECV SUCCESS, 40 bytes, GRH",
			"recv 2: RECV SUCCESS, 40 bytes, GRH", "recv 3: RECV SUCCESS, 40 bytes, GRH")
	}},
	{"inline data needs no region", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 300))
		wr := p.send(10, ib.Send, 0)
		wr.Flags, wr.InlineData = ib.Inline|ib.Signaled, []byte("hello")
		p.a.PostSend(wr)
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 45 bytes, GRH")
		p.a.Want("send 10: SEND SUCCESS")
		p.at(40, []byte("hello"))
	}},
	{"lists are gathered, and scattered with the GRH across elements", func(p pair) {
		data := p.write(0, 200)
		p.b.PostRecv(1, p.b.SGE(1000, 7), p.b.SGE(2000, 34), ib.SGE{LKey: 0xBAD}, p.b.SGE(3000, 100))
		wr := p.send(10, ib.Send, 0)
		wr.SGL = []ib.SGE{p.a.SGE(100, 30), {LKey: 0xBAD}, p.a.SGE(0, 70)}
		p.a.PostSend(wr)
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 140 bytes, GRH")
		sent := append(bytes.Clone(data[100:130]), data[:70]...)
		p.at(1000, enginetest.GRH[:7])
		p.at(2000, append(bytes.Clone(enginetest.GRH[7:]), sent[0]))
		p.at(3000, sent[1:])
	}},
	{"a message of no bytes brings its GRH", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 40))
		p.a.PostSend(p.send(1, ib.Send, 0))
		p.b.Deliver(p.a.Drain()...)
		p.b.Want("recv 1: RECV SUCCESS, 40 bytes, GRH")
		p.at(0, enginetest.GRH[:])
	}},
	{"a bad lkey fails the request, flushes what follows and leads to SQE", func(p pair) {
		bad := p.send(10, ib.Send, 20)
		bad.SGL = append(bad.SGL, ib.SGE{Addr: enginetest.Base, Length: 1, LKey: 0xBAD})
		p.a.PostSend(p.send(9, ib.Send, 1))
		p.a.PostSend(bad)
		p.a.PostSend(p.send(11, ib.Send, 1))
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000064, 1 bytes")
		p.a.Want("send 9: SEND SUCCESS", "send 10: SEND LOC_PROT_ERR", "send 11: SEND WR_FLUSH_ERR")
		p.state(p.a, ib.SQE)
	}},
	{"an element beyond its region fails the request", func(p pair) {
		for _, sge := range []ib.SGE{
			p.a.SGE(len(p.a.Buf)-1, 2), p.a.SGE(-1, 2), {Addr: ^uint64(0), Length: 2, LKey: p.a.MR.LKey},
		} {
			wr := p.send(1, ib.Send, 0)
			wr.SGL = []ib.SGE{sge}
			p.a.PostSend(wr)
			enginetest.WantPackets(p, p.a.Drain())
			p.a.Want("send 1: SEND LOC_PROT_ERR")
			p.a.Enter(ib.RTS)
		}
	}},
	{"in SQE sends are flushed and receives go on", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, mtu+1))
		p.a.Drain()
		p.a.Want("send 1: SEND LOC_LEN_ERR")
		p.a.PostSend(p.send(2, ib.Send, 1))
		p.a.Want("send 2: SEND WR_FLUSH_ERR")
		p.a.PostRecv(3, p.a.SGE(0, 100))
		p.a.Deliver(datagram([]byte("abc")))
		p.a.Want("recv 3: RECV SUCCESS, 43 bytes, GRH")
		p.state(p.a, ib.SQE)
	}},
	{"SQE to RTS sends again from the next PSN", func(p pair) {
		p.a.PostSend(p.send(0, ib.Send, 1))
		p.a.PostSend(p.send(1, ib.Send, mtu+1))
		p.a.Drain()
		p.a.Enter(ib.RTS)
		p.a.PostSend(p.send(2, ib.Send, 1))
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000065, 1 bytes")
	}},
	{"Error flushes both queues in order", func(p pair) {
		for id := range uint64(3) {
			p.a.PostSend(p.send(id, ib.Send, 30))
			p.a.PostRecv(10+id, p.a.SGE(0, 10))
		}
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
		p.a.PostSend(p.send(2, ib.Send, 1))
		p.a.Want("recv 1: RECV WR_FLUSH_ERR", "send 2: SEND WR_FLUSH_ERR")
	}},
	{"Reset empties both queues without completions", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostRecv(3, p.a.SGE(0, 10))
		p.a.Enter(ib.Reset)
		p.a.Want()
		if p.a.Send.Free() != p.a.Send.Depth() || p.a.Recv.Posted() != 0 {
			p.Error("the queues are not empty")
		}
		toRTR(p.a)
		toRTS(p.a, 7)
		p.a.PostSend(p.send(4, ib.Send, 3))
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000007, 3 bytes")
	}},
	{"SQD sends nothing more and is drained at once", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.PostSend(p.send(2, ib.Send, 3))
		p.a.Next()
		p.a.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrEnSQDAsyncNotify, State: ib.SQD, SQDAsyncNotify: true})
		p.a.Want("send 1: SEND SUCCESS", "event SQ_DRAINED")
		enginetest.WantPackets(p, p.a.Drain())
		p.a.Enter(ib.RTS)
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000065, 3 bytes")
	}},
	{"nothing is sent before RTS", func(p pair) {
		p.a.Enter(ib.Reset)
		toRTR(p.a)
		p.a.PostSend(p.send(1, ib.Send, 3))
		enginetest.WantPackets(p, p.a.Drain())
		toRTS(p.a, 1)
		enginetest.WantPackets(p, p.a.Drain(), "UD SEND Only, PSN 0x000001, 3 bytes")
	}},
	{"a query tells the PSN and the Q_Key", func(p pair) {
		p.a.PostSend(p.send(1, ib.Send, 3))
		p.a.Drain()
		var q ib.QPAttr
		p.a.Eng.Query(&q)
		if q.SQPSN != 101 || q.QKey != qkey || q.State != ib.RTS {
			p.Errorf("%+v", q)
		}
	}},

	{"a packet with another Q_Key is dropped", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		for _, k := range []ib.QKey{0, qkey + 1, 0x80000000, qkey | 0x80000000} {
			p.b.Deliver(datagram(nil, func(v *wire.Packet) { v.DETH.QKey = k }))
			p.b.Want("drop qkey")
		}
		p.untouched()
		p.b.Deliver(datagram(nil))
		p.b.Want("recv 1: RECV SUCCESS, 40 bytes, GRH")
	}},
	{"a packet longer than the receive is dropped and harms nothing", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 40+100))
		p.b.PostRecv(2, p.b.SGE(1000, 39))
		for range 3 {
			p.b.Deliver(datagram(make([]byte, 101)))
			p.b.Want("drop too_long")
		}
		p.untouched()
		p.state(p.b, ib.RTS)
		p.b.Deliver(datagram([]byte("still here"))) // into the same receive
		p.b.Want("recv 1: RECV SUCCESS, 50 bytes, GRH")
		p.b.Deliver(datagram(nil)) // not even the GRH fits
		p.b.Want("drop too_long")
	}},
	{"a packet longer than the MTU is dropped", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 5000))
		p.b.Deliver(datagram(make([]byte, mtu+1)), datagram(make([]byte, 4096)), datagram(make([]byte, mtu)))
		p.b.Want("drop length", "drop length", "recv 1: RECV SUCCESS, 296 bytes, GRH")
	}},
	{"without a receive a packet is dropped", func(p pair) {
		p.b.Deliver(datagram(nil))
		p.b.Want("drop no_recv")
		p.state(p.b, ib.RTS)
	}},
	{"a receive whose memory cannot be written fails and leads to Error", func(p pair) {
		other, _ := p.b.Mem.Register(enginetest.PD+1, p.b.Buf, enginetest.Base, ib.LocalWrite)
		for _, sgl := range [][]ib.SGE{
			{{Addr: enginetest.Base, Length: 100, LKey: p.b.RO.LKey}},
			{{Addr: enginetest.Base, Length: 100, LKey: 0xBAD}},
			{{Addr: enginetest.Base, Length: 100, LKey: other.LKey}},
			{p.b.SGE(0, 40), {Addr: enginetest.Base - 1, Length: 100, LKey: p.b.MR.LKey}},
		} {
			p.b.PostRecv(1, sgl...)
			p.b.PostRecv(2, p.b.SGE(0, 100))
			p.b.Deliver(datagram([]byte("abc")))
			p.b.Want("recv 1: RECV LOC_PROT_ERR", "recv 2: RECV WR_FLUSH_ERR")
			p.state(p.b, ib.Error)
			p.b.Enter(ib.Reset)
			toRTR(p.b)
			toRTS(p.b, 1)
		}
	}},
	{"packets of other services are dropped", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		wire.Opcodes(func(i *wire.OpInfo) {
			if i.Transport == ib.UD {
				return
			}
			p.b.Deliver(datagram(nil, func(v *wire.Packet) { v.SetOp(i.Op) }))
			p.b.Want("drop opcode")
		})
	}},
	{"a packet of another partition is dropped", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		for _, k := range []ib.PKey{0, 0x8000, 0x7FFE, 0x8001} {
			p.b.Deliver(datagram(nil, func(v *wire.Packet) { v.PKey = k }))
			p.b.Want("drop pkey")
		}
		p.b.Deliver(datagram(nil, func(v *wire.Packet) { v.PKey = 0x7FFF }))
		p.b.Want("recv 1: RECV SUCCESS, 40 bytes, GRH")
	}},
	{"packets are taken in RTR, RTS, SQD and SQE", func(p pair) {
		p.b.Enter(ib.Reset)
		p.b.Deliver(datagram(nil))
		toInit(p.b)
		p.b.Deliver(datagram(nil))
		p.b.Want("drop state", "drop state")
		for _, s := range []ib.QPState{ib.RTR, ib.RTS, ib.SQD, ib.SQE} {
			p.b.Enter(s)
			p.b.PostRecv(2, p.b.SGE(0, 100))
			p.b.Deliver(datagram(nil))
			p.b.Want("recv 2: RECV SUCCESS, 40 bytes, GRH")
		}
		p.b.Enter(ib.Error)
		p.b.Deliver(datagram(nil))
		p.b.Want("drop state")
	}},
	{"without a GRH its 40 bytes are left out", func(p pair) {
		p.b.PostRecv(1, p.b.SGE(0, 100))
		v := datagram([]byte("abc")).Decode()
		p.b.Eng.Receive(p.b.Now, &v, &transport.In{})
		p.b.Want("recv 1: RECV SUCCESS, 43 bytes")
		p.at(0, make([]byte, 40))
		p.at(40, []byte("abc"))
	}},
	{"phantom memory behaves like memory", func(p pair) {
		p.a, p.b = newPair(p, enginetest.Config{Phantom: true}, enginetest.Config{Phantom: true})
		p.b.PostRecv(1, p.b.SGE(0, 1000))
		p.b.PostRecv(2, p.b.SGE(0, 41))
		p.a.PostSend(p.send(1, ib.Send, 200))
		p.a.PostSend(p.send(2, ib.Send, 2))
		ps := p.a.Drain()
		enginetest.WantPackets(p, ps, "UD SEND Only, PSN 0x000064, 200 bytes", "UD SEND Only, PSN 0x000065, 2 bytes")
		p.b.Deliver(ps...)
		p.b.Want("recv 1: RECV SUCCESS, 240 bytes, GRH", "drop too_long")
	}},
	{"MigReq is what the adapter says", func(p pair) {
		for _, on := range []bool{false, true} {
			p.a, _ = newPair(p, enginetest.Config{MigReq: on}, enginetest.Config{})
			p.a.PostSend(p.send(1, ib.Send, 3))
			if ps := p.a.Drain(); ps[0].Decode().MigReq != on {
				p.Errorf("MigReq is %v", !on)
			}
		}
	}},
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			p := pair{T: t}
			p.a, p.b = newPair(t, enginetest.Config{}, enginetest.Config{})
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
