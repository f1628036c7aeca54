package mem

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
)

// A program that polls the last word of a message, in either width, sees the
// whole message before it. Under the race detector it also reads the rest
// plainly, the other bytes of the word included, without a report.
func TestPollingReaderSeesWholeMessage(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 10
	}
	for _, width := range []int{4, 8} {
		for _, n := range []int{4, 8, 12, 16, 24, 40, 64, 4096, 65536} {
			for _, start := range []int{0, 4, 5} {
				end := start + n
				// The program polls the aligned word that the message ends in.
				if end%width != 0 && end%width < 4 || n < width {
					continue
				}
				t.Run(fmt.Sprintf("width %d, %d bytes at %d", width, n, start), func(t *testing.T) {
					pollRounds(t, width, start, n, rounds)
				})
			}
		}
	}
}

func pollRounds(t *testing.T, width, start, n, rounds int) {
	tab := newTestTable()
	buf := arena((start + n + 15) &^ 7)
	clear(buf)
	r := mustRegister(t, tab, 1, buf, 0, ib.LocalWrite|ib.RemoteWrite)
	sgl := []ib.SGE{{Addr: uint64(start), Length: uint32(n), LKey: r.LKey}}
	word := (start + n - 1) &^ (width - 1)
	// The bytes of the word that change with each message.
	load := func() byte {
		var b [8]byte
		if width == 8 {
			binary.NativeEndian.PutUint64(b[:], atomic.LoadUint64((*uint64)(unsafe.Pointer(&buf[word]))))
		} else {
			binary.NativeEndian.PutUint32(b[:], atomic.LoadUint32((*uint32)(unsafe.Pointer(&buf[word]))))
		}
		return b[start+n-1-word]
	}

	var seen atomic.Uint32
	var wg sync.WaitGroup
	wg.Go(func() {
		for round := 1; round <= rounds; round++ {
			for load() != byte(round) {
				runtime.Gosched()
			}
			for i := start; i < start+n; i++ {
				if buf[i] != byte(round) {
					t.Errorf("round %d: byte %d of %d is of round %d", round, i-start, n, buf[i])
					break
				}
			}
			seen.Store(uint32(round))
		}
	})
	src := make([]byte, n)
	for round := 1; round <= rounds; round++ {
		for i := range src {
			src[i] = byte(round)
		}
		if round%2 == 0 {
			r.WriteAt(uint64(start), src)
		} else if f := tab.Scatter(1, sgl, 0, src, 0); f != FaultNone {
			t.Error(f)
		}
		for seen.Load() != uint32(round) {
			runtime.Gosched()
		}
	}
	wg.Wait()
}

// An 8-byte value is never seen half written.
func TestPollingReaderSeesNoTornWord(t *testing.T) {
	tab := newTestTable()
	buf := arena(16)
	clear(buf)
	r := mustRegister(t, tab, 1, buf, 0, ib.LocalWrite|ib.RemoteWrite)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			v := atomic.LoadUint64((*uint64)(unsafe.Pointer(&buf[8])))
			if uint32(v) != uint32(v>>32) {
				t.Errorf("torn: %x", v)
				return
			}
			runtime.Gosched()
		}
	})
	var src [16]byte
	for i := range uint32(5000) {
		binary.NativeEndian.PutUint64(src[8:], uint64(i)<<32|uint64(i))
		r.WriteAt(uint64(i%2)*8, src[i%2*8:])
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
}

// Bytes of the last word that are not the message's are never lost, although
// somebody else changes them meanwhile.
func TestNeighboursAreKept(t *testing.T) {
	tab := newTestTable()
	buf := arena(16)
	clear(buf)
	r := mustRegister(t, tab, 1, buf, 0, ib.LocalWrite|ib.RemoteWrite)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for v := byte(0); !stop.Load(); v++ {
			buf[14], buf[15] = v, v+1
			if v%64 == 0 {
				runtime.Gosched()
			}
			if buf[14] != v || buf[15] != v+1 {
				t.Errorf("a store undid a neighbour's")
				return
			}
		}
	})
	for i := range 20000 {
		src := []byte{byte(i), byte(i), byte(i), byte(i), byte(i)}
		r.WriteAt(9, src)
		if buf[13] != byte(i) {
			t.Fatal("store lost")
		}
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
}

// FetchAdd and CompareSwap of a peer and sync/atomic of the program add up.
func TestAtomicWithProgram(t *testing.T) {
	tab := newTestTable()
	buf := arena(24)
	clear(buf)
	r := mustRegister(t, tab, 1, buf, 0x1000, ib.LocalWrite|ib.RemoteAtomic)
	word := (*uint64)(unsafe.Pointer(&buf[8]))
	const rounds = 20000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range rounds {
			atomic.AddUint64(word, 1)
			if i%256 == 0 {
				runtime.Gosched()
			}
		}
	})
	want := uint64(rounds)
	for i := range rounds {
		if i%2 == 0 {
			if _, f := tab.Atomic(1, 0, r.RKey, 0x1008, ib.FetchAdd, 0, 1<<32); f != FaultNone {
				t.Fatal(f)
			}
			want += 1 << 32
			continue
		}
		for {
			old := atomic.LoadUint64(word)
			got, f := tab.Atomic(1, 0, r.RKey, 0x1008, ib.CompareSwap, old, old+5)
			if f != FaultNone {
				t.Fatal(f)
			}
			if got == old {
				break
			}
		}
		want += 5
	}
	wg.Wait()
	if got := *word; got != want {
		t.Errorf("0x%x, want 0x%x", got, want)
	}
}

func TestAtomic(t *testing.T) {
	tab := newTestTable()
	buf := arena(40)
	clear(buf)
	acc := ib.LocalWrite | ib.RemoteAll
	r := mustRegister(t, tab, 1, buf[:32], 0x1000, acc)
	odd := mustRegister(t, tab, 1, buf[4:36], 0x2000, acc) // addresses and memory are not aligned alike
	noAtomic := mustRegister(t, tab, 1, buf[:32], 0x1000, ib.LocalWrite|ib.RemoteWrite|ib.RemoteRead)
	ph, err := tab.RegisterPhantom(1, 32, 0x1000, acc)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name             string
		pd               PD
		r                *Region
		va               uint64
		op               ib.WROp
		compare, swapAdd uint64
		before, after    uint64
		want             Fault
	}{
		{"add", 1, r, 0x1008, ib.FetchAdd, 9, 5, 100, 105, FaultNone},
		{"add wraps", 1, r, 0x1008, ib.FetchAdd, 0, 3, 1<<64 - 2, 1, FaultNone},
		{"swap", 1, r, 0x1008, ib.CompareSwap, 100, 7, 100, 7, FaultNone},
		{"no swap", 1, r, 0x1008, ib.CompareSwap, 99, 7, 100, 100, FaultNone},
		{"last word", 1, r, 0x1018, ib.FetchAdd, 0, 1, 0, 0, FaultNone},
		{"key", 1, &Region{RKey: r.RKey + 1}, 0x1008, ib.FetchAdd, 0, 1, 5, 5, FaultKey},
		{"domain", 2, r, 0x1008, ib.FetchAdd, 0, 1, 5, 5, FaultPD},
		{"access", 1, noAtomic, 0x1008, ib.FetchAdd, 0, 1, 5, 5, FaultAccess},
		{"range", 1, r, 0x1019, ib.FetchAdd, 0, 1, 5, 5, FaultRange},
		{"range before", 1, r, 0xFF8, ib.FetchAdd, 0, 1, 5, 5, FaultRange},
		{"range wraps", 1, r, 1<<64 - 8, ib.FetchAdd, 0, 1, 5, 5, FaultRange},
		{"alignment", 1, r, 0x1009, ib.FetchAdd, 0, 1, 5, 5, FaultAlign},
		{"alignment of the memory", 1, odd, 0x2008, ib.FetchAdd, 0, 1, 5, 5, FaultAlign},
		{"not an atomic", 1, r, 0x1008, ib.Write, 0, 1, 5, 5, FaultAccess},
		{"phantom", 1, ph, 0x1008, ib.FetchAdd, 0, 1, 5, 5, FaultNone},
		{"phantom alignment", 1, ph, 0x1001, ib.FetchAdd, 0, 1, 5, 5, FaultAlign},
	} {
		binary.NativeEndian.PutUint64(buf[8:], c.before)
		got, f := tab.Atomic(c.pd, 0, c.r.RKey, c.va, c.op, c.compare, c.swapAdd)
		want := uint64(0)
		if c.want == FaultNone && c.r == r && c.va == 0x1008 {
			want = c.before
		}
		if f != c.want || got != want {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, f, want, c.want)
		}
		after := c.after
		if c.va == 0x1018 {
			after = c.before
		}
		if got := binary.NativeEndian.Uint64(buf[8:]); got != after {
			t.Errorf("%s: memory is %d, want %d", c.name, got, after)
		}
	}
}
