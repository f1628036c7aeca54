package mem

import (
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/ib"
)

const bindAll = ib.LocalWrite | ib.RemoteAll | ib.MWBind

// What a bind is refused for: one thing wrong at a time, and nothing changes.
func TestBindFaults(t *testing.T) {
	tab := newTestTable()
	mr := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, bindAll)
	high := mustRegister(t, tab, 1, make([]byte, 16), math.MaxUint64-15, bindAll)
	noBind := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, ib.LocalWrite)
	noWrite := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, ib.MWBind)
	zero := mustRegister(t, tab, 1, make([]byte, 64), 0, bindAll|ib.ZeroBased)
	other := mustRegister(t, tab, 2, make([]byte, 64), 0x1000, bindAll)
	w1, w2 := tab.AllocWindow(1, Window1), tab.AllocWindow(1, Window2B)
	foreign := tab.AllocWindow(2, Window2B)
	bound := tab.AllocWindow(1, Window2A)
	if f := tab.Bind(1, 7, &ib.Bind{RKey: bound.RKey(), LKey: mr.LKey, Addr: 0x1000, Len: 1}); f != FaultNone {
		t.Fatal(f)
	}
	gone := tab.AllocWindow(1, Window1)
	tab.FreeWindow(gone)
	for _, c := range []struct {
		name string
		w    *Window
		pd   PD
		bind ib.Bind
		want Fault
	}{
		{"no such window", gone, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1}, FaultKey},
		{"window of another domain", foreign, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1}, FaultPD},
		{"queue pair of another domain", w2, 2, ib.Bind{LKey: other.LKey, Addr: 0x1000, Len: 1}, FaultPD},
		{"region of another domain", w2, 1, ib.Bind{LKey: other.LKey, Addr: 0x1000, Len: 1}, FaultPD},
		{"region of another domain, type 1", w1, 1, ib.Bind{LKey: other.LKey, Addr: 0x1000, Len: 1}, FaultPD},
		{"bound already", bound, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1}, FaultBound},
		{"no length", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000}, FaultRange},
		{"local right", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1, Access: ib.LocalWrite}, FaultAccess},
		{"right to bind", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1, Access: ib.MWBind}, FaultAccess},
		{"type 1 zero-based", w1, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1000, Len: 1, Access: ib.ZeroBased}, FaultAccess},
		{"no such region", w2, 1, ib.Bind{LKey: 12345, Addr: 0x1000, Len: 1}, FaultKey},
		{"the key of a window for a region", w2, 1, ib.Bind{LKey: ib.LKey(bound.RKey()), Addr: 0x1000, Len: 1}, FaultKey},
		{"region that is not to be bound to", w2, 1, ib.Bind{LKey: noBind.LKey, Addr: 0x1000, Len: 1}, FaultAccess},
		{"zero-based region", w2, 1, ib.Bind{LKey: zero.LKey, Addr: 0, Len: 1}, FaultAccess},
		{"write without local write", w2, 1, ib.Bind{LKey: noWrite.LKey, Addr: 0x1000, Len: 1, Access: ib.RemoteWrite}, FaultAccess},
		{"atomic without local write", w1, 1, ib.Bind{LKey: noWrite.LKey, Addr: 0x1000, Len: 1, Access: ib.RemoteAtomic}, FaultAccess},
		{"before the region", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0xFFF, Len: 2}, FaultRange},
		{"beyond the region", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1001, Len: 64}, FaultRange},
		{"wraps", w2, 1, ib.Bind{LKey: mr.LKey, Addr: 0x1010, Len: math.MaxUint64 - 7}, FaultRange},
		{"over 2^64", w2, 1, ib.Bind{LKey: high.LKey, Addr: math.MaxUint64, Len: 2}, FaultRange},
		{"up to 2^64", w1, 1, ib.Bind{LKey: high.LKey, Addr: math.MaxUint64, Len: 1, Access: ib.RemoteWrite}, FaultNone},
		{"read without local write", w1, 1, ib.Bind{LKey: noWrite.LKey, Addr: 0x1000, Len: 1, Access: ib.RemoteRead}, FaultNone},
	} {
		key, was := c.w.RKey(), c.w.Bound()
		c.bind.RKey = key ^ 0x55
		if f := tab.Bind(c.pd, 7, &c.bind); f != c.want {
			t.Errorf("%s: %v, want %v", c.name, f, c.want)
		} else if f != FaultNone && (c.w.RKey() != key || c.w.Bound() != was) {
			t.Errorf("%s: the refused bind has changed the window", c.name)
		}
	}
	for name, f := range map[string]Fault{
		"a region":            tab.Invalidate(1, 7, mr.RKey),
		"a window of type 1":  tab.Invalidate(1, 7, w1.RKey()),
		"an unbound window":   tab.Invalidate(1, 7, w2.RKey()),
		"another queue pair":  tab.Invalidate(1, 8, bound.RKey()),
		"another domain":      tab.Invalidate(2, 7, bound.RKey()),
		"another tag":         tab.Invalidate(1, 7, bound.RKey()^1),
		"nothing of that key": tab.Invalidate(1, 7, 0),
	} {
		if f == FaultNone || !bound.Bound() {
			t.Errorf("invalidated %s", name)
		}
	}
	if f := tab.Invalidate(1, 7, bound.RKey()); f != FaultNone || bound.Bound() {
		t.Errorf("invalidate: %v", f)
	}
}

// A window's key is none for local requests, whatever it opens to peers.
func TestWindowKeyIsNoLKey(t *testing.T) {
	tab := newTestTable()
	mr := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, bindAll)
	w := tab.AllocWindow(1, Window1)
	if f := tab.Bind(1, 0, &ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: 0x1000, Len: 64, Access: ib.RemoteAll}); f != FaultNone {
		t.Fatal(f)
	}
	one := []ib.SGE{{Addr: 0x1000, Length: 8, LKey: ib.LKey(w.RKey())}}
	two := append(one, ib.SGE{Addr: 0x1000, Length: 8, LKey: mr.LKey})
	for _, sgl := range [][]ib.SGE{one, two} {
		if f := tab.Check(1, sgl, 0); f != FaultKey {
			t.Errorf("Check: %v", f)
		}
		if f := tab.Scatter(1, sgl, 0, make([]byte, 8), 0); f != FaultKey {
			t.Errorf("Scatter: %v", f)
		}
		if _, f := tab.Gather(1, sgl, 0, 8, nil); f != FaultKey {
			t.Errorf("Gather: %v", f)
		}
	}
}

type modelWindow struct {
	w      *Window
	pd     PD
	kind   WindowKind
	key    ib.RKey
	bound  bool
	qpn    ib.QPN
	parent int
	base   uint64
	off    int // in the region
	n      int
	access ib.Access
}

// Windows against a list of what each opens: every access by every queue pair
// under every key, in turn with binds, invalidations and the end of regions,
// windows and queue pairs.
func TestWindowsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTestTable()
		const size, base = 64, 0x1000
		var bufs [3][]byte
		var mrs [3]*Region
		for i := range mrs {
			bufs[i] = make([]byte, size)
			var err error
			if mrs[i], err = tab.Register(PD(1+i/2), bufs[i], base, bindAll); err != nil {
				t.Fatal(err)
			}
		}
		var ws []*modelWindow
		for i := range 4 {
			kind := []WindowKind{Window1, Window2A, Window2B, Window1}[i]
			w := tab.AllocWindow(PD(1+i/3), kind)
			ws = append(ws, &modelWindow{w: w, pd: PD(1 + i/3), kind: kind, key: w.RKey()})
		}
		qps := func() (ib.QPN, PD) {
			q := rapid.IntRange(10, 12).Draw(t, "qp")
			return ib.QPN(q), PD(1 + q/12)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := ws[rapid.IntRange(0, len(ws)-1).Draw(t, "window")]
			qpn, pd := qps()
			switch rapid.SampledFrom([]string{"bind", "bind", "bind", "invalidate", "invalidate", "deregister", "reregister", "forget", "free"}).Draw(t, "do") {
			case "bind":
				k := rapid.IntRange(0, 2).Draw(t, "region")
				b := ib.Bind{
					RKey: m.key&^0xFF | ib.RKey(rapid.Byte().Draw(t, "tag")), LKey: mrs[k].LKey,
					Addr: base + rapid.Uint64Range(0, size).Draw(t, "at"), Len: rapid.Uint64Range(0, size).Draw(t, "len"),
					Access: ib.Access(rapid.SampledFrom([]ib.Access{0, ib.RemoteRead, ib.RemoteWrite, ib.RemoteAll, ib.RemoteAll | ib.ZeroBased}).Draw(t, "access")),
				}
				ok := m.pd == pd && (m.kind == Window1 || !m.bound && b.Len > 0) &&
					(m.kind != Window1 || b.Access&ib.ZeroBased == 0) &&
					(b.Len == 0 || mrs[k].PD == pd && b.Addr-base+b.Len <= size)
				if f := tab.Bind(pd, qpn, &b); (f == FaultNone) != ok {
					t.Fatalf("bind %+v of %+v: %v", b, m, f)
				}
				if !ok {
					continue
				}
				m.key, m.bound, m.qpn, m.parent, m.access = b.RKey, b.Len > 0, qpn, k, b.Access
				m.off, m.n, m.base = int(b.Addr-base), int(b.Len), b.Addr
				if b.Access&ib.ZeroBased != 0 {
					m.base = 0
				}
			case "invalidate":
				key := m.key ^ ib.RKey(rapid.SampledFrom([]byte{0, 0, 0, 1}).Draw(t, "tag"))
				ok := key == m.key && m.kind != Window1 && m.bound && m.qpn == qpn && m.pd == pd
				if f := tab.Invalidate(pd, qpn, key); (f == FaultNone) != ok {
					t.Fatalf("invalidate %+v: %v", m, f)
				}
				m.bound = m.bound && !ok
			case "deregister", "reregister":
				k := rapid.IntRange(0, 2).Draw(t, "region")
				n := 0
				for _, o := range ws {
					if o.bound && o.parent == k {
						o.bound = false
						n++
					}
				}
				if got := mrs[k].Windows(); got != n {
					t.Fatalf("%d windows, want %d", got, n)
				}
				var err error
				if rapid.Bool().Draw(t, "rereg") {
					mrs[k], err = tab.Reregister(mrs[k], mrs[k].PD, bufs[k], base, bindAll)
				} else {
					pd := mrs[k].PD
					tab.Deregister(mrs[k])
					mrs[k], err = tab.Register(pd, bufs[k], base, bindAll)
				}
				if err != nil {
					t.Fatal(err)
				}
			case "forget":
				tab.ForgetQP(qpn)
				for _, o := range ws {
					if o.kind != Window1 && o.qpn == qpn {
						o.bound = false
					}
				}
			case "free":
				tab.FreeWindow(m.w)
				m.w = tab.AllocWindow(m.pd, m.kind)
				m.key, m.bound = m.w.RKey(), false
			}
			n := 0
			for _, o := range ws {
				if o.w.RKey() != o.key || o.w.Bound() != o.bound {
					t.Fatalf("key 0x%x bound %v, want %+v", o.w.RKey(), o.w.Bound(), o)
				}
				if o.bound && o.kind != Window1 {
					n++
				}
				qpn, pd := qps()
				key := o.key ^ ib.RKey(rapid.SampledFrom([]byte{0, 0, 0, 1}).Draw(t, "tag"))
				va := o.base + rapid.Uint64Range(0, 2).Draw(t, "va") - 1
				k := rapid.IntRange(1, size).Draw(t, "n")
				need := rapid.SampledFrom([]ib.Access{ib.RemoteRead, ib.RemoteWrite}).Draw(t, "need")
				ok := key == o.key && o.bound && o.pd == pd && (o.kind == Window1 || o.qpn == qpn) && o.access&need != 0 &&
					va >= o.base && va-o.base+uint64(k) <= uint64(o.n) && va+uint64(k) >= va
				r, f := tab.Remote(pd, qpn, key, va, uint64(k), need)
				if (f == FaultNone) != ok {
					t.Fatalf("access of %v to %d at 0x%x through %+v: %v", qpn, k, va, o, f)
				}
				if !ok {
					continue
				}
				at := r.At(va, k).Data
				if want := bufs[o.parent][o.off+int(va-o.base):]; &at[0] != &want[0] || len(at) != k {
					t.Fatalf("%+v opens other bytes", o)
				}
			}
			if tab.type2 != n || tab.Len() != len(ws)+len(mrs) {
				t.Fatalf("%d bound of type 2, want %d; %d in the table", tab.type2, n, tab.Len())
			}
		}
	})
}

func TestReregister(t *testing.T) {
	tab := newTestTable()
	old := []byte("old memory")
	r := mustRegister(t, tab, 1, old, 0x1000, 0)
	for name, do := range map[string]func() error{
		"access": func() error { _, err := tab.Reregister(r, 1, nil, 0, ib.RemoteWrite); return err },
		"wrap":   func() error { _, err := tab.Reregister(r, 1, make([]byte, 16), math.MaxUint64-7, 0); return err },
		"nil":    func() error { _, err := tab.Reregister(nil, 1, nil, 0, 0); return err },
		"window": func() error { _, err := tab.Reregister(tab.AllocWindow(1, Window1).r, 1, nil, 0, 0); return err },
		"copy":   func() error { c := *r; _, err := tab.Reregister(&c, 1, nil, 0, 0); return err },
	} {
		if do() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, f := tab.Gather(1, []ib.SGE{{Addr: 0x1000, Length: 10, LKey: r.LKey}}, 0, 10, nil); f != FaultNone {
		t.Errorf("after refusals: %v", f)
	}
	n, err := tab.Reregister(r, 2, []byte("new"), 0x9000, ib.LocalWrite|ib.RemoteRead)
	if err != nil || n.RKey != r.RKey || n.LKey != r.LKey {
		t.Fatal(n, err)
	}
	if _, f := tab.Remote(1, 0, r.RKey, 0x1000, 1, 0); f != FaultPD {
		t.Errorf("the old domain: %v", f)
	}
	if _, f := tab.Remote(2, 0, r.RKey, 0x1000, 1, 0); f != FaultRange {
		t.Errorf("the old address: %v", f)
	}
	if got, f := tab.Remote(2, 0, n.RKey, 0x9000, 3, ib.RemoteRead); f != FaultNone || string(got.At(0x9000, 3).Data) != "new" {
		t.Errorf("the new memory: %v", f)
	}
	if _, err := tab.Reregister(r, 1, nil, 0, 0); err == nil {
		t.Error("what was replaced is replaced again")
	}
}

func TestWindowsDoNotAllocate(t *testing.T) {
	tab := newTestTable()
	mr := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, bindAll)
	w := tab.AllocWindow(1, Window2B)
	b := ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: 0x1000, Len: 64, Access: ib.RemoteAll}
	if n := testing.AllocsPerRun(1000, func() {
		b.RKey = b.RKey&^0xFF | (b.RKey+1)&0xFF
		if tab.Bind(1, 7, &b) != FaultNone || tab.Invalidate(1, 7, b.RKey) != FaultNone {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// One shard answers a READ through a window, another binds the window anew
// meanwhile: what comes before the bind has the bytes of before, whatever becomes
// of the memory then, and what comes behind it gets nothing.
func TestReadWhileAnotherShardBinds(t *testing.T) {
	for _, kind := range []WindowKind{Window1, Window2A, Window2B} {
		serving := newTestTable()
		binding := serving.Share(&sync.Mutex{})
		data := []byte("0123456789abcdef")
		mr := mustRegister(t, serving, 1, data, 0x1000, bindAll)
		w := serving.AllocWindow(1, kind)
		b := ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: 0x1004, Len: 8, Access: ib.RemoteRead}
		if f := binding.Bind(1, 7, &b); f != FaultNone {
			t.Fatal(f)
		}
		r, f := serving.Remote(1, 7, b.RKey, 0x1004, 8, ib.RemoteRead)
		if f != FaultNone {
			t.Fatal(f)
		}
		var buf []byte
		got, f := r.ReadAt(0x1004, 8, &buf)
		if f != FaultNone {
			t.Fatal(f)
		}
		if kind == Window1 {
			b.Addr, b.Len = 0x1000, 2
			f = binding.Bind(1, 7, &b)
		} else {
			f = binding.Invalidate(1, 7, b.RKey)
		}
		if f != FaultNone {
			t.Fatal(f)
		}
		copy(data, "secret secret...")
		if string(got.Data) != "456789ab" {
			t.Errorf("%v: the answer on its way has become %q", kind, got.Data)
		}
		if got, f := r.ReadAt(0x1004, 8, &buf); f != FaultKey || got.Len() != 0 {
			t.Errorf("%v: behind the bind %q, %v", kind, got.Data, f)
		}
	}
}

// Regions and the windows of a device with one shard are read where they are.
func TestReadAtDoesNotCopy(t *testing.T) {
	tab := newTestTable()
	data := []byte("0123456789abcdef")
	mr := mustRegister(t, tab, 1, data, 0x1000, bindAll)
	w := tab.AllocWindow(1, Window1)
	if f := tab.Bind(1, 7, &ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: 0x1000, Len: 16, Access: ib.RemoteRead}); f != FaultNone {
		t.Fatal(f)
	}
	for _, key := range []ib.RKey{mr.RKey, w.RKey()} {
		r, f := tab.Remote(1, 7, key, 0x1004, 8, ib.RemoteRead)
		if f != FaultNone {
			t.Fatal(f)
		}
		if got, f := r.ReadAt(0x1004, 8, nil); f != FaultNone || &got.Data[0] != &data[4] || got.Len() != 8 {
			t.Errorf("%q, %v", got.Data, f)
		}
	}
}

// A copy takes the memory that there is.
func TestReadsThroughWindowsDoNotAllocate(t *testing.T) {
	tab := newTestTable()
	tab.Share(&sync.Mutex{})
	mr := mustRegister(t, tab, 1, make([]byte, 4096), 0x1000, bindAll)
	w := tab.AllocWindow(1, Window1)
	if f := tab.Bind(1, 7, &ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: 0x1000, Len: 4096, Access: ib.RemoteRead}); f != FaultNone {
		t.Fatal(f)
	}
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(1000, func() {
		r, f := tab.Remote(1, 7, w.RKey(), 0x1000, 4096, ib.RemoteRead)
		if f == FaultNone {
			_, f = r.ReadAt(0x1000, 4096, &buf)
		}
		if f != FaultNone {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
