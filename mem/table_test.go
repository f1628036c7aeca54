package mem

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"pgregory.net/rapid"
)

// newTestTable returns a table whose keys are seeded.
func newTestTable() *Table { return NewTable(rand.New(rand.NewPCG(1, 2)).Uint32) }

func mustRegister(t testing.TB, tab *Table, pd PD, data []byte, base uint64, acc ib.Access) *Region {
	t.Helper()
	r, err := tab.Register(pd, data, base, acc)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever the source of numbers, keys are unique, not 0 and not one that was
// freed lately; for a map as the model, any order of registrations,
// deregistrations and look-ups gives the same answers.
func TestKeysAgainstModel(t *testing.T) {
	sources := map[string]func(*rapid.T) func() uint32{
		"random": func(rt *rapid.T) func() uint32 {
			return rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)).Uint32
		},
		"small": func(rt *rapid.T) func() uint32 {
			return func() uint32 { return rapid.Uint32Range(0, 3).Draw(rt, "key") }
		},
		"constant": func(*rapid.T) func() uint32 { return func() uint32 { return math.MaxUint32 } },
		"zero":     func(*rapid.T) func() uint32 { return func() uint32 { return 0 } },
		"counter":  func(*rapid.T) func() uint32 { n := uint32(math.MaxUint32 - 20); return func() uint32 { n++; return n } },
		// Multiples of a large power of two: the low bits say nothing.
		"stride": func(*rapid.T) func() uint32 { n := uint32(0); return func() uint32 { n += 1 << 24; return n } },
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				tab := NewTable(source(rt))
				model := map[uint32]*Region{}
				var live []*Region
				var freed []uint32
				for range rapid.IntRange(1, 120).Draw(rt, "steps") {
					if len(live) == 0 || rapid.IntRange(0, 2).Draw(rt, "op") > 0 {
						r, err := tab.Register(1, nil, 0, 0)
						if err != nil {
							rt.Fatal(err)
						}
						key := uint32(r.LKey)
						if key == 0 || model[key] != nil || r.RKey != ib.RKey(key) {
							rt.Fatalf("key 0x%x is zero, in use or not its rkey 0x%x", key, r.RKey)
						}
						for _, k := range freed {
							if k == key {
								rt.Fatalf("key 0x%x was freed and given out again", key)
							}
						}
						model[key] = r
						live = append(live, r)
					} else {
						i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
						r := live[i]
						tab.Deregister(r)
						tab.Deregister(r) // a second time means nothing
						delete(model, uint32(r.LKey))
						freed = append(freed, uint32(r.LKey))
						live = append(live[:i], live[i+1:]...)
					}
					if tab.Len() != len(model) {
						rt.Fatalf("%d regions, want %d", tab.Len(), len(model))
					}
				}
				for k, r := range model {
					if tab.lookup(k) != r {
						rt.Fatalf("key 0x%x is lost", k)
					}
				}
				for _, k := range append(freed, 0, 1, math.MaxUint32) {
					if tab.lookup(k) != model[k] {
						rt.Fatalf("key 0x%x opens what it should not", k)
					}
				}
			})
		})
	}
}

// A freed key stays in quarantine while the next 1,024 are freed, even if the
// source gives nothing else, and memory for it is bounded.
func TestKeyQuarantine(t *testing.T) {
	n := uint32(0)
	tab := NewTable(func() uint32 { n++; return n % 8 })
	last := map[uint32]int{}
	for i := range quarantine + 100 {
		r := mustRegister(t, tab, 1, nil, 0, 0)
		if at, ok := last[uint32(r.LKey)]; ok && i-at < quarantine {
			t.Fatalf("key 0x%x came back after %d others", uint32(r.LKey), i-at)
		}
		last[uint32(r.LKey)] = i
		tab.Deregister(r)
	}
	if len(tab.freed) != quarantine {
		t.Errorf("%d keys are remembered, want %d", len(tab.freed), quarantine)
	}
}

func TestRegisterErrors(t *testing.T) {
	tab := newTestTable()
	buf := make([]byte, 16)
	for _, c := range []struct {
		base uint64
		acc  ib.Access
		is   error
		want string
	}{
		{0, ib.RemoteWrite, ErrAccess, "register memory: access REMOTE_WRITE: REMOTE_WRITE needs LOCAL_WRITE: invalid access flags"},
		{0, ib.RemoteRead | ib.RemoteAtomic, ErrAccess, "register memory: access REMOTE_READ|REMOTE_ATOMIC: REMOTE_ATOMIC needs LOCAL_WRITE: invalid access flags"},
		{0, ib.LocalWrite | 1<<7, ErrAccess, "register memory: access LOCAL_WRITE|0x80: bits 0x80 are undefined: invalid access flags"},
		{0, 1 << 31, ErrAccess, "register memory: access 0x80000000: bits 0x80000000 are undefined: invalid access flags"},
		{math.MaxUint64 - 14, 0, ErrRange, "register memory: 16 bytes at 0xfffffffffffffff1: at most 15 fit there: address range wraps at 2^64"},
	} {
		for _, phantom := range []bool{false, true} {
			var r *Region
			var err error
			if phantom {
				r, err = tab.RegisterPhantom(1, uint64(len(buf)), c.base, c.acc)
			} else {
				r, err = tab.Register(1, buf, c.base, c.acc)
			}
			if r != nil || err == nil || err.Error() != c.want || !errors.Is(err, c.is) {
				t.Errorf("phantom %v: %v, %v; want %s", phantom, r, err, c.want)
			}
		}
	}
	if tab.Len() != 0 {
		t.Errorf("failed registrations left %d regions", tab.Len())
	}
}

// Every combination of flags: accepted exactly if all bits are defined and
// remote write and atomic come with local write.
func TestRegisterEveryAccess(t *testing.T) {
	tab := newTestTable()
	for bit := range 32 {
		for low := ib.Access(0); low < 128; low++ {
			acc := low | 1<<bit
			_, err := tab.Register(1, nil, 0, acc)
			want := acc.Undefined() == 0 && acc&ib.RemotePersist == 0 && (acc&(ib.RemoteWrite|ib.RemoteAtomic) == 0 || acc&ib.LocalWrite != 0)
			if (err == nil) != want {
				t.Errorf("access %v: %v", acc, err)
			}
		}
	}
}

// A region may end at 2^64 exactly, be empty anywhere, and be as large as it
// likes if it is phantom.
func TestRegisterExtremes(t *testing.T) {
	tab := newTestTable()
	for _, c := range []struct {
		n    uint64
		base uint64
	}{{0, 0}, {0, math.MaxUint64}, {16, math.MaxUint64 - 15}, {1, math.MaxUint64}, {math.MaxUint64, 0}, {math.MaxUint64, 1}, {1 << 63, 1 << 63}} {
		r, err := tab.RegisterPhantom(1, c.n, c.base, ib.LocalWrite)
		if err != nil {
			t.Errorf("%d bytes at 0x%x: %v", c.n, c.base, err)
			continue
		}
		if c.n > 0 {
			if f := r.grants(1, c.base+c.n-1, 1, 0); f != FaultNone {
				t.Errorf("%d bytes at 0x%x: the last byte: %v", c.n, c.base, f)
			}
		}
		if f := r.grants(1, c.base+c.n, 1, 0); f != FaultRange {
			t.Errorf("%d bytes at 0x%x: the byte after: %v", c.n, c.base, f)
		}
	}
}

func TestZeroBased(t *testing.T) {
	tab := newTestTable()
	buf := []byte("0123456789")
	r := mustRegister(t, tab, 1, buf, 0x7000, ib.LocalWrite|ib.RemoteRead|ib.ZeroBased)
	if r.Base != 0 {
		t.Fatalf("base 0x%x", r.Base)
	}
	frags, f := tab.Gather(1, []ib.SGE{{Addr: 2, Length: 3, LKey: r.LKey}}, 0, 3, nil)
	if f != FaultNone || string(frags[0].Data) != "234" {
		t.Errorf("%v, %v", frags, f)
	}
	if _, f := tab.Remote(1, 0, r.RKey, 0x7000, 1, ib.RemoteRead); f != FaultRange {
		t.Errorf("the address of the memory opens it: %v", f)
	}
	got, f := tab.Remote(1, 0, r.RKey, 9, 1, ib.RemoteRead)
	if f != FaultNone || string(got.At(9, 1).Data) != "9" {
		t.Errorf("last byte: %v", f)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 2, 1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := newTestTable()
			keys := make([]uint32, n)
			for i := range keys {
				keys[i] = uint32(mustRegister(b, tab, 1, nil, 0, 0).LKey)
			}
			i := 0
			for b.Loop() {
				if tab.lookup(keys[i]) == nil {
					b.Fatal("lost")
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}
