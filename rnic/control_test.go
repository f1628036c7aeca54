package rnic

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// bytesPer returns the heap that one call of f keeps, measured over n; what it
// returns is kept alive.
func bytesPer(n int, f func() any) int {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	kept := make([]any, n)
	before := heap()
	for i := range kept {
		kept[i] = f()
	}
	after := heap()
	runtime.KeepAlive(kept)
	return int(int64(after)-int64(before)) / n
}

func TestConfigIsChecked(t *testing.T) {
	ok := Config{Name: "x", GIDs: gidRows(addrA), Wire: wireCaps(), Rand: seeded(1)}
	for name, c := range map[string]struct {
		edit func(*Config)
		want error
	}{
		"no randomness":     {func(c *Config) { c.Rand = nil }, ErrInvalid},
		"tiny frames":       {func(c *Config) { c.Wire.MTU = 256 }, ErrInvalid},
		"phantom Ethernet":  {func(c *Config) { c.Wire.Encap, c.Wire.Phantom = frame.Ethernet, true }, ErrUnsupported},
		"no such VLAN":      {func(c *Config) { c.Wire.Encap, c.Wire.VLAN = frame.Ethernet, 4095 }, ErrInvalid},
		"unknown frames":    {func(c *Config) { c.Wire.Encap = 9 }, ErrInvalid},
		"negative limit":    {func(c *Config) { c.Limits.MaxQP = -1 }, ErrInvalid},
		"limit beyond QPNs": {func(c *Config) { c.Limits.MaxQP = 1 << 24 }, ErrInvalid},
		"too many atomics":  {func(c *Config) { c.Limits.MaxRdAtomic = 256 }, ErrInvalid},
	} {
		cfg := ok
		c.edit(&cfg)
		if _, err := New(cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for mtu, want := range map[int]ib.MTU{1500 - 28: ib.MTU1024, 1500 - 48: ib.MTU1024, 4200 - 48: ib.MTU4096, 9000 - 28: ib.MTU4096, 65535: ib.MTU4096, 600: ib.MTU512} {
		cfg := ok
		cfg.Wire.MTU = mtu
		a, err := New(cfg)
		if err != nil || a.MTU() != want {
			t.Errorf("frames of %d: %v", mtu, err)
		}
	}
}

func TestLimitsAreReachedAndNotPassed(t *testing.T) {
	h := newHost(t, addrA, addrA6, func(c *Config) {
		c.Limits = Limits{
			MaxQP: 3, MaxCQ: 3, MaxMR: 3, MaxPD: 3, MaxAH: 3, MaxQPWR: 20, MaxCQE: 5000, MaxSGE: 5,
			MaxInline: 100, MaxRdAtomic: 4, MaxMRSize: 1000,
		}
	})
	reach := func(what string, n int, make func() error) {
		t.Helper()
		for i := range n {
			if err := make(); err != nil {
				t.Fatalf("%s %d of %d: %v", what, i, n, err)
			}
		}
		if err := make(); !errors.Is(err, ErrLimit) {
			t.Errorf("%s beyond the limit: %v", what, err)
		}
	}
	reach("PD", 2, func() error { _, err := h.AllocPD(); return err })
	reach("CQ", 2, func() error { _, err := h.CreateCQ(1); return err })
	reach("MR", 3, func() error { _, err := h.RegisterMR(h.pd, make([]byte, 1000), 0, 0); return err })
	reach("AH", 3, func() error { _, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)}); return err })
	var q *QP
	reach("QP", 3, func() error {
		var err error
		q, err = h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq})
		return err
	})
	if q != nil {
		t.Error("a refused QP was returned")
	}

	sizes := func(edit func(*ib.QPCap)) error {
		h := newHost(t, addrA, addrA6, func(c *Config) { c.Limits = h.limits })
		cap := ib.QPCap{MaxSendWR: 20, MaxRecvWR: 20, MaxSendSGE: 5, MaxRecvSGE: 5, MaxInlineData: 100}
		if edit != nil {
			edit(&cap)
		}
		q, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq, Cap: cap})
		if err == nil && q.Cap() != cap {
			t.Errorf("cap %+v, want %+v", q.Cap(), cap)
		}
		return err
	}
	if err := sizes(nil); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*ib.QPCap){
		"max_send_wr":     func(c *ib.QPCap) { c.MaxSendWR++ },
		"max_recv_wr":     func(c *ib.QPCap) { c.MaxRecvWR++ },
		"max_send_sge":    func(c *ib.QPCap) { c.MaxSendSGE++ },
		"max_recv_sge":    func(c *ib.QPCap) { c.MaxRecvSGE++ },
		"max_inline_data": func(c *ib.QPCap) { c.MaxInlineData++ },
	} {
		if err := sizes(edit); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := sizes(func(c *ib.QPCap) { c.MaxSendSGE = -1 }); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	for _, depth := range []int{-1, 0, 5001} {
		if _, err := newHost(t, addrA, addrA6, func(c *Config) { c.Limits = h.limits }).CreateCQ(depth); !errors.Is(err, ErrInvalid) {
			t.Errorf("CQ of %d: %v", depth, err)
		}
	}
	if _, err := newHost(t, addrA, addrA6, func(c *Config) { c.Limits = h.limits }).RegisterMR(1, make([]byte, 1001), 0, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("MR of 1001 bytes: %v", err)
	}
}

func TestBusyObjectsAreNotDestroyed(t *testing.T) {
	h := newHost(t, addrA, addrA6, nil)
	q := h.qp(ib.RC, nil)
	mr, _ := h.mr(10)
	ah, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	busy := func(what string, err error, mentions string) {
		t.Helper()
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	busy("CQ", h.DestroyCQ(h.cq), q.qpn.String())
	busy("PD", h.DeallocPD(h.pd), "1 QPs, 1 MRs and 1 AHs")
	if err := h.DestroyQP(0, q); err != nil {
		t.Fatal(err)
	}
	busy("PD", h.DeallocPD(h.pd), "0 QPs, 1 MRs and 1 AHs")
	if err := h.DeregisterMR(mr); err != nil {
		t.Fatal(err)
	}
	busy("PD", h.DeallocPD(h.pd), "0 QPs, 0 MRs and 1 AHs")
	if err := h.DestroyAH(ah); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"CQ": h.DestroyCQ(h.cq), "PD": h.DeallocPD(h.pd)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	again := map[string]error{
		"QP": h.DestroyQP(0, q), "CQ": h.DestroyCQ(h.cq), "PD": h.DeallocPD(h.pd), "MR": h.DeregisterMR(mr), "AH": h.DestroyAH(ah),
		"nil QP": h.DestroyQP(0, nil), "nil CQ": h.DestroyCQ(nil), "nil MR": h.DeregisterMR(nil), "no AH": h.DestroyAH(0),
		"modify": h.ModifyQP(0, q, &ib.QPAttr{}),
	}
	for what, err := range again {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s a second time: %v", what, err)
		}
	}
	other := newHost(t, addrB, addrB6, nil)
	if _, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: other.cq, RecvCQ: other.cq}); !errors.Is(err, ErrInvalid) {
		t.Errorf("foreign CQ: %v", err)
	}
}

// snapshot is all that a control call could change.
func snapshot(h *host, q *QP) string {
	return fmt.Sprintf("%+v %v %+v %d %d %d %d %d %d %+v %v %v", h.QueryQP(q), q.State(), *h.pds[h.pd], len(h.pds), len(h.cqs), h.qps.len(), h.ahs.n,
		len(h.mrs), len(h.dests), q.path, q.pacer, h.cq.users)
}

func TestRefusedControlCallsChangeNothing(t *testing.T) {
	h := newHost(t, addrA, addrA6, func(c *Config) {
		c.GIDs = append(c.GIDs, GIDEntry{GID: ib.GIDFromAddr(netip.MustParseAddr("10.0.0.7")), Type: ib.GIDTypeRoCEv1},
			GIDEntry{GID: ib.GIDFromAddr(netip.MustParseAddr("10.0.0.8")), Type: ib.GIDTypeRoCEv2, Unusable: "the interface is down"}, GIDEntry{})
	})
	q := h.qp(ib.RC, nil)
	h.modify(q, initAttr(ib.RC))
	calls := map[string]struct {
		do    func() error
		want  error
		texts []string
	}{
		"CreateQP type": {func() error {
			_, err := h.CreateQP(0, QPConfig{Type: 9, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq})
			return err
		}, ErrUnsupported, nil},
		"CreateQP PD": {func() error {
			_, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: 99, SendCQ: h.cq, RecvCQ: h.cq})
			return err
		}, ErrInvalid, []string{"PD 99"}},
		"CreateQP CQ":     {func() error { _, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: h.cq}); return err }, ErrInvalid, []string{"receive CQ"}},
		"RegisterMR PD":   {func() error { _, err := h.RegisterMR(99, nil, 0, 0); return err }, ErrInvalid, nil},
		"RegisterMR bits": {func() error { _, err := h.RegisterMR(h.pd, nil, 0, 1<<30); return err }, ErrInvalid, nil},
		"RegisterMR wrap": {func() error { _, err := h.RegisterMR(h.pd, make([]byte, 16), 1<<64-8, 0); return err }, ErrInvalid, nil},
		"CreateAH PD":     {func() error { _, err := h.CreateAH(99, &ib.AV{DGID: ib.GIDFromAddr(addrB)}); return err }, ErrInvalid, nil},
		"CreateAH zero":   {func() error { _, err := h.CreateAH(h.pd, &ib.AV{}); return err }, ErrPath, []string{"dgid"}},
		"CreateAH family": {func() error { _, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB6)}); return err }, ErrPath, []string{"fd00::2", "10.0.0.1"}},
		"Modify nothing":  {func() error { return h.ModifyQP(0, q, &ib.QPAttr{Mask: ib.AttrState, State: ib.RTS}) }, ErrState, nil},
	}
	for name, row := range map[string]struct {
		edit  func(*ib.QPAttr)
		want  error
		texts []string
	}{
		"no such row":    {func(a *ib.QPAttr) { a.AV.SGIDIndex = 5 }, ErrPath, []string{"sgid_index 5", "0 to 4"}},
		"negative row":   {func(a *ib.QPAttr) { a.AV.SGIDIndex = -1 }, ErrPath, []string{"sgid_index -1"}},
		"RoCEv1 row":     {func(a *ib.QPAttr) { a.AV.SGIDIndex = 2 }, ErrPath, []string{"10.0.0.7", "RoCE v1", "0 (10.0.0.1)"}},
		"unusable row":   {func(a *ib.QPAttr) { a.AV.SGIDIndex = 3 }, ErrPath, []string{"10.0.0.8", "the interface is down"}},
		"empty row":      {func(a *ib.QPAttr) { a.AV.SGIDIndex = 4 }, ErrPath, []string{"empty"}},
		"wrong family":   {func(a *ib.QPAttr) { a.AV.SGIDIndex = 1 }, ErrPath, []string{"10.0.0.2", "fd00::1"}},
		"MTU":            {func(a *ib.QPAttr) { a.PathMTU = 6 }, ErrInvalid, []string{"path_mtu"}},
		"READs":          {func(a *ib.QPAttr) { a.MaxDestRdAtomic = 129 }, ErrInvalid, []string{"max_dest_rd_atomic 129", "128"}},
		"missing":        {func(a *ib.QPAttr) { a.Mask &^= ib.AttrDestQPN }, ErrInvalid, []string{"dest_qp_num"}},
		"cannot be here": {func(a *ib.QPAttr) { a.Mask |= ib.AttrTimeout }, ErrInvalid, []string{"timeout"}},
	} {
		calls["RTR "+name] = struct {
			do    func() error
			want  error
			texts []string
		}{func() error {
			a := rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
			row.edit(&a)
			return h.ModifyQP(0, q, &a)
		}, row.want, row.texts}
	}
	before := snapshot(h, q)
	for name, c := range calls {
		err := c.do()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range c.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", name, err, text)
			}
		}
		if after := snapshot(h, q); after != before {
			t.Fatalf("%s has changed\n%s\nto\n%s", name, before, after)
		}
	}
}

func TestQueryReturnsWhatModifySet(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		h := newHost(t, addrA, addrA6, nil)
		q := h.qp(typ, nil)
		h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
		h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 12345})
		got := h.QueryQP(q)
		if got.State != ib.RTS || got.CurState != ib.RTS || got.Port != 1 || got.SQPSN != testPSN || got.RateLimitKbps != 12345 {
			t.Errorf("%v: %+v", typ, got)
		}
		if typ == ib.UD {
			if got.QKey != testQKey {
				t.Errorf("UD: %+v", got)
			}
			continue
		}
		if got.DestQPN != 77 || got.RQPSN != testPSN || got.AV.DGID != ib.GIDFromAddr(addrB) || got.PathMTU != ib.MTU1024 || got.Access != ib.RemoteAll {
			t.Errorf("%v: %+v", typ, got)
		}
		h.modify(q, ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
		if q.State() != ib.Reset || q.path.ok || len(h.dests) != 0 || q.pacer.rate != 0 {
			t.Errorf("%v after Reset: %+v", typ, q.path)
		}
		h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024) // once more from the start
	}
}

func TestQPNsAreNotReusedSoon(t *testing.T) {
	for _, start := range []uint32{0, 1, 0xFFFFFD, 0xFFFFFE, 0xFFFFFF, 0xDEADBEEF} {
		h := newHost(t, addrA, addrA6, func(c *Config) { c.Rand = func() uint32 { return start } })
		seen := map[ib.QPN]bool{}
		keep := h.qp(ib.UD, nil)
		for range 1000 {
			q := h.qp(ib.UD, nil)
			if q.qpn <= 1 || q.qpn >= 0xFFFFFF || seen[q.qpn] || q.qpn == keep.qpn {
				t.Fatalf("start %x: QPN %v", start, q.qpn)
			}
			seen[q.qpn] = true
			if err := h.DestroyQP(0, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b := newHost(t, addrA, addrA6, nil), newHost(t, addrB, addrB6, nil)
	if a.qp(ib.UD, nil).qpn == b.qp(ib.UD, nil).qpn {
		t.Error("two adapters begin at the same QPN")
	}
}

func TestQPTableAgainstMap(t *testing.T) {
	var tab qpTable
	model := map[ib.QPN]*QP{}
	r := seeded(7)
	for range 20000 {
		n := ib.QPN(r() % 500)
		switch q := model[n]; {
		case q == nil:
			q = &QP{qpn: n}
			model[n] = q
			tab.put(q)
		case r()%2 == 0:
			delete(model, n)
			tab.remove(q)
		}
		k := ib.QPN(r() % 500)
		if tab.get(k) != model[k] || tab.len() != len(model) {
			t.Fatalf("QPN %d: %v, want %v", k, tab.get(k), model[k])
		}
	}
}

func TestHandlesOfDestroyedAHsOpenNothing(t *testing.T) {
	h := newHost(t, addrA, addrA6, nil)
	seen := map[ib.AH]bool{}
	for range 3000 {
		ah, err := h.CreateAH(h.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
		if err != nil {
			t.Fatal(err)
		}
		if ah == 0 || seen[ah] {
			t.Fatalf("handle 0x%x again", ah)
		}
		seen[ah] = true
		if err := h.DestroyAH(ah); err != nil {
			t.Fatal(err)
		}
		if h.ahs.get(ah) != nil {
			t.Fatal("still there")
		}
	}
}

func TestEventsAreBoundedAndInOrder(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	calls := 0
	const taken = 1 << 20
	a.OnEvent(func(ev ib.Event) bool { calls++; return ev.Element == taken })
	a.events.push(ib.Event{Element: taken}) // is nobody else's
	for i := range maxEvents + 10 {
		a.events.push(ib.Event{Element: uint32(i)})
	}
	for i := range maxEvents {
		if ev, ok := a.Event(); !ok || ev.Element != uint32(i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	if _, ok := a.Event(); ok || calls != 1+maxEvents+10 || a.Stats().Get("events_lost") != 10 {
		t.Errorf("%d calls, %d lost", calls, a.Stats().Get("events_lost"))
	}
	for i := range 3 * maxEvents { // and round and round
		a.events.push(ib.Event{Element: uint32(i)})
		if i%2 == 1 {
			a.Event()
		}
	}
	if cap(a.events.q) > 4*maxEvents {
		t.Errorf("the queue has grown to %d", cap(a.events.q))
	}
}

// The memory of a queue pair: before it is used, and when every slot of its
// rings has been.
func TestMemoryOfAQueuePair(t *testing.T) {
	const n = 200
	h := newHost(t, addrA, addrA6, nil)
	mr, _ := h.mr(4096)
	qps := make([]*QP, 0, n)
	h.qp(ib.RC, nil) // tables grow with the first
	unused := bytesPer(n, func() any {
		q, _ := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq, Cap: ib.QPCap{MaxSendWR: 128, MaxRecvWR: 512}})
		qps = append(qps, q)
		return q
	})
	if unused > 4<<10 {
		t.Errorf("an unused queue pair takes %d bytes", unused)
	}
	i := 0
	sgl := []ib.SGE{{Addr: mr.Base, Length: 8, LKey: mr.LKey}}
	send, recv := make([]ib.SendWR, 128), make([]ib.RecvWR, 512)
	for k := range send {
		send[k] = ib.SendWR{Op: ib.Read, SGL: sgl}
		if k%2 == 0 {
			send[k] = ib.SendWR{Op: ib.Write, Flags: ib.Inline, InlineData: make([]byte, 64)}
		}
	}
	for k := range recv {
		recv[k] = ib.RecvWR{SGL: sgl}
	}
	run := newRun()
	used := bytesPer(n, func() any {
		q := qps[i]
		i++
		h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
		if k, err := q.Post(send, nil); k != 128 || err != nil {
			t.Fatal(err)
		}
		if k, err := q.PostRecv(recv); k != 512 || err != nil {
			t.Fatal(err)
		}
		for run.Reset(); h.Egress(0, run); run.Reset() {
		}
		// Sixteen READs of the peer are remembered.
		for k := range 16 {
			p := wire.Packet{Op: wire.RCReadRequest, PKey: ib.DefaultPKey, DestQPN: q.qpn, PSN: ib.PSN(testPSN + k), RETH: wire.RETH{VA: mr.Base, RKey: mr.RKey, Len: 8}}
			h.send(p, nil, 0, true)
		}
		return nil
	})
	t.Logf("unused %d bytes, used %d", unused, unused+used)
	if unused+used > 64<<10 {
		t.Errorf("a used queue pair takes %d bytes", unused+used)
	}
	runtime.KeepAlive(qps)
}

func TestIdleAdapterIsSmall(t *testing.T) {
	if n := bytesPer(50, func() any { return newAdapter(t, addrA, addrA6, nil) }); n > 16<<10 {
		t.Errorf("%d bytes", n)
	}
}

func TestLimitsZeroValueIsDefault(t *testing.T) {
	l, err := Limits{}.fill()
	if err != nil || !reflect.DeepEqual(l, DefaultLimits()) {
		t.Errorf("%+v, %v", l, err)
	}
}
