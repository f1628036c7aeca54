package mem

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"pgregory.net/rapid"
)

// world is a table over parts of one arena, and beside it an obvious model: a
// copy of the arena, and the regions as plain numbers.
type world struct {
	tab   *Table
	mem   []byte
	model []byte
	regs  []modelRegion
}

type modelRegion struct {
	key     ib.LKey
	pd      PD
	acc     ib.Access
	base    uint64
	n       uint64
	at      int // in the arena
	phantom bool
}

func newWorld() *world {
	w := &world{tab: newTestTable(), mem: arena(256)}
	w.model = bytes.Clone(w.mem)
	return w
}

func (w *world) add(t fataler, m modelRegion) {
	var r *Region
	var err error
	if m.phantom {
		r, err = w.tab.RegisterPhantom(m.pd, m.n, m.base, m.acc)
	} else {
		r, err = w.tab.Register(m.pd, w.mem[m.at:m.at+int(m.n)], m.base, m.acc)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.key = r.LKey
	w.regs = append(w.regs, m)
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// place is one byte of a list: where it is in the arena, -1 if phantom.
type place int

// resolve walks a list byte by byte. The elements that the span touches are
// checked as a whole; the first fault ends it.
func (w *world) resolve(pd PD, sgl []ib.SGE, off, n int, need ib.Access) ([]place, Fault) {
	var out []place
	pos := 0
	for _, e := range sgl {
		end := pos + int(e.Length)
		if max(pos, off) < min(end, off+n) {
			m, f := w.element(pd, e, need)
			if f != FaultNone {
				return nil, f
			}
			for i := max(pos, off); i < min(end, off+n); i++ {
				if m.phantom {
					out = append(out, -1)
				} else {
					out = append(out, place(m.at+int(e.Addr-m.base)+i-pos))
				}
			}
		}
		pos = end
	}
	if len(out) < n {
		return nil, FaultLength
	}
	return out, FaultNone
}

func (w *world) element(pd PD, e ib.SGE, need ib.Access) (modelRegion, Fault) {
	for _, m := range w.regs {
		if m.key != e.LKey {
			continue
		}
		switch {
		case m.pd != pd:
			return m, FaultPD
		case m.acc&need != need:
			return m, FaultAccess
		}
		for i := range uint64(e.Length) {
			if a := e.Addr + i; a < e.Addr || a < m.base || a-m.base >= m.n {
				return m, FaultRange
			}
		}
		return m, FaultNone
	}
	return modelRegion{}, FaultKey
}

// try runs Check, Gather and Scatter with the same arguments on table and
// model and compares answers and every byte of the arena.
func (w *world) try(t fataler, pd PD, sgl []ib.SGE, off, n int, src []byte, need ib.Access) {
	total := 0
	want := FaultNone
	for _, e := range sgl {
		total += int(e.Length)
		if e.Length > 0 && want == FaultNone {
			_, want = w.element(pd, e, need)
		}
	}
	if f := w.tab.Check(pd, sgl, need); f != want {
		t.Fatalf("Check %v: %v, want %v", sgl, f, want)
	}

	places, want := w.resolve(pd, sgl, off, n, 0)
	frags, f := w.tab.Gather(pd, sgl, uint64(off), n, make([]Frag, 1, 8))
	if f != want {
		t.Fatalf("Gather %v %d+%d: %v, want %v", sgl, off, n, f, want)
	}
	k := 0
	for _, fr := range frags[1:] {
		for i := range fr.Len() {
			switch {
			case k >= len(places):
				t.Fatalf("Gather gave more than %d bytes", n)
			case (places[k] < 0) != (fr.Data == nil), fr.Data != nil && &fr.Data[i] != &w.mem[places[k]]:
				t.Fatalf("Gather %v %d+%d: byte %d is wrong", sgl, off, n, k)
			}
			k++
		}
	}
	if k != len(places) {
		t.Fatalf("Gather gave %d bytes, want %d", k, len(places))
	}

	places, want = w.resolve(pd, sgl, off, n, ib.LocalWrite)
	if f := w.tab.Scatter(pd, sgl, uint64(off), src, n); f != want {
		t.Fatalf("Scatter %v %d+%d: %v, want %v", sgl, off, n, f, want)
	}
	for i, p := range places {
		if p >= 0 && src != nil {
			w.model[p] = src[i]
		}
	}
	if !bytes.Equal(w.mem, w.model) {
		t.Fatalf("Scatter %v %d+%d changed\n%x\nwant\n%x", sgl, off, n, w.mem, w.model)
	}
}

func TestListsAgainstModel(t *testing.T) {
	accs := []ib.Access{0, ib.LocalWrite, ib.LocalWrite | ib.RemoteAll, ib.RemoteRead}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 5).Draw(rt, "regions") {
			at := rapid.IntRange(0, len(w.mem)).Draw(rt, "at")
			n := rapid.IntRange(0, len(w.mem)-at).Draw(rt, "n")
			base := rapid.SampledFrom([]uint64{0, 0x1003, 1 << 32, -uint64(n) - 1, -uint64(n)}).Draw(rt, "base")
			if base == 0 || base+uint64(n) < base && base+uint64(n) != 0 {
				base = 7
			}
			w.add(rt, modelRegion{
				pd: PD(rapid.IntRange(1, 2).Draw(rt, "pd")), acc: rapid.SampledFrom(accs).Draw(rt, "access"),
				base: base, n: uint64(n), at: at, phantom: rapid.IntRange(0, 4).Draw(rt, "kind") == 0,
			})
		}
		for range rapid.IntRange(1, 8).Draw(rt, "tries") {
			var sgl []ib.SGE
			total := 0
			for range rapid.IntRange(0, 4).Draw(rt, "elements") {
				m := rapid.SampledFrom(w.regs).Draw(rt, "region")
				e := ib.SGE{LKey: m.key}
				off := rapid.IntRange(0, int(m.n)).Draw(rt, "off")
				e.Addr, e.Length = m.base+uint64(off), uint32(rapid.IntRange(0, int(m.n)-off).Draw(rt, "len"))
				switch rapid.IntRange(0, 20).Draw(rt, "spoil") {
				case 0:
					e.LKey++
				case 1:
					e.Addr += uint64(rapid.IntRange(-300, 300).Draw(rt, "shift"))
				case 2:
					e.Length += uint32(rapid.IntRange(0, 300).Draw(rt, "grow"))
				case 3:
					e.Addr = math.MaxUint64 - uint64(rapid.IntRange(0, 300).Draw(rt, "top"))
				}
				total += int(e.Length)
				sgl = append(sgl, e)
			}
			off := rapid.IntRange(0, total+2).Draw(rt, "list off")
			n := rapid.IntRange(0, max(total-off+2, 0)).Draw(rt, "list n")
			var src []byte
			if n > 0 && rapid.IntRange(0, 5).Draw(rt, "src") > 0 {
				src = rapid.SliceOfN(rapid.Byte(), n, n).Draw(rt, "bytes")
			}
			w.try(rt, 1, sgl, off, n, src, rapid.SampledFrom(accs).Draw(rt, "need"))
		}
	})
}

// Remote writes through WriteAt against the same model.
func TestRemoteAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		at := rapid.IntRange(0, len(w.mem)).Draw(rt, "at")
		n := rapid.IntRange(0, len(w.mem)-at).Draw(rt, "n")
		base := rapid.Uint64Range(0, math.MaxUint64-uint64(n)).Draw(rt, "base")
		w.add(rt, modelRegion{pd: 1, acc: ib.LocalWrite | ib.RemoteWrite, base: base, n: uint64(n), at: at})
		key := ib.RKey(w.regs[0].key)
		for range rapid.IntRange(1, 8).Draw(rt, "tries") {
			off := rapid.IntRange(-5, n+5).Draw(rt, "off")
			src := rapid.SliceOfN(rapid.Byte(), 0, n+5).Draw(rt, "src")
			va := base + uint64(off)
			ok := len(src) == 0 || off >= 0 && off+len(src) <= n
			r, f := w.tab.Remote(1, 0, key, va, uint64(len(src)), ib.RemoteWrite)
			if (f == FaultNone) != ok || f != FaultNone && f != FaultRange {
				rt.Fatalf("%d+%d of %d: %v", off, len(src), n, f)
			}
			if f == FaultNone {
				r.WriteAt(va, src)
				if len(src) > 0 {
					copy(w.model[at+off:], src)
				}
				if got := r.At(va, len(src)); len(src) > 0 && !bytes.Equal(got.Data, src) {
					rt.Fatalf("At: %x, want %x", got.Data, src)
				}
			}
			if !bytes.Equal(w.mem, w.model) {
				rt.Fatalf("%d+%d of %d at %d changed\n%x\nwant\n%x", off, len(src), n, at, w.mem, w.model)
			}
		}
	})
}

// Arbitrary lists, ten bytes an element: key, address, length.
func FuzzLists(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 10, 1, 3, 0, 0, 5}, uint8(2), uint8(7), true)
	f.Add([]byte{2, 0xFF, 0xFF, 0xFF, 0xFF}, uint8(0), uint8(1), false)
	f.Add([]byte{}, uint8(0), uint8(0), true)
	f.Fuzz(func(t *testing.T, prog []byte, off, n uint8, real bool) {
		w := newWorld()
		w.add(t, modelRegion{pd: 1, acc: ib.LocalWrite, base: 0, n: 64, at: 3})
		w.add(t, modelRegion{pd: 1, acc: ib.LocalWrite, base: math.MaxUint64 - 30, n: 31, at: 70})
		w.add(t, modelRegion{pd: 1, acc: 0, base: 0x80, n: 64, at: 120})
		w.add(t, modelRegion{pd: 2, acc: ib.LocalWrite, base: 0, n: 5, at: 200})
		w.add(t, modelRegion{pd: 1, acc: ib.LocalWrite, base: 0, n: 200, phantom: true})
		var sgl []ib.SGE
		for ; len(prog) >= 5 && len(sgl) < 6; prog = prog[5:] {
			e := ib.SGE{LKey: ib.LKey(prog[0]), Addr: uint64(int64(int16(uint16(prog[1])<<8 | uint16(prog[2])))), Length: uint32(prog[4])}
			if prog[3] == 0xFF {
				e.Length |= 0x1000 // long ones, but short enough for the model
			}
			if i := int(prog[0]); i < len(w.regs) {
				e.LKey = w.regs[i].key
			}
			sgl = append(sgl, e)
		}
		var src []byte
		if real && n > 0 {
			src = pattern(int(n))
		}
		w.try(t, 1, sgl, int(off), int(n), src, ib.LocalWrite)
	})
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	tab := newTestTable()
	acc := ib.LocalWrite | ib.RemoteAll
	a := mustRegister(t, tab, 1, arena(8192), 0, acc)
	b := mustRegister(t, tab, 1, arena(8192), 0, acc)
	sgl := []ib.SGE{{Addr: 1, Length: 1000, LKey: a.LKey}, {Addr: 8, Length: 4000, LKey: b.LKey}}
	src := pattern(3001)
	frags := make([]Frag, 0, len(sgl))
	if n := testing.AllocsPerRun(100, func() {
		tab.Check(1, sgl, ib.LocalWrite)
		tab.Gather(1, sgl, 5, 3000, frags)
		tab.Scatter(1, sgl, 5, src, 0)
		tab.Scatter(1, sgl[:1], 5, src[:5], 0)
		tab.Scatter(1, sgl, 0, src, 0)
		if r, f := tab.Remote(1, 0, a.RKey, 3, 3001, ib.RemoteWrite); f == FaultNone {
			r.WriteAt(3, src)
			r.At(3, 9)
		}
		tab.Remote(1, 0, 7, 3, 3001, ib.RemoteWrite)
		tab.Atomic(1, 0, b.RKey, 8, ib.FetchAdd, 0, 1)
		tab.Atomic(1, 0, b.RKey, 8, ib.CompareSwap, 0, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScatter(b *testing.B) {
	for _, n := range []int{8, 64, 1024, 4096} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			tab := newTestTable()
			r := mustRegister(b, tab, 1, arena(8192), 0, ib.LocalWrite)
			sgl := []ib.SGE{{Addr: 0, Length: 8192, LKey: r.LKey}}
			src := pattern(n)
			b.SetBytes(int64(n))
			for b.Loop() {
				tab.Scatter(1, sgl, 0, src, 0)
			}
		})
	}
}

func BenchmarkGather(b *testing.B) {
	tab := newTestTable()
	r := mustRegister(b, tab, 1, arena(8192), 0, 0)
	sgl := []ib.SGE{{Addr: 0, Length: 8192, LKey: r.LKey}}
	frags := make([]Frag, 0, 1)
	for b.Loop() {
		tab.Gather(1, sgl, 100, 4096, frags)
	}
}
