package verbs_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
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
	if _, err := verbs.Alloc(1 << 60); err == nil {
		t.Error("2^60 bytes were given")
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
