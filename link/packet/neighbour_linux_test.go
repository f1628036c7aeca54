package packet_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// deadline is when a test gives up.
const deadline = time.Minute

// commit sends one packet.
func commit(t testing.TB, l link.Link, src, dst netip.Addr) {
	t.Helper()
	tx := make([]frame.Run, 1)
	if l.Reserve(tx) != 1 {
		t.Fatal("nothing lent")
	}
	put(&tx[0], src, dst)
	if err := l.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
}

// count receives until n frames have come, and no longer than the deadline.
func count(t testing.TB, l link.Link, n int) {
	t.Helper()
	rx := make([]frame.Rx, 16)
	for end := time.Now().Add(deadline); n > 0; {
		got, err := l.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		n -= got
		l.Release(rx[:got])
		if got == 0 {
			if time.Now().After(end) {
				t.Fatalf("%d frames are missing", n)
			}
			_ = l.Wait(0, clock.Time(10*time.Millisecond))
		}
	}
	if n < 0 {
		t.Errorf("%d frames too many", -n)
	}
}

// While a neighbour does not answer, a path to it can be had, its frames are
// held, others pass; when the host knows it, what is held leaves.
func TestNobodyWaitsForANeighbour(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	a, b := c.open(t, 0, false)
	quiet, quiet6 := netip.MustParseAddr("10.9.0.77"), netip.MustParseAddr("2001:db8:9::77")
	c.b.Run("ip addr add 10.9.0.77/32 dev lo", "ip addr add 2001:db8:9::77/128 dev lo nodad", "sysctl -qw net.ipv4.conf.all.arp_ignore=1")
	third := open(t, c.b, packetConfig(quiet, quiet6))
	for _, x := range []struct {
		src, dst, other netip.Addr
	}{{addrA, quiet, addrB}, {addrA6, quiet6, addrB6}} {
		for _, dst := range []netip.Addr{x.dst, x.other} {
			if _, err := a.Path(x.src, dst, 0xC000); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			commit(t, a, x.src, x.dst)
		}
		commit(t, a, x.src, x.other)
		count(t, b, 1)
		if n := a.Counters().TxUnresolved; n != 0 {
			t.Errorf("%d frames lost at once", n)
		}
		c.a.Run("ip neigh replace " + x.dst.String() + " dev v0 lladdr " + macOf(t, c, "v1") + " nud permanent")
		count(t, third, 5)
		commit(t, a, x.src, x.dst)
		count(t, third, 1)
	}
}

// What waits is bounded, and dropped under its own name when the host gives up;
// that is told once. Whoever sends again has the host ask again.
func TestNeighbourThatNeverAnswers(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	c.a.Run("sysctl -qw net.ipv4.neigh.v0.mcast_solicit=1", "sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=50")
	a, b := c.open(t, 0, false)
	nobody := netip.MustParseAddr("10.9.0.78")
	if _, err := a.Path(addrA, nobody, 0xC000); err != nil {
		t.Fatal(err)
	}
	const sent = 10000 // more than may wait
	for range sent {
		commit(t, a, addrA, nobody)
	}
	n := a.Counters().TxUnresolved
	e, early := a.Event() // on a slow machine the host gives up while frames are being sent
	if n == 0 || n == sent && !early {
		t.Errorf("%d of %d lost at once", n, sent)
	}
	for end := time.Now().Add(deadline); !early; {
		if e, early = a.Event(); early {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody says that it does not answer")
		}
		_ = a.Wait(0, clock.Time(10*time.Millisecond))
	}
	if e.Kind != link.EventNoNeighbour || e.Src != addrA || e.Dst != nobody || !errors.Is(e.Err, unix.EHOSTUNREACH) ||
		!strings.Contains(e.String(), "neighbour does not answer: 10.9.0.1 to 10.9.0.78: the neighbour 10.9.0.78 on v0") {
		t.Errorf("%v", e)
	}
	// Nothing waits for ever, whenever it was sent.
	for end := time.Now().Add(deadline); a.Counters().TxUnresolved != sent; {
		if time.Now().After(end) {
			t.Fatalf("%d of %d lost in the end", a.Counters().TxUnresolved, sent)
		}
		_, _ = a.Event()
		_ = a.Wait(0, clock.Time(10*time.Millisecond))
	}
	// It comes up late.
	c.b.Run("ip addr add 10.9.0.78/24 dev v1")
	late := open(t, c.b, packetConfig(nobody))
	rx := make([]frame.Rx, 1)
	for end := time.Now().Add(deadline); ; {
		commit(t, a, addrA, nobody)
		n, err := late.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing arrives")
		}
		_ = late.Wait(0, clock.Time(10*time.Millisecond))
	}
	if e, ok := a.Event(); ok {
		t.Errorf("told twice: %v", e)
	}
	_ = b
}
