package verbs_test

import (
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

func TestAlloc(t *testing.T) {
	for _, n := range []int{1, 4096, 5000, 1 << 20, 2 << 20, 5<<20 + 3} {
		m, err := verbs.Alloc(n)
		must(t, err)
		b := m.Bytes()
		if len(b) != n || cap(b) != n {
			t.Errorf("%d bytes: got %d of %d", n, len(b), cap(b))
		}
		if p := uintptr(unsafe.Pointer(&b[0])); p%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes: at 0x%x", n, p)
		}
		for i := 0; i < n; i += 511 {
			if b[i] != 0 {
				t.Fatalf("%d bytes: byte %d is not 0", n, i)
			}
			b[i] = 1
		}
		s := m.String()
		if m.HugePages() == strings.Contains(s, "no huge pages") {
			t.Errorf("%v: %s", m.HugePages(), s)
		}
		t.Log(s)
		must(t, m.Close())
		must(t, m.Close())
	}
	for _, n := range []int{0, -1} {
		if _, err := verbs.Alloc(n); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, n := range []int{math.MaxInt, math.MaxInt - 4096, math.MaxInt/2 + 1} {
		if _, err := verbs.Alloc(n); err == nil {
			t.Errorf("%d bytes were given", n)
		}
	}
}

// Memory that is closed is nobody's: it gives no bytes, and a slice of it that
// was kept cannot be registered, as a device that touched it would crash the
// program.
func TestClosedMemory(t *testing.T) {
	x, y := pair.New(pair.Config{})
	defer y.Close()
	pd := open(t, verbs.Config{Addr: addrA, Link: x}).AllocPD()
	for _, n := range []int{1, 4096, 4097, 100_000, 5 << 20} {
		m, err := verbs.Alloc(n)
		must(t, err)
		kept := m.Bytes()
		mr, err := pd.RegisterMR(kept, ib.AccessAll)
		must(t, err)
		if err := m.Close(); !errors.Is(err, verbs.ErrBusy) {
			t.Errorf("%d bytes with a region: %v", n, err)
		}
		must(t, mr.Close())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				_, _ = m.Bytes(), m.String()
			})
		}
		wg.Wait()
		if b := m.Bytes(); b != nil {
			t.Errorf("closed memory gives %d bytes", len(b))
		}
		for _, b := range [][]byte{kept, kept[n-1:], kept[n/2:]} {
			if inUse(t, b) { // where closing unmaps nothing, or somebody was quick
				continue
			}
			if _, err := pd.RegisterMR(b, ib.AccessAll); !errors.Is(err, verbs.ErrInvalid) {
				t.Errorf("%d of %d bytes of closed memory: %v", len(b), n, err)
			}
		}
	}
	for _, b := range [][]byte{nil, {}, make([]byte, 1), make([]byte, 10<<20)} {
		mr, err := pd.RegisterMR(b, ib.AccessAll)
		must(t, err)
		must(t, mr.Close())
	}
}

// inUse reports whether any of b is mapped, as far as the system tells.
func inUse(t *testing.T, b []byte) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	page := uint64(os.Getpagesize())
	from := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) &^ (page - 1)
	to := from + uint64(len(b))
	for line := range strings.Lines(string(maps)) {
		span, _, _ := strings.Cut(line, " ")
		lo, hi, _ := strings.Cut(span, "-")
		l, err1 := strconv.ParseUint(lo, 16, 64)
		h, err2 := strconv.ParseUint(hi, 16, 64)
		must(t, errors.Join(err1, err2))
		if l < to && h > from {
			return true
		}
	}
	return false
}

// A length that no element of a list can name never becomes a shorter one.
func TestLengthsBeyondAnElement(t *testing.T) {
	p := newPairMem(t, ib.RC, nil)
	lengths := []int{-1, -5, math.MinInt, math.MaxInt}
	if strconv.IntSize == 64 {
		for _, n := range []uint64{1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 5, 1 << 40, 1<<63 - 1} {
			lengths = append(lengths, int(n))
		}
	}
	for _, n := range lengths {
		for _, op := range []ib.WROp{ib.Send, ib.Write, ib.Read} {
			err := p.a.qp.PostSend(ib.SendWR{Op: op, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, n), Remote: p.a.peer.At(0)})
			if !errors.Is(err, verbs.ErrInvalid) {
				t.Errorf("%v of %d bytes: %v", op, n, err)
			}
		}
	}
	// A receive of such a length does not hold its message: it is no short one.
	p.b.recv(t, 0, -1)
	p.a.send(t, 0, 10)
	if s := p.b.await(t).Status; s != ib.LocProtErr {
		t.Errorf("receive: %v", s)
	}
}

// Regions: zero length, addresses of one's own, the key's bounds, slices of
// Alloc'ed memory and of the Go heap.
func TestRegions(t *testing.T) {
	p := newPairMem(t, ib.RC, nil)
	write := func(wr ib.SendWR) ib.WCStatus {
		t.Helper()
		wr.Op, wr.Flags = ib.Write, ib.Signaled
		must(t, p.a.qp.PostSend(wr))
		return p.a.await(t).Status
	}
	m, err := verbs.Alloc(3 << 20)
	must(t, err)
	defer m.Close()
	at, err := p.b.pd.Register(verbs.MRConfig{Buf: m.Bytes()[1000:2000], Access: ib.AccessAll, IOVA: 1 << 40})
	must(t, err)
	zero, err := p.b.pd.Register(verbs.MRConfig{Buf: m.Bytes()[5000:6000], Access: ib.AccessAll | ib.ZeroBased})
	must(t, err)
	if at.Addr() != 1<<40 || zero.Addr() != 0 {
		t.Errorf("at 0x%x and 0x%x", at.Addr(), zero.Addr())
	}
	copy(p.a.mr.Bytes(), "payload")
	for name, mr := range map[string]*verbs.MR{"of its own address": at, "from zero": zero} {
		if s := write(ib.SendWR{SGL: p.a.mr.SGE(0, 7), Remote: mr.Remote(993)}); s != ib.Success {
			t.Errorf("%s: %v", name, s)
		}
		if got := string(mr.Bytes()[993:]); got != "payload" {
			t.Errorf("%s: %q", name, got)
		}
	}
	empty, err := p.a.pd.RegisterMR(nil, ib.AccessAll)
	must(t, err)
	if s := write(ib.SendWR{SGL: empty.SGE(0, 0), Remote: at.Remote(0)}); s != ib.Success || empty.Len() != 0 {
		t.Errorf("empty region: %v", s)
	}
	for name, c := range map[string]verbs.MRConfig{
		"remote write without local write": {Buf: make([]byte, 8), Access: ib.RemoteWrite},
		"undefined access bits":            {Buf: make([]byte, 8), Access: 1 << 30},
		"an end beyond 2^64":               {Buf: make([]byte, 100), IOVA: ^uint64(0) - 50},
	} {
		if _, err := p.a.pd.Register(c); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	must(t, at.Close())
	if s := write(ib.SendWR{SGL: p.a.mr.SGE(0, 7), Remote: at.Remote(0)}); s != ib.RemAccessErr {
		t.Errorf("closed region: %v", s)
	}
}
