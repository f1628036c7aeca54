package udp_test

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
)

func TestAddressNotOfThisHost(t *testing.T) {
	for _, portable := range []bool{false, true} {
		_, err := udp.Open(udp.Config{Addrs: []netip.Addr{lo1, netip.MustParseAddr("203.0.113.7")}, Port: testPort(t), Portable: portable})
		if err == nil || runtime.GOOS == "linux" && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("error %v", err)
			continue
		}
		for _, w := range []string{"203.0.113.7", "127.0.0.1"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: does not name %s", err, w)
			}
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		addrs []string
		want  string
	}{
		"none":         {nil, "no address"},
		"wildcard":     {[]string{"0.0.0.0"}, "not the address of one interface"},
		"wildcard 6":   {[]string{"::"}, "not the address of one interface"},
		"multicast":    {[]string{"239.1.1.1"}, "not the address of one interface"},
		"twice":        {[]string{"127.0.0.1", "::ffff:127.0.0.1"}, "named twice"},
		"link-local":   {[]string{"fe80::1"}, "zone"},
		"unknown zone": {[]string{"fe80::1%nosuchdev0"}, "nosuchdev0"},
	} {
		var addrs []netip.Addr
		for _, a := range c.addrs {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		if _, err := udp.Open(udp.Config{Addrs: addrs, Port: testPort(t)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want … %q …", name, err, c.want)
		}
	}
	if _, err := udp.Open(udp.Config{Addrs: []netip.Addr{{}}}); err == nil {
		t.Error("zero address: no error")
	}
}

// What fails opens nothing: the good address is free again.
func TestFailedOpenLeavesNothing(t *testing.T) {
	port := testPort(t)
	for range 3 {
		if _, err := udp.Open(udp.Config{Addrs: []netip.Addr{lo1, netip.MustParseAddr("203.0.113.7")}, Port: port}); err == nil {
			t.Fatal("no error")
		}
	}
	open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: port})
}

func TestPathErrorsNameBothEnds(t *testing.T) {
	for _, portable := range []bool{false, true} {
		l := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: testPort(t), Portable: portable})
		for _, c := range []struct{ src, dst string }{
			{"127.0.0.9", "127.0.0.2"}, {"127.0.0.1", "2001:db8::1"}, {"2001:db8::2", "2001:db8::1"},
		} {
			_, err := l.Path(netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst), 0xC000)
			if err == nil || !strings.Contains(err.Error(), c.src) || !strings.Contains(err.Error(), c.dst) {
				t.Errorf("%s to %s: %v", c.src, c.dst, err)
			}
		}
		if _, err := l.Path(lo1, netip.Addr{}, 0xC000); err == nil {
			t.Error("no destination: no error")
		}
		_ = l.Close()
		if _, err := l.Path(lo1, lo2, 0xC000); !errors.Is(err, link.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// A wish for a source port is granted where it can be, gets the next port
// where that is taken, and shares one when there are many; always the same one.
func TestSourcePorts(t *testing.T) {
	for _, portable := range []bool{false, true} {
		// Each in a subtest: its links are closed before the next one asks.
		t.Run(fmt.Sprintf("portable=%v", portable), func(t *testing.T) { testSourcePorts(t, portable) })
	}
}

func testSourcePorts(t *testing.T, portable bool) {
	port := testPort(t)
	a := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: port, Portable: portable})
	b := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: testPort(t), Portable: portable})
	ask := func(l link.Link, want uint16) uint16 {
		p, err := l.Path(lo1, lo2, want)
		if err != nil {
			t.Fatal(err)
		}
		return p.SrcPort
	}
	// Some program of this host may have a port; it has not all of these.
	want := uint16(0)
	for w := uint16(0xD234); w < 0xD234+8*64; w += 64 {
		if ask(a, w) == w {
			want = w
			break
		}
	}
	if want == 0 {
		t.Fatal("none of eight wishes is granted")
	}
	if got := ask(b, want); got == want || got < want || got > want+32 {
		t.Errorf("a taken port gives %d", got)
	}
	if got := ask(a, port); got != port {
		t.Errorf("the link's own port gives %d", got)
	}
	seen := map[uint16]bool{}
	first := map[uint16]uint16{}
	for w := uint16(0xE000); w < 0xE100; w++ {
		first[w] = ask(a, w)
		seen[first[w]] = true
	}
	if len(seen) > 16 || len(seen) < 8 {
		t.Errorf("%d source ports for 256 wishes", len(seen))
	}
	for w, p := range first {
		if got := ask(a, w); got != p {
			t.Errorf("wish %d: %d, then %d", w, p, got)
		}
	}
	if p := ask(b, 0xFFFF); p < 0xC000 {
		t.Errorf("0xFFFF gives %#x", p)
	}
}

// A port under the ICRC cannot be changed: a run that names one which Path did
// not give is dropped.
func TestUnknownSourcePort(t *testing.T) {
	for _, portable := range []bool{false, true} {
		l := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: testPort(t), Portable: portable})
		tx := make([]frame.Run, 1)
		l.Reserve(tx)
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.N, r.Seg, r.Segs = lo1, lo2, 0xC777, 64, 64, 1
		if err := l.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		if c := l.Counters(); c.TxNoPort != 1 {
			t.Errorf("counters %+v", c)
		}
	}
}

// The smallest buffers that the system gives lose packets under a flood, and
// nothing else.
func TestTinyBuffers(t *testing.T) {
	a, b, port := ends(t, udp.Config{RecvBuffer: 1, SendBuffer: 1})
	tx, rx := make([]frame.Run, 8), make([]frame.Rx, 8)
	for range 200 {
		n := a.Reserve(tx)
		for i := range tx[:n] {
			r := &tx[i]
			r.Src, r.Dst, r.SrcPort, r.Seg, r.Segs = lo1, lo2, port, 1084, min(16, a.Caps().Segments)
			r.N = r.Seg * r.Segs
		}
		if err := a.Commit(0, tx[:n]); err != nil {
			t.Fatal(err)
		}
	}
	drain(t, b, rx)
	for range 20 {
		sendOne(a, tx[:1], lo1, lo2, port, 64)
		for got := 0; got == 0; {
			if err := b.Wait(0, clock.Never); err != nil {
				t.Fatal(err)
			}
			got += drain(t, b, rx)
		}
	}
}

// drain receives what is there and returns how many pieces.
func drain(t testing.TB, l link.Link, rx []frame.Rx) int {
	t.Helper()
	total := 0
	for {
		n, err := l.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return total
		}
		l.Release(rx[:n])
		total += n
	}
}

func TestReceiveBufferIsAsAsked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what it gave")
	}
	l := open(t, udp.Config{Addrs: []netip.Addr{lo1}, Port: testPort(t), RecvBuffer: 212992})
	if got := l.Caps().RxBytes; got < 184000 || got > 200<<10 {
		t.Errorf("RxBytes = %d for a receive buffer of 212,992", got)
	}
}
