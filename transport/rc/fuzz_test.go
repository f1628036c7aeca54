package rc_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// FuzzReceive gives arbitrary packets to both ends of a connection with work
// under way. Input is a sequence of: a control byte, a length byte, that many
// bytes of packet. The control byte says who gets it (1), and which fields are
// made plausible: the PSN (2: as expected, plus the two bits 0xC0), the keys
// (4), the partition key and version (8), the address and length (16); 32 lets
// time pass. Nothing panics, no byte outside the regions changes, nothing
// completes twice, and the window never goes wrong.
func FuzzReceive(f *testing.F) {
	for op := range 0x20 {
		for _, control := range []byte{0x1E, 0x1F, 0x5E, 0x5F, 0x06, 0x07, 0x3F} {
			b := []byte{control, 40 + 12}
			b = append(b, byte(op), 0, 0xFF, 0xFF, 0, 0, 0, 0x22, 0x80, 0, 0, 0)
			b = append(b, bytes.Repeat([]byte{byte(op), 0x1F}, 20)...)
			f.Add(append(b, b...))
		}
	}
	f.Fuzz(fuzzReceive)
}

// TestArbitraryPackets is a little fuzzing on every run.
// rule: every opcode with every short length
func TestArbitraryPackets(t *testing.T) {
	rounds := 4 * *runs
	r := rand.New(rand.NewPCG(7, 7))
	for range rounds {
		var in []byte
		for range 1 + r.IntN(12) {
			n := 12 + r.IntN(50)
			in = append(in, byte(r.Uint32())|8, byte(n))
			start := len(in)
			for range n {
				in = append(in, byte(r.Uint32()&r.Uint32()>>8))
			}
			in[start] = byte(r.IntN(0x18))
			in[start+1] &= 0xF0
		}
		fuzzReceive(t, in)
		if t.Failed() {
			t.Fatalf("input %x", in)
		}
	}
}

func fuzzReceive(t *testing.T, in []byte) {
	o := lossless()
	o.mem, o.rnrRetry, o.retry = 2048, 6, 3
	o.defaults()
	a, b := newNode(t, "A", qpnA, baseA, o), newNode(t, "B", qpnB, baseB, o)
	// Each region lies in a larger piece of memory.
	whole := map[*node][]byte{}
	for _, n := range []*node{a, b} {
		n.mem.Deregister(n.mr)
		w := bytes.Repeat([]byte{0xA5}, 4096)
		var err error
		n.buf = w[1024:3072:3072]
		if n.mr, err = n.mem.Register(pd, n.buf, n.mr.Base, ib.AccessAll); err != nil {
			t.Fatal(err)
		}
		whole[n] = w
	}
	a.ready(qpnB, 0xFFFFFE, 0x10, o)
	b.ready(qpnA, 0x10, 0xFFFFFE, o)
	for _, d := range [2][2]*node{{a, b}, {b, a}} {
		n, p := d[0], d[1]
		for i, op := range allOps {
			size := 700
			if op.IsAtomic() {
				size = 8
			}
			n.wr(0, ib.SendWR{ID: uint64(i), Op: op, SGL: []ib.SGE{n.sge(8*i, size)}, Remote: p.remote(8)})
			n.recv(0, ib.RecvWR{ID: uint64(i), SGL: []ib.SGE{n.sge(0, 1000)}})
		}
		for range 12 {
			n.pull(0) // into nowhere
		}
	}
	now := clock.Time(0)
	for len(in) > 2 {
		control, n := in[0], min(int(in[1]), len(in)-2)
		body := bytes.Clone(in[2 : 2+n])
		in = in[2+n:]
		to, from := a, b
		if control&1 != 0 {
			to, from = b, a
		}
		if control&32 != 0 {
			now = now.Add(100_000_000)
			to.eng.Advance(now)
		}
		if len(body) >= wire.BTHLen {
			h := wire.BTH(body[:wire.BTHLen])
			if control&8 != 0 {
				h.SetPKey(ib.DefaultPKey)
				h.SetVersion(0)
			}
			if control&2 != 0 {
				var qt, qf ib.QPAttr
				to.eng.Query(&qt)
				from.eng.Query(&qf)
				psn := qt.RQPSN
				if i := h.Opcode().Info(); i != nil && i.Response {
					psn = qt.SQPSN.Add(-12)
				}
				h.SetPSN(psn.Add(int(control >> 6)))
			}
		}
		var q wire.Packet
		if q.Decode(body) != wire.ReasonNone {
			continue
		}
		if control&4 != 0 {
			q.RETH.RKey, q.Atomic.RKey = to.mr.RKey, to.mr.RKey
		}
		if control&16 != 0 {
			q.RETH.VA = to.mr.Base + q.RETH.VA%2100
			q.RETH.Len %= 1200
			q.Atomic.VA = to.mr.Base + q.Atomic.VA%2100
			if q.Info.Payload && q.RETH.Len > 0 {
				q.Payload = make([]byte, min(256, int(q.RETH.Len)))
			}
		}
		to.eng.Receive(now, &q, &transport.In{})
		for _, n := range []*node{a, b} {
			for range 8 {
				if _, ok := n.pull(now); !ok {
					break
				}
			}
			if n.win.InFlight() != n.eng.Flight() || n.eng.Flight() < 0 {
				t.Fatalf("%s: window %d, engine %d", n.name, n.win.InFlight(), n.eng.Flight())
			}
		}
	}
	for _, n := range []*node{a, b} {
		if w := whole[n]; !bytes.Equal(w[:1024], bytes.Repeat([]byte{0xA5}, 1024)) || !bytes.Equal(w[3072:], bytes.Repeat([]byte{0xA5}, 1024)) {
			t.Fatalf("%s: memory outside the region changed", n.name)
		}
		n.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
		for _, l := range [][]ib.WC{n.sent, n.recvd} {
			if len(l) != len(allOps) {
				t.Fatalf("%s: %d completions of %d requests", n.name, len(l), len(allOps))
			}
			for i := range l {
				if l[i].ID != uint64(i) {
					t.Fatalf("%s: completion %d is of request %d", n.name, i, l[i].ID)
				}
			}
		}
		if n.win.InFlight() != 0 {
			t.Fatalf("%s: %d bytes in flight at the end", n.name, n.win.InFlight())
		}
	}
}
