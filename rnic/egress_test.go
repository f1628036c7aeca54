package rnic

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// packets makes fake packets of one destination from opcode and payload length.
func packets(dest ib.QPN, rows ...any) []fakePacket {
	var out []fakePacket
	for i := 0; i < len(rows); i += 2 {
		out = append(out, fakePacket{op: rows[i].(wire.Opcode), data: payload(rows[i+1].(int)), dest: dest, psn: ib.PSN(i)})
	}
	return out
}

// runs lets an adapter send all it has and returns "segments×length" per run,
// with "+last" where the last is shorter.
func runs(a *Adapter, now clock.Time) []string {
	var all []string
	for r := newRun(); a.Egress(now, r); r = newRun() {
		s := fmt.Sprintf("%d×%d", r.Segs, r.Seg)
		if last := r.N - (r.Segs-1)*r.Seg; last != r.Seg {
			s += fmt.Sprintf("+%d", last)
		}
		all = append(all, s)
	}
	return all
}

func equalStrings(t *testing.T, what string, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func connectedFake(t testing.TB, edit func(*Config)) (*host, *QP, *fake) {
	h := fakeHost(t, addrA, addrA6, edit)
	q := h.qp(ib.RC, nil)
	h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU4096)
	return h, q, fakeOf(q)
}

func TestRunShapes(t *testing.T) {
	const mid = 4096 + 16 // BTH, payload, ICRC
	rep := func(n int, row ...any) (out []any) {
		for range n {
			out = append(out, row...)
		}
		return out
	}
	cat := func(lists ...[]any) (out []any) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	tests := []struct {
		name string
		rows []any
		edit func(*Config)
		want []string
	}{
		{
			"FIRST of a WRITE is longer and takes one MIDDLE, MIDDLEs batch, a shorter LAST ends the run",
			cat([]any{wire.RCWriteFirst, 4096}, rep(6, wire.RCWriteMiddle, 4096), []any{wire.RCWriteLast, 100}), nil,
			[]string{fmt.Sprintf("2×%d+%d", mid+16, mid), fmt.Sprintf("6×%d+%d", mid, 116)},
		},
		{
			"a FIRST is longer than a full LAST and begins a new run",
			cat(rep(2, cat([]any{wire.RCWriteFirst, 4096}, rep(2, wire.RCWriteMiddle, 4096), []any{wire.RCWriteLast, 4096})...)), nil,
			[]string{"2×4128+4112", "2×4112", "2×4128+4112", "2×4112"},
		},
		{
			"SENDs of one length batch across messages",
			rep(10, wire.RCSendOnly, 1024), nil,
			[]string{"10×1040"},
		},
		{
			"64 segments at most", rep(130, wire.RCSendOnly, 64), nil,
			[]string{"64×80", "64×80", "2×80"},
		},
		{
			"as many bytes as the link takes", rep(20, wire.RCSendOnly, 4096), func(c *Config) { c.Wire.RunBytes = 30000 },
			[]string{"7×4112", "7×4112", "6×4112"},
		},
		{
			"one segment where the link does not cut", rep(3, wire.RCSendOnly, 64), func(c *Config) { c.Wire.Segments = 0 },
			[]string{"1×80", "1×80", "1×80"},
		},
		{
			"a shorter packet ends a run, a longer one waits",
			[]any{wire.RCSendOnly, 100, wire.RCSendOnly, 200, wire.RCSendOnly, 50, wire.RCSendOnly, 50},
			nil,
			[]string{"1×116", "2×216+68", "1×68"},
		},
		{
			"lengths are compared with their pad",
			[]any{wire.RCSendOnly, 97, wire.RCSendOnly, 100, wire.RCSendOnly, 99},
			nil,
			[]string{"3×116"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, q, f := connectedFake(t, tt.edit)
			f.out = packets(77, tt.rows...)
			q.a.look(0, q)
			equalStrings(t, "runs", runs(h.Adapter, 0), tt.want)
			if h.Pending() {
				t.Error("still pending")
			}
		})
	}
}

func TestRunEnvelopeAndICRC(t *testing.T) {
	for _, c := range []struct {
		name string
		row  int
		dst  ib.GID
		flow func(sport uint16) icrc.Flow
	}{
		{"IPv4", 0, ib.GIDFromAddr(addrB), func(p uint16) icrc.Flow { return icrc.V4(addrA.As4(), addrB.As4(), p, 4791) }},
		{"IPv6", 1, ib.GIDFromAddr(addrB6), func(p uint16) icrc.Flow { return icrc.V6(addrA6.As16(), addrB6.As16(), p, 4791) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := fakeHost(t, addrA, addrA6, func(c *Config) { c.ECT = true })
			q := h.qp(ib.RC, nil)
			h.modify(q, initAttr(ib.RC))
			attr := rtrAttr(ib.RC, c.dst, c.row, 77, ib.MTU1024)
			attr.AV.TrafficClass, attr.AV.HopLimit = 0x68, 9
			h.modify(q, attr)
			h.modify(q, rtsAttr(ib.RC))
			f := fakeOf(q)
			f.out = packets(77, wire.RCSendOnly, 1021, wire.RCSendOnly, 1022, wire.RCSendOnly, 1023, wire.RCSendOnly, 1024, wire.RCSendOnlyImm, 3)
			want := f.out
			for i := range f.out {
				f.out[i].ect = true
			}
			h.look(0, q)
			r := newRun()
			if !h.Egress(0, r) || r.Segs != 5 {
				t.Fatalf("run of %d segments", r.Segs)
			}
			if r.TOS != 0x68|2 || r.TTL != 9 || r.SrcPort != h.portOf(q.qpn) || r.Src != h.cfg.GIDs[c.row].GID.Addr() || r.Dst != c.dst.Addr() {
				t.Errorf("envelope %+v", r)
			}
			flow := c.flow(r.SrcPort)
			for i := range r.Segs {
				seg := r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]
				if !flow.Verify(uint16(i), true, seg) {
					t.Errorf("segment %d: wrong ICRC", i)
				}
				var p wire.Packet
				if why := p.Decode(seg[:len(seg)-4]); why != wire.ReasonNone || !bytes.Equal(p.Payload, want[i].data) || p.PKey != ib.DefaultPKey {
					t.Errorf("segment %d: %v, %d bytes", i, why, len(p.Payload))
				}
			}
		})
	}
}

func TestSchedulerTakesTurns(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, func(c *Config) { c.Wire.Segments = 1 })
	var qps []*QP
	for range 3 {
		q := h.qp(ib.RC, nil)
		h.connect(q, ib.GIDFromAddr(addrB), 0, q.qpn+100, ib.MTU1024)
		fakeOf(q).out = packets(q.qpn+100, wire.RCSendOnly, 8, wire.RCSendOnly, 8)
		h.look(0, q)
		qps = append(qps, q)
	}
	for i := range 6 {
		r := newRun()
		if !h.Egress(0, r) {
			t.Fatal("nothing sent")
		}
		if b, _ := wire.BTHOf(r.Buf); b.DestQPN() != qps[i%3].qpn+100 {
			t.Errorf("turn %d went to %v", i, b.DestQPN())
		}
	}
}

func TestPausedPriorityIsNotAsked(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, nil)
	qp := func(sl uint8) *QP {
		q := h.qp(ib.RC, nil)
		h.modify(q, initAttr(ib.RC))
		attr := rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, ib.QPN(10+sl), ib.MTU1024)
		attr.AV.SL = sl
		h.modify(q, attr)
		h.modify(q, rtsAttr(ib.RC))
		fakeOf(q).out = packets(ib.QPN(10+sl), wire.RCSendOnly, int(sl)*4)
		h.look(0, q)
		return q
	}
	qp(3)
	qp(5)
	h.Pause(1 << 3)
	equalStrings(t, "while 3 is paused", runs(h.Adapter, 0), []string{"1×36"})
	if h.Pending() {
		t.Error("pending although paused")
	}
	h.Pause(0)
	if !h.Pending() {
		t.Error("not pending after the pause")
	}
	equalStrings(t, "afterwards", runs(h.Adapter, 0), []string{"1×28"})
}

func TestPacingIsExact(t *testing.T) {
	const packet, rate = 256, 400_000_000 // bytes on the wire; kbit/s
	h, q, f := connectedFake(t, nil)
	h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: rate})
	h.runSegs = 1
	one := packets(77, wire.RCSendOnly, packet-16)[0]
	sent := 0
	now, r := clock.Time(0), newRun()
	for now < clock.Time(time.Millisecond) {
		f.out = append(f.out[:0], one, one)
		h.look(now, q)
		for h.Egress(now, r) {
			r.Reset()
			sent++
		}
		next := h.Deadline()
		if next <= now {
			t.Fatalf("at %d: next deadline %d", now, next)
		}
		now = next
		h.Advance(now)
	}
	want := int(uint64(rate) * 1000 / 8 / 1000 / packet)
	if sent < want-1 || sent > want+1 {
		t.Errorf("%d packets in a millisecond, want %d", sent, want)
	}
}

func TestPacedRunsAreShort(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 1_000_000}) // 6,250 bytes in 50 µs
	f.out = packets(77, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024,
		wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024, wire.RCSendOnly, 1024)
	h.look(0, q)
	r := newRun()
	h.Egress(0, r)
	if r.N > 9000 || r.Segs < 2 {
		t.Errorf("a run of %d bytes", r.N)
	}
	if h.Egress(0, newRun()) {
		t.Error("sent again at once")
	}
	if h.Pending() || h.Deadline() == clock.Never {
		t.Errorf("pending %v, deadline %d", h.Pending(), h.Deadline())
	}
}

func TestLossWindowIsSharedAndWakesOthers(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, func(c *Config) { c.Wire.RxBytes = 200 << 10 })
	var qps []*QP
	for i := range 3 {
		q := h.qp(ib.RC, nil)
		dst := addrB
		if i == 2 {
			dst = addrA
		}
		h.connect(q, ib.GIDFromAddr(dst), 0, 77, ib.MTU1024)
		qps = append(qps, q)
	}
	w := fakeOf(qps[0]).window
	if w == nil || fakeOf(qps[1]).window != w || fakeOf(qps[2]).window == w {
		t.Fatal("windows are not one per destination")
	}
	f := fakeOf(qps[1])
	f.out, f.blocked = packets(77, wire.RCSendOnly, 8), true
	w.Sent(w.Limit())
	h.look(0, qps[1])
	if h.Egress(0, newRun()) || h.Pending() {
		t.Fatal("a blocked queue pair is still asked")
	}
	h.look(0, qps[0]) // something happens, but there is no room
	if h.Pending() {
		t.Fatal("woken without room")
	}
	// Two that wait for more room than there is do not wake each other.
	f0 := fakeOf(qps[0])
	f0.out, f0.blocked = packets(77, wire.RCSendOnly, 8), true
	h.look(0, qps[0])
	w.Forget(8)
	h.look(0, qps[1])
	if h.Egress(0, newRun()) || h.Pending() {
		t.Fatal("blocked queue pairs are still asked")
	}
	f0.out = nil
	w.Acked(5000)
	f.blocked = false
	h.look(0, qps[0])
	equalStrings(t, "after room appeared", runs(h.Adapter, 0), []string{"1×24"})

	for _, q := range qps {
		if err := h.DestroyQP(0, q); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.dests) != 0 {
		t.Errorf("%d destinations left over", len(h.dests))
	}
	n := fakeHost(t, addrA, addrA6, func(c *Config) { c.Wire.RxBytes, c.NoLossWindow = 200<<10, true })
	q := n.qp(ib.RC, nil)
	n.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
	if fakeOf(q).window != nil {
		t.Error("a window although none was wanted")
	}
}

func TestDatagramsGoWhereTheirHandleSays(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, nil)
	q := h.qp(ib.UD, nil)
	h.modify(q, initAttr(ib.UD))
	h.modify(q, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	h.modify(q, rtsAttr(ib.UD))
	if m := fakeOf(q).modified[0]; m.Mask&ib.AttrPathMTU == 0 || m.PathMTU != ib.MTU4096 {
		t.Error("the engine was not told the port's MTU")
	}
	ah := func(av ib.AV) ib.AH {
		x, err := h.CreateAH(h.pd, &av)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	b := ah(ib.AV{DGID: ib.GIDFromAddr(addrB)})
	b6 := ah(ib.AV{DGID: ib.GIDFromAddr(addrB6), SGIDIndex: 1, SL: 4})
	class := ah(ib.AV{DGID: ib.GIDFromAddr(addrB), TrafficClass: 0x60})
	twin := ah(ib.AV{DGID: ib.GIDFromAddr(addrB)})
	gone := ah(ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err := h.DestroyAH(gone); err != nil {
		t.Fatal(err)
	}
	pd2, _ := h.AllocPD()
	foreign, err := h.CreateAH(pd2, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	f := fakeOf(q)
	p := func(ah ib.AH, dest ib.QPN) fakePacket {
		return fakePacket{op: wire.UDSendOnly, data: payload(40), ah: ah, dest: dest}
	}
	f.out = []fakePacket{p(b, 5), p(b, 5), p(b, 6), p(gone, 5), p(foreign, 5), p(0, 5), p(b6, 5), p(b6, 5), p(b, 5), p(twin, 5), p(class, 5)}
	h.look(0, q)
	var got []string
	for r := newRun(); h.Egress(0, r); r = newRun() {
		bth, _ := wire.BTHOf(r.Buf)
		got = append(got, fmt.Sprintf("%d to %v %d", r.Segs, r.Dst, bth.DestQPN()))
	}
	equalStrings(t, "runs", got, []string{"2 to 10.0.0.2 5", "1 to 10.0.0.2 6", "2 to fd00::2 5", "2 to 10.0.0.2 5", "1 to 10.0.0.2 5"})
	if n := h.Stats().Get("send_err"); n != 3 {
		t.Errorf("send_err %d, want 3", n)
	}
}

func TestPeerWithoutShardsTakesMixedRuns(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, func(c *Config) { c.MixQPNs = true })
	q := h.qp(ib.UD, nil)
	h.modify(q, initAttr(ib.UD))
	h.modify(q, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	h.modify(q, rtsAttr(ib.UD))
	b, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	for dest := range ib.QPN(4) {
		fakeOf(q).out = append(fakeOf(q).out, fakePacket{op: wire.UDSendOnly, data: payload(40), ah: b, dest: dest + 5})
	}
	h.look(0, q)
	equalStrings(t, "runs", runs(h.Adapter, 0), []string{"4×64"})
}

func TestEngineThatLiesAboutLengthSendsNothing(t *testing.T) {
	for _, lie := range []int{-4, 4, 100, 1 << 20} {
		h, q, f := connectedFake(t, nil)
		f.out = packets(77, wire.RCSendOnly, 64)
		q.eng = &liar{fake: f, by: lie}
		h.look(0, q)
		if got := runs(h.Adapter, 0); len(got) != 0 {
			t.Errorf("lie %d: sent %v", lie, got)
		}
		if h.Stats().Get("send_err") == 0 {
			t.Errorf("lie %d: not counted", lie)
		}
	}
}

type liar struct {
	*fake
	by int
}

func (l *liar) Next(now clock.Time) (transport.Head, bool) {
	h, ok := l.fake.Next(now)
	h.WireLen += l.by
	return h, ok
}

func TestPhantomPayloadReadsAsZeros(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	r := [2]*frame.Run{newRun(), newRun()}
	for i, e := range []transport.Engine{f, &phantom{f}} {
		f.out = packets(77, wire.RCWriteOnly, 1000)
		clear(f.out[0].data)
		q.eng = e
		h.look(0, q)
		h.Egress(0, r[i])
	}
	if r[0].N == 0 || !bytes.Equal(r[0].Buf[:r[0].N], r[1].Buf[:r[1].N]) {
		t.Error("phantom and zero payload differ")
	}
}

type phantom struct{ *fake }

func (p *phantom) Emit(now clock.Time, out *transport.Out) {
	p.fake.Emit(now, out)
	out.Frags = append(out.Frags[:0], mem.Frag{Phantom: 300}, mem.Frag{Phantom: out.Len - 300})
}

func TestRouteIsAskedAndItsPortUsed(t *testing.T) {
	noRoute := errors.New("network is unreachable")
	var mtu int
	var fail error
	h := fakeHost(t, addrA, addrA6, func(c *Config) {
		c.Path = func(src, dst netip.Addr, port uint16) (uint16, int, error) { return port ^ 1, mtu, fail }
	})
	q := h.qp(ib.RC, nil)
	h.modify(q, initAttr(ib.RC))
	attr := rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
	fail = noRoute
	if err := h.ModifyQP(0, q, &attr); !errors.Is(err, ErrPath) || q.State() != ib.Init {
		t.Fatalf("err %v, state %v", err, q.State())
	}
	if _, err := h.CreateAH(h.pd, &attr.AV); !errors.Is(err, ErrPath) || !errors.Is(err, noRoute) {
		t.Fatalf("err %v", err)
	}
	fail, mtu = nil, 576
	h.modify(q, attr)
	ev, ok := h.Event()
	if !ok || ev.Type != ib.EventPathMTU || ev.Element != uint32(q.qpn) {
		t.Errorf("event %+v", ev)
	}
	h.modify(q, rtsAttr(ib.RC))
	fakeOf(q).out = packets(77, wire.RCSendOnly, 8)
	h.look(0, q)
	r := newRun()
	h.Egress(0, r)
	flow := icrc.V4(addrA.As4(), addrB.As4(), r.SrcPort, 4791)
	if r.SrcPort != h.portOf(q.qpn)^1 || !flow.Verify(0, true, r.Buf[:r.N]) {
		t.Errorf("source port %d", r.SrcPort)
	}
}
