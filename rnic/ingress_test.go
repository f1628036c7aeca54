package rnic

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// forge makes a packet with a right ICRC for the given Identification.
func forge(p wire.Packet, data []byte, src, dst netip.Addr, sport, ident uint16, df bool) []byte {
	p.Pad = wire.PadFor(len(data))
	b := make([]byte, p.WireLen(len(data)))
	n := p.EncodeHeaders(b)
	copy(b[n:], data)
	flow := flowOf(src, dst, sport)
	icrc.Put(b[len(b)-wire.ICRCLen:], flow.Sum(ident, df, b))
	return b
}

const peerPort = 0xC0DE

// send forges a packet of the usual peer and lets it in.
func (h *host) send(p wire.Packet, data []byte, ident uint16, df bool) {
	h.Ingress(0, &frame.Rx{Data: forge(p, data, addrB, addrA, peerPort, ident, df), Src: addrB, Dst: addrA, SrcPort: peerPort, TTL: 64})
}

func onlyTo(q *QP) wire.Packet {
	return wire.Packet{Op: wire.RCSendOnly, PKey: ib.DefaultPKey, DestQPN: q.qpn, PSN: testPSN}
}

// dropsOf returns the drop counters that are not zero.
func dropsOf(a *Adapter) []string {
	var all []string
	for _, s := range a.Stats() {
		if strings.HasPrefix(s.Name, "drop_") && s.Value != 0 {
			all = append(all, fmt.Sprintf("%s=%d", s.Name, s.Value))
		}
	}
	return all
}

func TestEveryPacketThatIsNotReceivedHasOneReason(t *testing.T) {
	type env struct {
		h  *host
		q  *QP
		rx frame.Rx
		p  wire.Packet
	}
	tests := []struct {
		want string // "" is received
		edit func(*env)
		raw  func(*env, []byte) []byte
	}{
		{want: ""},
		{want: "drop_short=1", raw: func(*env, []byte) []byte { return nil }},
		{want: "drop_short=1", raw: func(_ *env, b []byte) []byte { return b[:15] }},
		{want: "drop_short=1", edit: func(e *env) { e.p.Op = wire.RCReadRequest }, raw: func(_ *env, b []byte) []byte { return b[:20] }},
		{want: "drop_version=1", edit: func(e *env) { e.p.TVer = 1 }},
		{want: "drop_bad_opcode=1", raw: func(_ *env, b []byte) []byte { b[0] = 0x1F; return b }},
		{want: "drop_bad_opcode=1", raw: func(_ *env, b []byte) []byte { b[0] = 0xC0; return b }},
		{want: "drop_bad_pad=1", raw: func(_ *env, b []byte) []byte { b[1] |= 0x30; return slices.Concat(b[:12], b[len(b)-4:]) }},
		{want: "drop_bad_length=1", raw: func(_ *env, b []byte) []byte { return b[:len(b)-1] }},
		{want: "drop_icrc=1", raw: func(_ *env, b []byte) []byte { b[len(b)-1] ^= 1; return b }},
		{want: "drop_icrc=1", raw: func(_ *env, b []byte) []byte { b[14] ^= 1; return b }},
		{want: "drop_icrc=1", edit: func(e *env) { e.rx.SrcPort++ }},
		{want: "drop_no_qp=1", edit: func(e *env) { e.p.DestQPN++ }},
		{want: "drop_management=1", edit: func(e *env) { e.p.DestQPN = 0 }},
		{want: "drop_management=1", edit: func(e *env) { e.p.DestQPN = 1 }},
		{want: "drop_multicast=1", edit: func(e *env) { e.p.DestQPN = ib.QPMulticast }},
		{want: "drop_pkey=1", edit: func(e *env) { e.p.PKey = 0x8001 }},
		{want: "drop_source=1", edit: func(e *env) { e.rx.Src = netip.MustParseAddr("10.0.0.3") }},
		{want: "drop_source=1", edit: func(e *env) { e.rx.Src = netip.Addr{} }},
		{want: "drop_address=1", edit: func(e *env) { e.rx.Dst = netip.MustParseAddr("10.0.0.9") }},
		{want: "drop_state=1", edit: func(e *env) { e.q = e.h.qp(ib.RC, nil); e.p.DestQPN = e.q.qpn }},
		{want: "", edit: func(e *env) { e.rx.Dst = netip.Addr{} }},
		{want: "", edit: func(e *env) { e.p.PKey = 0x7FFF }},
		{want: "", edit: func(e *env) { e.p.MigReq = true }},
		{want: "", edit: func(e *env) { e.p.FECN = true }},
	}
	for i, tt := range tests {
		h, q, _ := connectedFake(t, nil)
		e := &env{h: h, q: q, p: onlyTo(q), rx: frame.Rx{Src: addrB, Dst: addrA, SrcPort: peerPort}}
		if tt.edit != nil {
			tt.edit(e)
		}
		b := forge(e.p, []byte("12345678"), addrB, addrA, peerPort, 0, true)
		if tt.raw != nil {
			b = tt.raw(e, b)
		}
		e.rx.Data = b
		h.Ingress(0, &e.rx)
		got := strings.Join(dropsOf(h.Adapter), " ")
		if got != tt.want {
			t.Errorf("%d: drops %q, want %q", i, got, tt.want)
		}
		received := 0
		if tt.want == "" {
			received = 1
		}
		if n := len(fakeOf(e.q).got); n != received || h.Stats().Get("rcvd_pkts") != uint64(received) {
			t.Errorf("%d: engine got %d packets, rcvd_pkts %d, want %d", i, n, h.Stats().Get("rcvd_pkts"), received)
		}
	}
}

func TestStatNamesAreStableAndUnique(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	seen := map[string]bool{}
	for _, s := range a.Stats() {
		if s.Name == "" || seen[s.Name] || strings.ContainsAny(s.Name, " -") {
			t.Errorf("name %q", s.Name)
		}
		seen[s.Name] = true
	}
	for _, n := range []string{
		"sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err",
		"ack_deferred", "retry_exceeded_err", "retry_rnr_exceeded_err", "completer_retry_err", "send_err", "link_downed", "rdma_sends", "rdma_recvs",
	} {
		if !seen[n] {
			t.Errorf("no counter %q", n)
		}
	}
	for d := transport.DropNone + 1; d < transport.NumDrops; d++ {
		if !seen["drop_"+d.String()] {
			t.Errorf("no counter for drop %v", d)
		}
	}
}

func TestMergedBuffersAreCut(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	for _, n := range []int{1, 2, 15, 64} {
		for _, last := range []int{100, 40, 0} {
			f.got = nil
			var data []byte
			seg := 0
			for i := range n {
				k := 100
				if i == n-1 {
					k = last
				}
				b := forge(onlyTo(q), payload(k), addrB, addrA, peerPort, uint16(i), true)
				seg = max(seg, len(b))
				data = append(data, b...)
			}
			h.Ingress(0, &frame.Rx{Data: data, Seg: seg, Src: addrB, Dst: addrA, SrcPort: peerPort})
			if len(f.got) != n || len(f.got[n-1].Payload) != last {
				t.Fatalf("%d packets, last of %d: got %d", n, last, len(f.got))
			}
		}
	}
	if s := h.Stats(); s.Get("icrc_solved") != 0 || len(dropsOf(h.Adapter)) != 0 {
		t.Errorf("solved %d, drops %v", s.Get("icrc_solved"), dropsOf(h.Adapter))
	}
}

// A socket hides the Identification: whatever a sender's habit is, its packets
// are taken, and corrupt ones are not.
func TestIdentificationHabits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	habits := map[string]func(i int) (uint16, bool){
		"always 0":                  func(int) (uint16, bool) { return 0, true },
		"counts from anywhere":      func(i int) (uint16, bool) { return uint16(0xFF00 + i), true },
		"random":                    func(int) (uint16, bool) { return uint16(rng.Uint32()), true },
		"random, may be fragmented": func(int) (uint16, bool) { return uint16(rng.Uint32()), false },
		"0 without DF":              func(int) (uint16, bool) { return 0, false },
		"runs sent apart":           func(i int) (uint16, bool) { return uint16(i % 15), true },
	}
	for name, habit := range habits {
		t.Run(name, func(t *testing.T) {
			h, q, f := connectedFake(t, nil)
			const n = 2000
			for i := range n {
				ident, df := habit(i)
				h.send(onlyTo(q), payload(33), ident, df)
				// A single wrong bit anywhere is never taken for another
				// Identification.
				b := forge(onlyTo(q), payload(33), addrB, addrA, peerPort, ident, df)
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				if b[4] == 0 { // not the masked byte
					before := len(f.got)
					h.Ingress(0, &frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: peerPort})
					f.got = f.got[:before]
				}
			}
			if len(f.got) != n {
				t.Errorf("%d of %d packets taken; %v", len(f.got), n, dropsOf(h.Adapter))
			}
			solved := h.Stats().Get("icrc_solved")
			switch name {
			case "always 0", "runs sent apart":
				if solved > 2 {
					t.Errorf("%d solved", solved)
				}
			case "random":
				if solved < n/2 {
					t.Errorf("%d solved", solved)
				}
			}
		})
	}
}

func TestDroppedPacketsDoNotShiftTheGuess(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	for range 5 {
		var data []byte
		for i := range 10 {
			p := onlyTo(q)
			if i%3 == 0 {
				p.DestQPN++
			}
			data = append(data, forge(p, payload(20), addrB, addrA, peerPort, uint16(i), true)...)
		}
		h.Ingress(0, &frame.Rx{Data: data, Seg: len(data) / 10, Src: addrB, Dst: addrA, SrcPort: peerPort})
	}
	if s := h.Stats(); len(f.got) != 30 || s.Get("drop_no_qp") != 20 || s.Get("icrc_solved") != 0 {
		t.Errorf("%d taken, %d solved", len(f.got), s.Get("icrc_solved"))
	}
}

func TestRunWithLossInTheMiddleIsTaken(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	for range 20 { // becomes known as our own kind
		h.send(onlyTo(q), payload(8), 0, true)
	}
	f.got = nil
	for range 10 {
		for _, ident := range []uint16{0, 1, 5, 6, 9, 63} {
			h.send(onlyTo(q), payload(8), ident, true)
		}
	}
	if len(f.got) != 60 {
		t.Errorf("%d of 60 packets taken", len(f.got))
	}
	// Of a known sender, a solution that it would never send is refused, but
	// not for ever.
	f.got = nil
	for range 10 {
		h.send(onlyTo(q), payload(8), 40000, true)
	}
	if n := len(f.got); n == 0 || n == 10 {
		t.Errorf("%d of 10 packets of a changed sender taken", n)
	}
}

func TestCorruptPacketsOfOurOwnKindAreRefused(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	for range 20 {
		h.send(onlyTo(q), payload(8), 0, true)
	}
	f.got = nil
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 1 << 18
	b := forge(onlyTo(q), payload(8), addrB, addrA, peerPort, 0, true)
	rx := frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: peerPort}
	for i := range n {
		if i%4096 == 0 {
			h.send(onlyTo(q), nil, 0, true) // a good one now and then
			f.got = f.got[:len(f.got)-1]
		}
		binary.LittleEndian.PutUint32(b[len(b)-4:], rng.Uint32())
		h.Ingress(0, &rx)
	}
	if len(f.got) > 1 {
		t.Errorf("%d of %d random ICRCs taken", len(f.got), n)
	}
}

func TestSourceCacheForgetsButNeverConfuses(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	for i := range 5000 {
		port := uint16(0xC000 + i)
		b := forge(onlyTo(q), payload(12), addrB, addrA, port, 0, true)
		h.Ingress(0, &frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: port})
	}
	if len(f.got) != 5000 {
		t.Errorf("%d of 5000", len(f.got))
	}
	if n := len(h.sources.slots); n > 64 {
		t.Errorf("the cache has grown to %d", n)
	}
}

func TestCongestionMarksAreCounted(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	p := onlyTo(q)
	p.FECN = true
	h.send(p, nil, 0, true)
	b := forge(onlyTo(q), nil, addrB, addrA, peerPort, 0, true)
	h.Ingress(0, &frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: peerPort, TOS: 0x6B})
	cnp := wire.Packet{Op: wire.CNP, PKey: ib.DefaultPKey, DestQPN: q.qpn, BECN: true}
	h.send(cnp, nil, 0, true)
	s := h.Stats()
	if s.Get("rcvd_fecn") != 1 || s.Get("rcvd_ecn_marked") != 1 || s.Get("rcvd_cnp") != 1 || s.Get("rcvd_becn") != 1 || s.Get("rcvd_pkts") != 3 {
		t.Errorf("%v", s)
	}
	if len(f.got) != 2 || !f.in[1].CE || f.in[0].CE {
		t.Errorf("engine got %d packets", len(f.got))
	}
}

func TestGRHOfDatagrams(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, nil)
	q := h.qp(ib.UD, nil)
	h.modify(q, initAttr(ib.UD))
	h.modify(q, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	p := wire.Packet{Op: wire.UDSendOnly, PKey: ib.DefaultPKey, DestQPN: q.qpn, DETH: wire.DETH{QKey: testQKey, SrcQPN: 9}}
	b := forge(p, payload(10), addrB, addrA, peerPort, 0x1234, true)
	h.Ingress(0, &frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: peerPort, TOS: 0x28, TTL: 63})
	b = forge(p, payload(10), addrB6, addrA6, peerPort, 0, false)
	h.Ingress(0, &frame.Rx{Data: b, Src: addrB6, Dst: addrA6, SrcPort: peerPort, TOS: 0x28, TTL: 63})
	f := fakeOf(q)
	if len(f.grh) != 2 {
		t.Fatalf("%d packets; %v", len(f.grh), dropsOf(h.Adapter))
	}
	want4 := strings.Repeat("00", 20) + "45280040" + "12344000" + "3f11" + "154f" + "0a000002" + "0a000001"
	want6 := "62800000" + "002c" + "11" + "3f" + hex.EncodeToString(addrB6.AsSlice()) + hex.EncodeToString(addrA6.AsSlice())
	for i, want := range []string{want4, want6} {
		if got := hex.EncodeToString(f.grh[i][:]); got != want {
			t.Errorf("GRH %d\n got %s\nwant %s", i, got, want)
		}
		if f.in[i].SGIDIndex != uint16(i) {
			t.Errorf("GID row %d, want %d", f.in[i].SGIDIndex, i)
		}
	}
}

// In no state, with no opcode and no length does a packet do harm; with a wrong
// ICRC it does nothing at all.
func TestEveryOpcodeAndLengthIsHarmless(t *testing.T) {
	for _, right := range []bool{false, true} {
		v := newVictim(t)
		before := slices.Clone(v.mem)
		for op := range 256 {
			for n := range 65 {
				for _, q := range v.qps {
					b := bytes.Repeat([]byte{byte(op)}, n)
					if n >= wire.BTHLen {
						h, _ := wire.BTHOf(b)
						clear(h)
						h.SetOpcode(wire.Opcode(op))
						h.SetPKey(ib.DefaultPKey)
						h.SetDestQPN(q.qpn)
						h.SetPSN(testPSN)
						h.SetPad(uint8(n))
					}
					if n >= wire.BTHLen+wire.ICRCLen && right {
						flow := flowOf(addrB, addrA, peerPort)
						icrc.Put(b[n-4:], flow.Sum(0, true, b))
					}
					v.h.Ingress(0, &frame.Rx{Data: b, Src: addrB, Dst: addrA, SrcPort: peerPort})
					v.drain()
				}
			}
		}
		if !right && !bytes.Equal(before, v.mem) {
			t.Error("a wrong ICRC has changed memory")
		}
		var accounted uint64
		for _, s := range v.h.Stats() {
			if slices.Contains(dropReasonNames[:], s.Name) || s.Name == "rcvd_pkts" || s.Name == "drop_state" || s.Name == "drop_pkey" || s.Name == "drop_source" {
				accounted += s.Value
			}
		}
		if total := uint64(256 * 65 * len(v.qps)); accounted < total {
			t.Errorf("%d of %d packets accounted for", accounted, total)
		}
	}
}

// victim is an adapter with queue pairs of every type there is an engine for,
// in several states, with receives posted over registered memory.
type victim struct {
	h   *host
	qps []*QP
	mem []byte
	run *frame.Run
}

func newVictim(t testing.TB) *victim {
	v := &victim{h: newHost(t, addrA, addrA6, nil), run: newRun()}
	mr, buf := v.h.mr(1 << 16)
	v.mem = buf
	for i := range buf {
		buf[i] = byte(i)
	}
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		if newEngine(typ, transport.Config{}) == nil {
			continue
		}
		for _, state := range []ib.QPState{ib.Reset, ib.Init, ib.RTR, ib.RTS, ib.Error} {
			q := v.h.qp(typ, nil)
			v.qps = append(v.qps, q)
			if state == ib.Reset {
				continue
			}
			v.h.modify(q, initAttr(typ))
			for i := range 8 {
				if _, err := q.PostRecv([]ib.RecvWR{{ID: uint64(i), SGL: []ib.SGE{{Addr: mr.Base + uint64(i*4096), Length: 4096, LKey: mr.LKey}}}}); err != nil {
					t.Fatal(err)
				}
			}
			if state >= ib.RTR {
				v.h.modify(q, rtrAttr(typ, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024))
			}
			if state >= ib.RTS {
				v.h.modify(q, rtsAttr(typ))
			}
			if state == ib.Error {
				v.h.modify(q, ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
			}
		}
	}
	return v
}

func (v *victim) drain() {
	v.h.Advance(0)
	for v.run.Reset(); v.h.Egress(0, v.run); v.run.Reset() {
	}
	v.h.poll()
	for _, ok := v.h.Event(); ok; _, ok = v.h.Event() {
	}
}

// FuzzIngress lets any bytes in, cut anyhow, with and without a right ICRC.
func FuzzIngress(f *testing.F) {
	f.Add([]byte{}, uint16(0), uint8(0), true)
	for op := range 256 {
		f.Add(append([]byte{byte(op), 0x40, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, testPSN}, payload(64)...), uint16(0), uint8(op), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, seg uint16, pick uint8, right bool) {
		v := newVictim(t)
		before := slices.Clone(v.mem)
		data = slices.Clone(data)
		q := v.qps[int(pick)%len(v.qps)]
		step := int(seg)
		if step <= 0 || step > len(data) {
			step = len(data)
		}
		good := false
		for i, rest := 0, data; len(rest) > 0; i++ {
			b := rest[:min(step, len(rest))]
			rest = rest[len(b):]
			if len(b) < wire.BTHLen+wire.ICRCLen {
				continue
			}
			h, _ := wire.BTHOf(b)
			h.SetDestQPN(q.qpn)
			flow := flowOf(addrB, addrA, peerPort)
			if right {
				icrc.Put(b[len(b)-4:], flow.Sum(uint16(i), true, b))
			}
			_, _, ok := flow.Solve(b)
			good = good || ok
		}
		v.h.Ingress(0, &frame.Rx{Data: data, Seg: int(seg), Src: addrB, Dst: addrA, SrcPort: peerPort})
		v.drain()
		if !good && !bytes.Equal(before, v.mem) {
			t.Error("memory changed without a right ICRC")
		}
	})
}
