package crc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// lengths has every length up to several rounds of the assembly, and those
// around the payload sizes of packets.
func lengths() (ls []int) {
	for n := range 700 {
		ls = append(ls, n)
	}
	for _, n := range []int{1024, 2048, 4096, 8192, 16384, 65536} {
		for d := -17; d <= 17; d++ {
			ls = append(ls, n+d)
		}
	}
	return ls
}

// updaters and copiers are all implementations that this build and processor
// have, by name.
func updaters() map[string]func(crc uint32, p []byte) uint32 {
	m := map[string]func(uint32, []byte) uint32{
		"Update": Update, "Short": Short, "portable": updatePortable, "sliced": sliced,
	}
	maps.Copy(m, asmUpdaters())
	return m
}

func copiers() map[string]func(dst, src []byte, crc uint32) uint32 {
	m := map[string]func(dst, src []byte, crc uint32) uint32{"Copy": Copy, "portable": copyPortable}
	maps.Copy(m, asmCopiers())
	return m
}

func TestUpdateEqualsHashCRC32(t *testing.T) {
	r := seeded(t)
	buf := make([]byte, 65536+64+64)
	fill(r, buf)
	for _, n := range lengths() {
		for _, align := range []int{0, 1, 7, 31} {
			p, start := buf[align:align+n], r.Uint32()
			want := crc32.Update(start, crc32.IEEETable, p)
			for name, f := range updaters() {
				if got := f(start, p); got != want {
					t.Fatalf("%s of %d bytes at alignment %d: %08x, want %08x", name, n, align, got, want)
				}
			}
		}
	}
}

func TestCopyCopiesExactlyAndGivesTheCRC(t *testing.T) {
	r := seeded(t)
	const guard = 40
	src := make([]byte, 65536+64+64)
	fill(r, src)
	dst := make([]byte, len(src)+2*guard)
	for name, f := range copiers() {
		for _, n := range lengths() {
			for range 2 {
				sa, da, start := r.IntN(64), guard+r.IntN(33), r.Uint32()
				s := src[sa : sa+n]
				for i := range dst[:da+n+guard] {
					dst[i] = 0xA5
				}
				got := f(dst[da:da+n], s, start)
				if want := crc32.Update(start, crc32.IEEETable, s); got != want {
					t.Fatalf("%s of %d bytes from %d to %d: crc %08x, want %08x", name, n, sa, da, got, want)
				}
				if !bytes.Equal(dst[da:da+n], s) {
					t.Fatalf("%s of %d bytes from %d to %d: copy differs", name, n, sa, da)
				}
				for i := range guard {
					if dst[da-1-i%da] != 0xA5 || dst[da+n+i] != 0xA5 {
						t.Fatalf("%s of %d bytes from %d to %d: wrote outside", name, n, sa, da)
					}
				}
			}
		}
	}
}

func TestCopyToAShorterDestination(t *testing.T) {
	src, dst := []byte("0123456789abcdefghijklmnopqrstuvwxyz"), make([]byte, 20)
	if got, want := Copy(dst, src, 7), crc32.Update(7, crc32.IEEETable, src[:20]); got != want {
		t.Errorf("crc %08x, want %08x", got, want)
	}
	if string(dst) != "0123456789abcdefghij" {
		t.Errorf("copied %q", dst)
	}
	if got := Copy(nil, src, 7); got != 7 {
		t.Errorf("copy to nothing changed the crc to %08x", got)
	}
	if got := Copy(nil, nil, 7); got != 7 {
		t.Errorf("copy of nothing changed the crc to %08x", got)
	}
}

func TestCombine(t *testing.T) {
	r := seeded(t)
	b := make([]byte, 10000)
	fill(r, b)
	for range 300 {
		n := r.IntN(len(b) + 1)
		m := r.IntN(n + 1)
		whole := crc32.ChecksumIEEE(b[:n])
		got := Combine(crc32.ChecksumIEEE(b[:m]), crc32.ChecksumIEEE(b[m:n]), n-m)
		if got != whole {
			t.Fatalf("%d + %d bytes: %08x, want %08x", m, n-m, got, whole)
		}
	}
}

func TestShiftGoesBack(t *testing.T) {
	r := seeded(t)
	for n := range 5000 {
		d := r.Uint32()
		if got := Shift(Shift(d, n), -n); got != d {
			t.Fatalf("%d bytes there and back: %08x, want %08x", n, got, d)
		}
	}
	for _, n := range []int{1 << 20, 1<<31 - 1, math.MaxInt} {
		if got := Shift(Shift(0xDEADBEEF, n), -n); got != 0xDEADBEEF {
			t.Fatalf("%d bytes there and back: %08x", n, got)
		}
	}
}

func TestWords(t *testing.T) {
	r := seeded(t)
	for range 1000 {
		lo, hi, start := r.Uint64(), r.Uint32(), r.Uint32()
		b := binary.LittleEndian.AppendUint64(nil, lo)
		b = binary.LittleEndian.AppendUint32(b, hi)
		if got, want := Words(start, lo, hi), crc32.Update(start, crc32.IEEETable, b); got != want {
			t.Fatalf("%x: %08x, want %08x", b, got, want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	src, dst := make([]byte, 4099), make([]byte, 4099)
	n := testing.AllocsPerRun(100, func() {
		var b [56]byte // on the stack
		c := Short(0, b[:])
		c = Copy(dst, src, c)
		c = Update(c, dst)
		Combine(c, c, 4096)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), []byte{}, uint8(0))
	f.Add(uint32(1), make([]byte, 300), uint8(3))
	f.Fuzz(func(t *testing.T, start uint32, b []byte, skip uint8) {
		p := b[min(int(skip), len(b)):]
		want := crc32.Update(start, crc32.IEEETable, p)
		for name, g := range updaters() {
			if got := g(start, p); got != want {
				t.Errorf("%s: %08x, want %08x", name, got, want)
			}
		}
		for name, g := range copiers() {
			dst := make([]byte, len(p))
			if got := g(dst, p, start); got != want || !bytes.Equal(dst, p) {
				t.Errorf("%s: %08x, want %08x", name, got, want)
			}
		}
	})
}

var sink uint32

// bench walks f over a working set of w bytes, n at a time.
func bench(b *testing.B, n, w int, f func(dst, src []byte)) {
	src, dst := make([]byte, w), make([]byte, w+70)[70:]
	fill(rand.New(rand.NewPCG(1, 1)), src)
	b.SetBytes(int64(n))
	k := 0
	for b.Loop() {
		f(dst[k:k+n], src[k:k+n])
		if k += n; k+n > w {
			k = 0
		}
	}
}

// BenchmarkCopy compares copy and hash/crc32 with the fused roads, into a
// destination as far off a cache line as a run of packets is.
func BenchmarkCopy(b *testing.B) {
	for _, w := range []int{256 << 10, 8 << 20} {
		for _, n := range []int{64, 256, 1024, 4096} {
			name := fmt.Sprintf("n=%d/w=%dK/", n, w>>10)
			b.Run(name+"std", func(b *testing.B) {
				bench(b, n, w, func(d, s []byte) { copy(d, s); sink += crc32.ChecksumIEEE(s) })
			})
			for _, r := range slices.Sorted(maps.Keys(copiers())) {
				f := copiers()[r]
				b.Run(name+r, func(b *testing.B) {
					bench(b, n, w, func(d, s []byte) { sink += f(d, s, 0) })
				})
			}
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{8, 16, 52, 256, 1024, 4096} {
		b.Run(fmt.Sprintf("n=%d/std", n), func(b *testing.B) {
			bench(b, n, 256<<10, func(_, s []byte) { sink += crc32.ChecksumIEEE(s) })
		})
		b.Run(fmt.Sprintf("n=%d/ours", n), func(b *testing.B) {
			bench(b, n, 256<<10, func(_, s []byte) { sink += Update(0, s) })
		})
	}
}

func BenchmarkCombine(b *testing.B) {
	for b.Loop() {
		sink = Combine(sink, 1, 4096)
	}
}
