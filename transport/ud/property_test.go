package ud

import (
	"bytes"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/enginetest"
	"github.com/verbena-rdma/verbena/wire"
	"pgregory.net/rapid"
)

func TestSigAll(t *testing.T) {
	a, _ := newPair(t, enginetest.Config{SigAll: true}, enginetest.Config{})
	a.PostSend(ib.SendWR{ID: 1, Op: ib.Send})
	a.Drain()
	a.Want("send 1: SEND SUCCESS")
}

// Every operation, size and flag: a node holds each packet that it emits
// against AckReq.
func TestAckReqNever(t *testing.T) {
	a, _ := newPair(t, enginetest.Config{}, enginetest.Config{})
	for _, op := range []ib.WROp{ib.Send, ib.SendImm} {
		for size := range mtu + 1 {
			for flags := ib.SendFlags(0); flags < ib.Inline; flags++ {
				a.PostSend(ib.SendWR{Op: op, Flags: flags, SGL: []ib.SGE{a.SGE(0, size)}})
				if n := len(a.Drain()); n != 1 {
					t.Fatalf("%v of %d bytes: %d packets", op, size, n)
				}
			}
		}
	}
}

// Under any loss, duplication and reordering, with receives that are sometimes
// too short: a receive that completes holds one intact message behind its GRH;
// a message arrives as often as its packet did; no receive is lost; nothing
// beside the reported bytes changes; and after any of it, one more message gets
// through.
func TestIntactOrNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const slot, slots = 512, 8
		a, b := newPair(rt, enginetest.Config{}, enginetest.Config{})
		a.OnSendDone = func(wc *ib.WC) { // what comes then must not reach the peer
			at := int(wc.ID%slots) * slot
			for i := range slot {
				a.Buf[at+i] = 0xEE
			}
		}
		sent := map[uint32][]byte{}
		budget := map[uint32]int{} // copies of the packet that were delivered
		var room [slots]int
		nextRecv, nextSend := uint64(0), uint32(0)
		refill := func() {
			for b.Recv.Posted() < slots {
				i := int(nextRecv % slots)
				room[i] = rapid.SampledFrom([]int{30, 40, 100, 296, 400}).Draw(rt, "room")
				head := min(room[i], 17)
				clear(b.Buf[i*slot : (i+1)*slot])
				b.PostRecv(nextRecv, b.SGE(i*slot, head), b.SGE(i*slot+head, room[i]-head))
				nextRecv++
			}
		}
		post := func(size int) {
			at := int(nextSend%slots) * slot
			for i := range size {
				a.Buf[at+i] = byte(nextSend) + byte(i*3)
			}
			sent[nextSend] = bytes.Clone(a.Buf[at : at+size])
			a.PostSend(ib.SendWR{
				ID: uint64(nextSend), Op: ib.SendImm, Flags: ib.Signaled, Imm: nextSend, SGL: []ib.SGE{a.SGE(at, size)},
				UD: ib.Datagram{AH: 1, QPN: 0x22, QKey: qkey},
			})
			nextSend++
		}
		deliver := func(p enginetest.Packet) {
			imm := p.Decode().Imm
			budget[imm]++
			b.Deliver(p)
			for _, wc := range b.RecvWCs {
				data, at := sent[wc.Imm], int(wc.ID%slots)*slot
				if wc.Status != ib.Success || wc.Imm != imm || budget[imm] == 0 || int(wc.Bytes) != 40+len(data) || wc.SrcQPN != 0x11 {
					rt.Fatalf("completion %+v", wc)
				}
				budget[imm]--
				want := append(append(enginetest.GRH[:40:40], data...), make([]byte, slot-40-len(data))...)
				if !bytes.Equal(b.Buf[at:at+slot], want) {
					rt.Fatalf("message %d is not intact", imm)
				}
			}
			b.RecvWCs = b.RecvWCs[:0]
		}

		var flying []enginetest.Packet
		for range rapid.IntRange(1, 25).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 3).Draw(rt, "messages") {
				post(rapid.IntRange(0, mtu).Draw(rt, "size"))
			}
			for _, p := range a.Drain() {
				switch rapid.IntRange(0, 9).Draw(rt, "fate") {
				case 0: // lost
				case 1: // doubled
					flying = append(flying, p, p)
				case 2: // reordered
					i := rapid.IntRange(0, len(flying)).Draw(rt, "place")
					flying = append(flying[:i:i], append([]enginetest.Packet{p}, flying[i:]...)...)
				default:
					flying = append(flying, p)
				}
			}
			for range rapid.IntRange(0, len(flying)).Draw(rt, "arriving") {
				if rapid.IntRange(0, 3).Draw(rt, "refill") > 0 {
					refill()
				}
				deliver(flying[0])
				flying = flying[1:]
			}
			// A receive that is too short would stay at the head for ever, as it
			// should; the program takes it away by a reset.
			if w := b.Recv.Peek(); w != nil && room[w.ID%slots] < 40+mtu && rapid.Bool().Draw(rt, "reset") {
				b.Enter(ib.Reset)
				toRTR(b)
				toRTS(b, 1)
			}
		}
		b.Enter(ib.Reset)
		toRTR(b)
		b.PostRecv(nextRecv, b.SGE(int(nextRecv%slots)*slot, 40+mtu))
		clear(b.Buf)
		post(mtu)
		got := b.Counters.Events[transport.RDMARecvs]
		for _, p := range a.Drain() {
			deliver(p)
		}
		if b.Counters.Events[transport.RDMARecvs] != got+1 {
			rt.Fatalf("after the network recovered a message was not received")
		}
		if got := len(a.SendWCs); got != int(nextSend) || a.Send.Free() != a.Send.Depth() {
			rt.Fatalf("%d of %d sends completed", got, nextSend)
		}
	})
}

// Every opcode there is, each payload of 0 to 64 bytes, each state: no panic,
// the state stays, and where nothing is received no byte of memory changes.
func TestEveryOpcodeAndLength(t *testing.T) {
	payload := bytes.Repeat([]byte{0xFF}, 64)
	for _, state := range []ib.QPState{ib.Reset, ib.Init, ib.RTR, ib.RTS, ib.SQD, ib.SQE, ib.Error} {
		p := pair{T: t}
		_, p.b = newPair(t, enginetest.Config{}, enginetest.Config{Bytes: 4096})
		p.b.Eng.(*Engine).q.Cfg.Sink = new(discard)
		p.b.Enter(state)
		for op := range 256 {
			for n := 0; n <= 64; n++ {
				v := wire.Packet{PKey: ib.DefaultPKey, Payload: payload[:n], DETH: wire.DETH{QKey: p.b.Eng.(*Engine).attr.QKey}}
				v.SetOp(wire.Opcode(op))
				if n%3 == 0 && p.b.Recv.Free() > 0 && state != ib.Reset {
					p.b.PostRecv(1, p.b.SGE(0, 88))
				}
				p.b.Eng.Receive(p.b.Now, &v, &transport.In{GRH: &[40]byte{1}})
				p.b.Eng.Receive(p.b.Now, &v, nil)
			}
		}
		p.state(p.b, state)
		if state == ib.Reset || state == ib.Init || state == ib.Error {
			p.untouched()
		}
	}
}

// Arbitrary packets, four bytes of program each: every packet is delivered, with
// no more than the receive holds, or has one reason; the state stays.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{0x64, 0, 10, 50, 0x65, 0, 200, 40})
	f.Add([]byte{0x64, 1, 0, 0, 0x24, 0, 3, 255})
	f.Fuzz(func(t *testing.T, prog []byte) {
		_, b := newPair(t, enginetest.Config{Bytes: 64, Depth: 2}, enginetest.Config{Bytes: 1024, Depth: 2})
		for ; len(prog) >= 4; prog = prog[4:] {
			if b.Recv.Posted() == 0 {
				b.PostRecv(uint64(prog[3]), b.SGE(3, int(prog[3])))
			}
			v := wire.Packet{PKey: ib.DefaultPKey, DETH: wire.DETH{QKey: qkey + ib.QKey(prog[1]&1)}, Payload: make([]byte, int(prog[2])*2)}
			v.SetOp(wire.Opcode(prog[0]))
			b.Eng.Receive(b.Now, &v, &transport.In{GRH: &enginetest.GRH})
			if len(b.Log) != 1 || b.Eng.State() != ib.RTS {
				t.Fatalf("one packet: %q, state %v", b.Log, b.Eng.State())
			}
			for _, wc := range b.RecvWCs {
				if wc.Status != ib.Success || uint64(wc.Bytes) > wc.ID {
					t.Fatalf("%+v", wc)
				}
			}
			b.RecvWCs, b.Log = b.RecvWCs[:0], b.Log[:0]
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
	a, b := newPair(t, enginetest.Config{}, enginetest.Config{})
	da, db := new(discard), new(discard)
	a.Eng.(*Engine).q.Cfg.Sink = da
	b.Eng.(*Engine).q.Cfg.Sink = db
	wr := ib.SendWR{Op: ib.SendImm, Flags: ib.Signaled, SGL: []ib.SGE{a.SGE(0, 100), a.SGE(500, 100)}, UD: ib.Datagram{AH: 1, QPN: 0x22, QKey: qkey}}
	wi := ib.SendWR{Op: ib.Send, Flags: ib.Signaled | ib.Inline, InlineData: make([]byte, 60), UD: wr.UD}
	out := new(transport.Out)
	frags := make([]mem.Frag, 0, 4)
	payload := make([]byte, 0, 2*mtu)
	in := &transport.In{GRH: new([40]byte)}
	sge := b.SGE(0, 2000)
	round := func() {
		b.PostRecv(1, sge)
		b.PostRecv(2, sge)
		a.PostSend(wr)
		a.PostSend(wi)
		for {
			if _, ok := a.Eng.Next(0); !ok {
				break
			}
			*out = transport.Out{Frags: frags}
			a.Eng.Emit(0, out)
			payload = append(payload[:0], out.Inline...)
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
