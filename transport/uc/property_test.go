package uc

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
	"github.com/verbena-rdma/verbena/wire"
	"pgregory.net/rapid"
)

func TestSigAll(t *testing.T) {
	a, _ := connect(t, enginetest.Config{SigAll: true}, enginetest.Config{})
	a.PostSend(ib.SendWR{ID: 1, Op: ib.Send})
	a.Drain()
	a.Want("send 1: SEND SUCCESS")
}

// Every operation, size and flag: a node holds each packet that it emits
// against AckReq.
func TestAckReqNever(t *testing.T) {
	a, _ := connect(t, enginetest.Config{}, enginetest.Config{})
	n := 0
	for _, op := range []ib.WROp{ib.Send, ib.SendImm, ib.Write, ib.WriteImm} {
		for _, size := range []int{0, 1, mtu, mtu + 1, 5 * mtu} {
			for flags := ib.SendFlags(0); flags < ib.Inline; flags++ {
				a.PostSend(ib.SendWR{Op: op, Flags: flags, SGL: []ib.SGE{a.SGE(0, size)}})
				n += len(a.Drain())
			}
		}
	}
	if n != 4*8*(1+1+1+2+5) {
		t.Errorf("%d packets", n)
	}
}

// Under any loss, duplication and reordering: a receive that completes holds an
// intact message, whole and of the length that was sent; messages arrive at
// most once and in order; a WRITE that reports has written everything; no
// receive is lost; and after any of it, one more message gets through.
func TestIntactOrNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const slot, slots = 2048, 8
		a, b := connect(rt, enginetest.Config{}, enginetest.Config{})
		// What the program does with memory that it got back must not reach
		// the peer.
		a.OnSendDone = func(wc *ib.WC) {
			at := int(wc.ID%slots) * slot
			for i := range slot {
				a.Buf[at+i] = 0xEE
			}
		}
		type message struct {
			data  []byte
			write bool
		}
		sent := map[uint32]message{} // by immediate
		nextRecv, nextSend := uint64(0), uint32(0)
		refill := func() {
			for b.Recv.Posted() < slots {
				b.PostRecv(nextRecv, b.SGE(int(nextRecv%slots)*slot, 1500), b.SGE(int(nextRecv%slots)*slot+1500, slot-1500))
				nextRecv++
			}
		}
		post := func(size int, op ib.WROp) {
			at := int(nextSend%slots) * slot
			for i := range size {
				a.Buf[at+i] = byte(nextSend) + byte(i*3+i>>8)
			}
			binary.NativeEndian.PutUint32(a.Buf[at:], nextSend)
			sent[nextSend] = message{bytes.Clone(a.Buf[at : at+size]), op == ib.WriteImm}
			wr := ib.SendWR{ID: uint64(nextSend), Op: op, Flags: ib.Signaled, Imm: nextSend, SGL: []ib.SGE{a.SGE(at, size)}}
			if op == ib.WriteImm { // to memory of its own
				wr.Remote = b.Remote((slots + int(nextSend%slots)) * slot)
			}
			a.PostSend(wr)
			nextSend++
		}
		last := int64(-1)
		check := func() {
			for _, wc := range b.RecvWCs {
				m, ok := sent[wc.Imm]
				if wc.Status != ib.Success || !ok || int64(wc.Imm) <= last || int(wc.Bytes) != len(m.data) || m.write != (wc.Op == ib.WCRecvImm) {
					rt.Fatalf("completion %+v after message %d", wc, last)
				}
				last = int64(wc.Imm)
				at := int(wc.ID%slots) * slot
				if m.write {
					at = (slots + int(wc.Imm%slots)) * slot
				}
				if !bytes.Equal(b.Buf[at:at+len(m.data)], m.data) {
					rt.Fatalf("message %d is not intact", wc.Imm)
				}
			}
			b.RecvWCs = b.RecvWCs[:0]
		}

		refill()
		var flying []enginetest.Packet
		for range rapid.IntRange(1, 25).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 2).Draw(rt, "messages") {
				op := rapid.SampledFrom([]ib.WROp{ib.SendImm, ib.WriteImm}).Draw(rt, "op")
				post(rapid.IntRange(4, slot).Draw(rt, "size"), op)
			}
			for _, p := range a.Drain() {
				switch rapid.IntRange(0, 9).Draw(rt, "fate") {
				case 0: // lost
				case 1: // doubled
					flying = append(flying, p, p)
				case 2: // reordered
					i := rapid.IntRange(max(0, len(flying)-4), len(flying)).Draw(rt, "place")
					flying = append(flying[:i:i], append([]enginetest.Packet{p}, flying[i:]...)...)
				default:
					flying = append(flying, p)
				}
			}
			for range rapid.IntRange(0, len(flying)).Draw(rt, "arriving") {
				b.Deliver(flying[0])
				flying = flying[1:]
				check()
				refill()
			}
		}
		// One by one: a later message may go where an earlier one lies.
		for _, p := range flying {
			b.Deliver(p)
			check()
			refill()
		}
		post(slot, ib.SendImm)
		b.Deliver(a.Drain()...)
		check()
		if last != int64(nextSend)-1 {
			rt.Fatalf("after the network recovered, message %d was not received; the last is %d", nextSend-1, last)
		}
		if got := len(a.SendWCs); got != int(nextSend) || a.Send.Free() != a.Send.Depth() {
			rt.Fatalf("%d of %d sends completed", got, nextSend)
		}
		if b.Recv.Posted() != slots-1 || b.Eng.State() != ib.RTS || a.Eng.State() != ib.RTS {
			rt.Fatalf("%d receives posted, states %v and %v", b.Recv.Posted(), a.Eng.State(), b.Eng.State())
		}
	})
}

// Every opcode there is, each payload of 0 to 64 bytes, each state, in and out
// of a message: no panic, the state stays, and where nothing is received no
// byte of memory changes.
func TestEveryOpcodeAndLength(t *testing.T) {
	payload := bytes.Repeat([]byte{0xFF}, mtu)
	for _, state := range []ib.QPState{ib.Reset, ib.Init, ib.RTR, ib.RTS, ib.SQD, ib.SQE, ib.Error} {
		for _, within := range []wire.Opcode{0, wire.UCSendFirst, wire.UCWriteFirst} {
			p := pair{T: t}
			_, p.b = connect(t, enginetest.Config{Bytes: 4096}, enginetest.Config{Bytes: 4096})
			p.b.Eng.(*Engine).q.Cfg.Sink = new(discard)
			p.b.Enter(state)
			for op := range 256 {
				for n := 0; n <= 64; n++ {
					psn := p.query().RQPSN
					if within != 0 && n%4 == 0 {
						v := p.writePacket(within, psn, 512, payload).Decode()
						p.b.Eng.Receive(p.b.Now, &v, &transport.In{})
						psn = psn.Add(1)
					}
					v := wire.Packet{
						PSN: psn, PKey: ib.DefaultPKey, Payload: payload[:n],
						RETH: wire.RETH{VA: enginetest.Base, RKey: p.b.MR.RKey, Len: uint32(n)},
					}
					v.SetOp(wire.Opcode(op))
					if n%3 == 0 && p.b.Recv.Free() > 0 && state != ib.Reset {
						p.b.PostRecv(1, p.b.SGE(0, 48))
					}
					p.b.Eng.Receive(p.b.Now, &v, &transport.In{})
					p.b.Eng.Receive(p.b.Now, &v, nil)
				}
			}
			if s := p.b.Eng.State(); s != state {
				t.Errorf("%v became %v", state, s)
			}
			if state == ib.Reset || state == ib.Init || state == ib.Error {
				p.untouched()
			}
		}
	}
}

// Arbitrary packets, three bytes of program each: the engine neither panics nor
// leaves its states, every packet is delivered or has one reason, and no receive
// is reported longer than it is.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{0x24, 1, 10, 0x20, 1, 255, 0x22, 1, 3})
	f.Add([]byte{0x26, 1, 255, 0x27, 1, 255, 0x29, 1, 9, 0x2B, 0, 1})
	f.Fuzz(func(t *testing.T, prog []byte) {
		_, b := connect(t, enginetest.Config{Bytes: 4096}, enginetest.Config{Bytes: 4096, Depth: 4})
		p := pair{T: t, b: b}
		for id := uint64(0); len(prog) >= 3; prog = prog[3:] {
			if b.Recv.Posted() < 2 && prog[1]&0x10 == 0 {
				b.PostRecv(id, b.SGE(0, 40), b.SGE(100, 400))
				id++
			}
			v := wire.Packet{PSN: p.query().RQPSN.Add(int(int8(prog[1]&0x8F)) - 1), PKey: ib.DefaultPKey}
			v.RETH = wire.RETH{VA: enginetest.Base + 1000, RKey: b.MR.RKey, Len: uint32(prog[2]) << (prog[1] >> 5 & 3)}
			n := int(prog[2])
			if n == 255 {
				n = mtu
			}
			v.Payload = make([]byte, n)
			v.SetOp(wire.Opcode(prog[0]))
			b.Eng.Receive(b.Now, &v, &transport.In{})
			for _, wc := range b.RecvWCs {
				if wc.Status != ib.Success || wc.Op == ib.WCRecv && wc.Bytes > 440 {
					t.Fatalf("%+v", wc)
				}
			}
			if len(b.RecvWCs)+len(b.Log) > 2 {
				t.Fatalf("one packet: %q", b.Log)
			}
			b.RecvWCs, b.Log = b.RecvWCs[:0], b.Log[:0]
			if b.Eng.State() != ib.RTS {
				t.Fatalf("state %v", b.Eng.State())
			}
		}
	})
}

// discard is a sink for what allocates nothing itself.
type discard struct{ sends, recvs int }

func (d *discard) SendDone(*ib.WC)       { d.sends++ }
func (d *discard) RecvDone(*ib.WC, bool) { d.recvs++ }
func (d *discard) Event(ib.EventType)    {}
func (d *discard) Drop(transport.Drop)   {}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	a, b := connect(t, enginetest.Config{}, enginetest.Config{})
	da, db := new(discard), new(discard)
	a.Eng.(*Engine).q.Cfg.Sink = da
	b.Eng.(*Engine).q.Cfg.Sink = db
	wr := ib.SendWR{Op: ib.SendImm, Flags: ib.Signaled, SGL: []ib.SGE{a.SGE(0, 300), a.SGE(500, 400)}}
	ww := wr
	ww.Op, ww.Remote = ib.WriteImm, b.Remote(0)
	out := new(transport.Out)
	frags := make([]mem.Frag, 0, 4)
	payload := make([]byte, 0, 2*mtu)
	in := &transport.In{GRH: new([40]byte)}
	sge := b.SGE(0, 2000)
	round := func() {
		b.PostRecv(1, sge)
		b.PostRecv(2, sge)
		a.PostSend(wr)
		a.PostSend(ww)
		for {
			if _, ok := a.Eng.Next(0); !ok {
				break
			}
			*out = transport.Out{Frags: frags}
			a.Eng.Emit(0, out)
			payload = payload[:0]
			for _, f := range out.Frags {
				payload = append(payload, f.Data...)
			}
			out.Payload = payload
			b.Eng.Receive(0, &out.Packet, in)
		}
	}
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if da.sends != 302 || db.recvs != 302 {
		t.Errorf("%d sends, %d receives", da.sends, db.recvs)
	}
}
