package rnic

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
	"pgregory.net/rapid"
)

// sent is what a network sees of one packet, whatever its payload is made of.
type sent struct {
	From    int
	Header  string
	WireLen int
	TOS     uint8
	SrcPort uint16
	Prio    uint8
	QPN     uint32
	At      clock.Time
}

// twin is a pair of hosts on a link with bytes or without, in every other
// respect the same.
type twin struct {
	t       testing.TB
	phantom bool
	hosts   [2]*host
	qps     [2]*QP
	regions [2]*mem.Region
	words   [2]*mem.Region // atomics work on bytes in both worlds
	ah      ib.AH
	run     frame.Run
	now     clock.Time
	log     []sent
	done    [2][]ib.WC
	lose    func(i int) bool
}

const twinSpace = 1 << 18

func newTwin(t testing.TB, phantom bool, typ ib.QPType, mtu ib.MTU, edit func(*Config)) *twin {
	w := &twin{t: t, phantom: phantom, run: frame.Run{Buf: make([]byte, 9000)}}
	set := func(c *Config) {
		c.Wire = WireCaps{MTU: 9000, Phantom: phantom}
		if edit != nil {
			edit(c)
		}
	}
	w.hosts = [2]*host{newHost(t, addrA, addrA6, set), newHost(t, addrB, addrB6, set)}
	for i, h := range w.hosts {
		var err error
		const access = ib.LocalWrite | ib.RemoteAll
		if phantom {
			w.regions[i], err = h.RegisterPhantomMR(h.pd, twinSpace, testBase, access)
		} else {
			w.regions[i], err = h.RegisterMR(h.pd, make([]byte, twinSpace), testBase, access)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.words[i], _ = h.mr(64)
		w.qps[i] = h.qp(typ, nil)
	}
	if typ == ib.UD {
		for i, h := range w.hosts {
			h.modify(w.qps[i], initAttr(typ))
			h.modify(w.qps[i], rtrAttr(typ, ib.GID{}, 0, 0, 0))
			h.modify(w.qps[i], rtsAttr(typ))
		}
		var err error
		if w.ah, err = w.hosts[0].CreateAH(w.hosts[0].pd, &ib.AV{DGID: ib.GIDFromAddr(addrB), TrafficClass: 0x68, SL: 2}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	w.hosts[0].connect(w.qps[0], ib.GIDFromAddr(addrB), 0, w.qps[1].qpn, mtu)
	w.hosts[1].connect(w.qps[1], ib.GIDFromAddr(addrA), 0, w.qps[0].qpn, mtu)
	return w
}

// step moves one packet, or time to the next deadline; false when neither end
// has anything left to do.
func (w *twin) step() bool {
	for _, h := range w.hosts {
		h.Advance(w.now)
		allSilentWithCause(w.t, h.Adapter, w.now)
	}
	for from, h := range w.hosts {
		w.run.Reset()
		if !h.Egress(w.now, &w.run) {
			continue
		}
		r := &w.run
		info := wire.Opcode(r.Buf[0]).Info()
		w.log = append(w.log, sent{
			From: from, Header: string(r.Buf[:info.Len]), WireLen: r.WireLen, TOS: r.TOS, SrcPort: r.SrcPort,
			Prio: r.Prio, QPN: r.QPN, At: w.now,
		})
		if !w.lose(len(w.log)) {
			rx := frame.Rx{Data: slices.Clone(r.Buf[:r.N]), Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL, Phantom: r.Phantom}
			w.hosts[1-from].Ingress(w.now, &rx)
		}
		for i, h := range w.hosts {
			w.done[i] = append(w.done[i], h.poll()...)
		}
		return true
	}
	next := min(w.hosts[0].Deadline(), w.hosts[1].Deadline())
	if next == clock.Never || len(w.log) > 20000 {
		return false
	}
	w.now = max(w.now, next)
	return true
}

// post gives end 0 the requests, and end 1 receives for them.
func (w *twin) post(ops []twinOp) {
	w.t.Helper()
	for i, o := range ops {
		wr := ib.SendWR{ID: uint64(i), Op: o.op, Flags: ib.Signaled, Imm: uint32(i)}
		sge := ib.SGE{Addr: testBase + uint64(o.at), Length: uint32(o.size), LKey: w.regions[0].LKey}
		wr.Remote = ib.Remote{Addr: testBase + uint64(o.at), RKey: w.regions[1].RKey}
		switch {
		case o.op.IsAtomic():
			sge = ib.SGE{Addr: testBase, Length: 8, LKey: w.words[0].LKey}
			wr.Remote = ib.Remote{Addr: testBase + 8, RKey: w.words[1].RKey}
			wr.SwapAdd = 3
		case o.inline:
			wr.Flags |= ib.Inline
			wr.InlineData = make([]byte, o.size)
		}
		if wr.InlineData == nil {
			wr.SGL = []ib.SGE{sge}
		}
		if w.ah != 0 {
			wr.UD = ib.Datagram{AH: w.ah, QPN: w.qps[1].qpn, QKey: testQKey}
		}
		if _, err := w.qps[0].Post([]ib.SendWR{wr}, nil); err != nil {
			w.t.Fatal(err)
		}
		room := ib.SGE{Addr: testBase, Length: twinSpace, LKey: w.regions[1].LKey}
		if _, err := w.qps[1].PostRecv([]ib.RecvWR{{ID: uint64(i), SGL: []ib.SGE{room}}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

type twinOp struct {
	op     ib.WROp
	size   int
	at     int
	inline bool
}

// The network sees the same packets, at the same instants, and the programs the
// same completions, whether the payload has bytes or not: in every service,
// with losses, with any payload size.
func TestPhantomLooksLikeBytes(t *testing.T) {
	ops := map[ib.QPType][]ib.WROp{
		ib.RC: {ib.Write, ib.WriteImm, ib.Send, ib.SendImm, ib.Read, ib.FetchAdd, ib.CompareSwap},
		ib.UC: {ib.Write, ib.WriteImm, ib.Send, ib.SendImm},
		ib.UD: {ib.Send, ib.SendImm},
	}
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom([]ib.QPType{ib.RC, ib.UC, ib.UD}).Draw(rt, "type")
		mtu := rapid.SampledFrom([]ib.MTU{ib.MTU256, ib.MTU1024, ib.MTU4096}).Draw(rt, "mtu")
		payload := rapid.SampledFrom([]int{0, 1000, 4096, 250, 333}).Draw(rt, "payload")
		every := rapid.SampledFrom([]int{0, 1, 7}).Draw(rt, "ack every")
		most := 20000
		if typ == ib.UD {
			most = 4096
		}
		list := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) twinOp {
			o := twinOp{op: rapid.SampledFrom(ops[typ]).Draw(rt, "op"), size: rapid.IntRange(0, most).Draw(rt, "size"), at: rapid.IntRange(0, 100000).Draw(rt, "at")}
			if (o.op.IsSend() || o.op.IsWrite()) && rapid.IntRange(0, 3).Draw(rt, "inline") == 0 {
				o.inline, o.size = true, o.size%64
			}
			return o
		}), 1, 8).Draw(rt, "requests")
		lost := rapid.SliceOfNDistinct(rapid.IntRange(1, 100), 0, 6, rapid.ID[int]).Draw(rt, "lost")

		var worlds [2]*twin
		for i := range worlds {
			w := newTwin(t, i == 1, typ, mtu, func(c *Config) { c.Payload, c.AckEvery = payload, every })
			w.lose = func(i int) bool { return slices.Contains(lost, i) }
			w.post(list)
			for w.step() {
			}
			worlds[i] = w
		}
		if d := cmp.Diff(worlds[0].log, worlds[1].log); d != "" {
			rt.Fatalf("packets with bytes (-) and without (+):\n%s", d)
		}
		if d := cmp.Diff(worlds[0].done, worlds[1].done); d != "" {
			rt.Fatalf("completions with bytes (-) and without (+):\n%s", d)
		}
		if len(worlds[0].log) == 0 {
			rt.Fatal("nothing was sent")
		}
	})
}

// A full packet has the configured payload, and asks for an ACK as often as
// configured: 10,000 bytes are ten packets of 1,000.
func TestPayloadAndAckEvery(t *testing.T) {
	w := newTwin(t, true, ib.RC, ib.MTU1024, func(c *Config) { c.Payload, c.AckEvery = 1000, 4 })
	w.lose = func(int) bool { return false }
	w.post([]twinOp{{op: ib.Write, size: 9500}})
	for w.step() {
	}
	var data, asks []int
	for _, s := range w.log {
		h, _ := wire.BTHOf([]byte(s.Header))
		if s.From == 0 {
			data = append(data, s.WireLen-len(s.Header)-wire.ICRCLen)
			if h.AckReq() {
				asks = append(asks, len(data))
			}
		}
	}
	if want := []int{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 500}; !slices.Equal(data, want) {
		t.Errorf("payloads %v, want %v", data, want)
	}
	if want := []int{4, 8, 10}; !slices.Equal(asks, want) {
		t.Errorf("packets %v ask for an ACK, want %v", asks, want)
	}
}

// What a simulator damages is dropped as an ICRC error, and recovered from.
func TestPhantomBadPacket(t *testing.T) {
	w := newTwin(t, true, ib.RC, ib.MTU1024, nil)
	w.lose = func(int) bool { return false }
	w.post([]twinOp{{op: ib.Write, size: 3001}})
	a, b := w.hosts[0], w.hosts[1]
	w.run.Reset()
	if !a.Egress(0, &w.run) {
		t.Fatal("nothing to send")
	}
	rx := *rxOf(&w.run)
	rx.Bad = true
	b.Ingress(0, &rx)
	if n := b.Stats().Get("drop_icrc"); n != 1 {
		t.Errorf("%d ICRC errors", n)
	}
	for w.step() {
	}
	if len(w.done[0]) != 1 || w.done[0][0].Status != ib.Success {
		t.Errorf("completions %v", w.done[0])
	}
}

// Frames that no adapter sends are dropped under a reason.
func TestPhantomNonsense(t *testing.T) {
	w := newTwin(t, true, ib.RC, ib.MTU1024, nil)
	w.post([]twinOp{{op: ib.Write, size: 1001}})
	w.run.Reset()
	if !w.hosts[0].Egress(0, &w.run) {
		t.Fatal("nothing to send")
	}
	good := rxOf(&w.run)
	b := w.hosts[1]
	for name, c := range map[string]struct {
		edit func(rx *frame.Rx)
		drop string
	}{
		"empty":            {func(rx *frame.Rx) { rx.Data = nil }, "drop_short"},
		"cut":              {func(rx *frame.Rx) { rx.Data = rx.Data[:20] }, "drop_short"},
		"negative":         {func(rx *frame.Rx) { rx.Phantom = -3 }, "drop_bad_length"},
		"bytes and ghosts": {func(rx *frame.Rx) { rx.Data = append(slices.Clone(rx.Data), make([]byte, 100)...) }, "drop_bad_length"},
		"pad":              {func(rx *frame.Rx) { rx.Phantom++ }, "drop_bad_pad"},
		"opcode":           {func(rx *frame.Rx) { rx.Data[0] = 0x7F }, "drop_bad_opcode"},
		"ghosts of an ACK": {func(rx *frame.Rx) {
			rx.Data[0] = byte(wire.RCAck)
			rx.Data = rx.Data[:16]
			rx.Data[1] = 0
			rx.Phantom = 4
		}, "drop_bad_length"},
		"source": {func(rx *frame.Rx) { rx.Src = addrA6 }, "drop_source"},
	} {
		rx := *good
		rx.Data = slices.Clone(good.Data)
		c.edit(&rx)
		before := b.Stats().Get(c.drop)
		b.Ingress(0, &rx)
		if b.Stats().Get(c.drop) != before+1 {
			t.Errorf("%s: not counted as %s", name, c.drop)
		}
	}
	b.Ingress(0, good)
	if b.Stats().Get("rcvd_pkts") != 1 {
		t.Error("the good one is not taken")
	}
}

func TestSimulatorConfigIsChecked(t *testing.T) {
	for _, edit := range []func(*Config){
		func(c *Config) { c.Payload = -1 },
		func(c *Config) { c.Payload = 4097 },
		func(c *Config) { c.AckEvery = -1 },
	} {
		cfg := Config{Name: "vrb", GIDs: gidRows(addrA), Wire: wireCaps(), Rand: seeded(1)}
		edit(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("Payload %d, AckEvery %d were taken", cfg.Payload, cfg.AckEvery)
		}
	}
}

// Whatever a phantom link carries: it is counted once, as received or under one
// reason, and does no harm.
func TestPhantomAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom([]ib.QPType{ib.RC, ib.UC, ib.UD}).Draw(rt, "type")
		w := newTwin(t, true, typ, ib.MTU1024, nil)
		h := w.hosts[1]
		for range 20 {
			b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(rt, "bytes")
			if len(b) >= 12 && rapid.IntRange(0, 9).Draw(rt, "ours") > 0 {
				b[0] = byte(rapid.SampledFrom([]int{0x00, 0x0A, 0x0C, 0x11, 0x12, 0x13, 0x20, 0x2A, 0x64, 0x81}).Draw(rt, "opcode"))
				b[1] &= 0xF0
				b[2], b[3] = 0xFF, 0xFF
				bth, _ := wire.BTHOf(b)
				bth.SetDestQPN(w.qps[1].qpn)
				bth.SetPSN(testPSN)
			}
			before := h.Stats()
			h.Ingress(0, &frame.Rx{
				Data: b, Phantom: rapid.SampledFrom([]int{0, 0, 0, 1, 1024, 4096, -1, 1 << 30}).Draw(rt, "phantom"),
				Src: rapid.SampledFrom([]netip.Addr{addrA, addrA6, {}}).Draw(rt, "src"),
				Dst: rapid.SampledFrom([]netip.Addr{addrB, addrB6, {}}).Draw(rt, "dst"),
				TOS: rapid.Uint8().Draw(rt, "tos"), Bad: rapid.IntRange(0, 4).Draw(rt, "bad") == 0,
			})
			h.Advance(0)
			after := h.Stats()
			n := after.Get("rcvd_pkts") - before.Get("rcvd_pkts")
			for _, name := range dropReasonNames {
				n += after.Get(name) - before.Get(name)
			}
			for _, d := range []transport.Drop{transport.DropState, transport.DropSource, transport.DropPKey} {
				name := engineDropNames[d]
				if d != transport.DropState || after.Get("rcvd_pkts") == before.Get("rcvd_pkts") {
					n += after.Get(name) - before.Get(name)
				}
			}
			if n != 1 {
				rt.Fatalf("counted %d times: % x", n, b)
			}
		}
	})
}
