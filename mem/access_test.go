package mem

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// Each fault, by each way in. Where several things are wrong the order is key,
// protection domain, access, range.
func TestFaults(t *testing.T) {
	tab := newTestTable()
	all := ib.LocalWrite | ib.RemoteAll
	full := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, all)
	ro := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, 0)
	high := mustRegister(t, tab, 1, make([]byte, 16), math.MaxUint64-15, all)
	gone := mustRegister(t, tab, 1, make([]byte, 64), 0x1000, all)
	tab.Deregister(gone)

	for _, c := range []struct {
		name string
		pd   PD
		r    *Region
		addr uint64
		n    uint32
		want Fault
	}{
		{"whole", 1, full, 0x1000, 64, FaultNone},
		{"part", 1, full, 0x1001, 62, FaultNone},
		{"no such key", 1, &Region{LKey: full.LKey + 1, RKey: full.RKey + 1}, 0x1000, 1, FaultKey},
		{"key zero", 1, &Region{}, 0, 1, FaultKey},
		{"deregistered", 1, gone, 0x1000, 1, FaultKey},
		{"other domain", 2, full, 0x1000, 1, FaultPD},
		{"other domain before access and range", 2, ro, 0, 1, FaultPD},
		{"read only", 1, ro, 0x1000, 1, FaultAccess},
		{"access before range", 1, ro, 0, 1, FaultAccess},
		{"one beyond", 1, full, 0x1000, 65, FaultRange},
		{"one before", 1, full, 0xFFF, 1, FaultRange},
		{"starts at the end", 1, full, 0x1040, 1, FaultRange},
		{"longest", 1, full, 0x1000, math.MaxUint32, FaultRange},
		{"wraps", 1, full, math.MaxUint64, 0x1002, FaultRange},
		{"up to 2^64", 1, high, math.MaxUint64 - 15, 16, FaultNone},
		{"over 2^64", 1, high, math.MaxUint64 - 15, 17, FaultRange},
		{"over 2^64 into zero", 1, high, 0, 1, FaultRange},
	} {
		sgl := []ib.SGE{{Addr: c.addr, Length: c.n, LKey: c.r.LKey}}
		if f := tab.Check(c.pd, sgl, ib.LocalWrite); f != c.want {
			t.Errorf("%s: Check: %v, want %v", c.name, f, c.want)
		}
		if f := tab.Scatter(c.pd, sgl, 0, make([]byte, min(c.n, 64)), 0); f != c.want {
			t.Errorf("%s: Scatter: %v, want %v", c.name, f, c.want)
		}
		for _, need := range []ib.Access{ib.RemoteWrite, ib.RemoteRead, ib.RemoteAtomic} {
			r, f := tab.Remote(c.pd, 0, c.r.RKey, c.addr, uint64(c.n), need)
			if f != c.want || (r != nil) != (f == FaultNone) {
				t.Errorf("%s: Remote %v: %v, want %v", c.name, need, f, c.want)
			}
		}
		// Reading by a local element needs no access flag.
		want := c.want
		if c.r == ro && c.pd == ro.PD {
			want = FaultNone
			if !ro.holds(c.addr, uint64(c.n)) {
				want = FaultRange
			}
		}
		if _, f := tab.Gather(c.pd, sgl, 0, int(min(c.n, 64)), nil); f != want {
			t.Errorf("%s: Gather: %v, want %v", c.name, f, want)
		}
	}
}

func TestZeroLength(t *testing.T) {
	tab := newTestTable()
	r := mustRegister(t, tab, 1, []byte("abc"), 0, ib.LocalWrite)
	empty := mustRegister(t, tab, 1, nil, 0x5000, ib.LocalWrite|ib.RemoteAll)
	junk := ib.SGE{Addr: math.MaxUint64, LKey: 0xDEAD}
	if f := tab.Check(9, []ib.SGE{junk, junk}, ib.LocalWrite); f != FaultNone {
		t.Errorf("elements of length 0 are looked up: %v", f)
	}
	sgl := []ib.SGE{junk, {Addr: 0, Length: 3, LKey: r.LKey}, junk}
	frags, f := tab.Gather(1, sgl, 0, 3, nil)
	if f != FaultNone || len(frags) != 1 || string(frags[0].Data) != "abc" {
		t.Errorf("%v %v", frags, f)
	}
	if f := tab.Scatter(1, sgl, 1, []byte("xy"), 0); f != FaultNone || string(r.data) != "axy" {
		t.Errorf("%q %v", r.data, f)
	}
	if frags, f := tab.Gather(1, nil, 5, 0, nil); f != FaultNone || len(frags) != 0 {
		t.Errorf("nothing gathered from nothing: %v %v", frags, f)
	}
	if f := tab.Scatter(1, nil, 5, []byte{}, 0); f != FaultNone {
		t.Errorf("nothing scattered to nothing: %v", f)
	}
	if f := tab.Scatter(1, nil, 0, []byte{1}, 0); f != FaultLength {
		t.Errorf("something scattered to nothing: %v", f)
	}
	// A request for no bytes names no key.
	nothing, f := tab.Remote(1, 0, 0xDEAD, math.MaxUint64, 0, ib.RemoteWrite)
	if f != FaultNone {
		t.Errorf("0 bytes of no region: %v", f)
	}
	nothing.WriteAt(7, nil)
	if got := nothing.At(7, 0); got.Len() != 0 {
		t.Errorf("0 bytes are %d", got.Len())
	}
	if empty.Phantom() {
		t.Error("an empty region is phantom")
	}
	if _, f := tab.Remote(1, 0, empty.RKey, 0x5000, 1, ib.RemoteRead); f != FaultRange {
		t.Errorf("a byte of an empty region: %v", f)
	}
}

// At and WriteAt of what Remote has not granted do nothing.
func TestUngranted(t *testing.T) {
	tab := newTestTable()
	buf := []byte("0123456789")
	r := mustRegister(t, tab, 1, buf[2:8], 0x100, ib.LocalWrite|ib.RemoteWrite)
	for _, va := range []uint64{0, 0xFF, 0x103, 0x106, math.MaxUint64, math.MaxUint64 - 3} {
		r.WriteAt(va, []byte("abcd"))
		if got := r.At(va, 4); got.Len() != 0 {
			t.Errorf("4 bytes at 0x%x: %q", va, got.Data)
		}
	}
	if got := r.At(0x100, -1); got.Len() != 0 {
		t.Errorf("-1 bytes are %d", got.Len())
	}
	if string(buf) != "0123456789" {
		t.Errorf("memory changed: %q", buf)
	}
}

// The lengths of 2^31 and beyond, where a 32-bit sum would wrap.
func TestLongLists(t *testing.T) {
	tab := newTestTable()
	r, err := tab.RegisterPhantom(1, 1<<40, 0, ib.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	sgl := make([]ib.SGE, 4)
	for i := range sgl {
		sgl[i] = ib.SGE{Addr: uint64(i) << 32, Length: 1 << 31, LKey: r.LKey}
	}
	frags, f := tab.Gather(1, sgl, 3<<31-1, 2, nil)
	if f != FaultNone || len(frags) != 2 || frags[0].Len() != 1 || frags[1].Len() != 1 {
		t.Errorf("%v %v", frags, f)
	}
	if f := tab.Scatter(1, sgl, 4<<31-1, nil, 1); f != FaultNone {
		t.Errorf("last byte: %v", f)
	}
	if f := tab.Scatter(1, sgl, 4<<31-1, nil, 2); f != FaultLength {
		t.Errorf("byte after the last: %v", f)
	}
	if f := tab.Scatter(1, sgl, 0, nil, min(ib.MaxMessage, math.MaxInt)); f != FaultNone {
		t.Errorf("2^31 bytes: %v", f)
	}
	if _, f := tab.Gather(1, sgl, math.MaxUint64, 1, nil); f != FaultLength {
		t.Errorf("offset 2^64-1: %v", f)
	}
}
