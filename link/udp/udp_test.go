package udp_test

import (
	"bytes"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/linktest"
	"github.com/verbena-rdma/verbena/link/udp"
)

var (
	lo1 = netip.MustParseAddr("127.0.0.1")
	lo2 = netip.MustParseAddr("127.0.0.2")
)

func open(t testing.TB, cfg udp.Config) link.Link {
	t.Helper()
	l, err := udp.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestRunArrivesWhole(t *testing.T) {
	port := testPort(t)
	a := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: port})
	b := open(t, udp.Config{Addrs: []netip.Addr{lo2}, Port: port})
	p, err := a.Path(lo1, lo2, 0xC123)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("caps %+v path %+v", a.Caps(), p)
	tx := make([]frame.Run, 1)
	if a.Reserve(tx) != 1 {
		t.Fatal("Reserve")
	}
	r := &tx[0]
	r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = lo1, lo2, p.SrcPort, 0x6A, 33
	r.Seg, r.Segs, r.N = 4160, 15, 14*4160+100
	for i := range r.Buf[:r.N] {
		r.Buf[i] = byte(i * 31)
	}
	want := bytes.Clone(r.Buf[:r.N])
	if err := a.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(0, clock.Never); err != nil {
		t.Fatal(err)
	}
	rx := make([]frame.Rx, 4)
	n, err := b.Recv(0, rx)
	if n != 1 || err != nil {
		t.Fatalf("Recv = %d, %v; counters %+v", n, err, a.Counters())
	}
	g := rx[0]
	if !bytes.Equal(g.Data, want) || g.Seg != 4160 || g.Src != lo1 || g.Dst != lo2 || g.SrcPort != p.SrcPort || g.TOS != 0x6A || g.TTL != 33 {
		t.Errorf("received len %d seg %d src %v dst %v port %d tos %#x ttl %d", len(g.Data), g.Seg, g.Src, g.Dst, g.SrcPort, g.TOS, g.TTL)
	}
	b.Release(rx[:n])
}

var nextPort atomic.Uint32

// testPort returns a port that no other test of this process uses, and hardly
// one of another process at the same time.
func testPort(testing.TB) uint16 {
	const first, each, processes = 10000, 500, 40
	return uint16(first + os.Getpid()%processes*each + int(nextPort.Add(1))%each)
}

// conform runs the suite over two links, and over one link with two addresses.
func conform(t *testing.T, cfg udp.Config, marks, allocs bool, x, y netip.Addr) {
	suite := linktest.Suite{Marks: marks, Lossless: true, Allocs: allocs}
	t.Run("two links", func(t *testing.T) {
		suite.Open = func(tb testing.TB) (a, b linktest.End) {
			cfg := cfg
			cfg.Port = testPort(tb)
			cfg.Addrs = []netip.Addr{x}
			a = linktest.End{Link: open(tb, cfg), Addr: x}
			cfg.Addrs = []netip.Addr{y}
			return a, linktest.End{Link: open(tb, cfg), Addr: y}
		}
		linktest.Run(t, suite)
	})
	t.Run("one link", func(t *testing.T) {
		suite.Open = func(tb testing.TB) (a, b linktest.End) {
			cfg := cfg
			cfg.Port = testPort(tb)
			cfg.Addrs = []netip.Addr{x, y}
			l := open(tb, cfg)
			return linktest.End{Link: l, Addr: x}, linktest.End{Link: l, Addr: y}
		}
		suite.Marks = !cfg.Portable || marks
		linktest.Run(t, suite)
	})
}

func TestConformance(t *testing.T) {
	conform(t, udp.Config{}, runtime.GOOS == "linux", runtime.GOOS != "linux", lo1, lo2)
}

func TestConformanceWithoutOffload(t *testing.T) {
	conform(t, udp.Config{NoOffload: true}, runtime.GOOS == "linux", runtime.GOOS != "linux", lo1, lo2)
}

func TestConformancePortable(t *testing.T) {
	conform(t, udp.Config{Portable: true}, false, false, lo1, lo2)
}
