package packet_test

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/packet"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// put fills a run with one packet from one address to another.
func put(r *frame.Run, src, dst netip.Addr) {
	e := roce.Envelope{Kind: roce.V2IPv4, Src: ib.GIDFromAddr(src), Dst: ib.GIDFromAddr(dst), TTL: 64, SrcPort: 0xC000, DstPort: roce.Port, DF: true}
	if src.Is6() {
		e.Kind = roce.V2IPv6
	}
	p := roce.NewCNP(5)
	r.Src, r.Dst = src, dst
	r.N = e.Encode(r.Buf, &p)
	r.Seg, r.Segs = r.N, 1
}

// sendOne sends one packet and returns what arrives, which is lent.
func sendOne(t testing.TB, a, b link.Link, src, dst netip.Addr, tx []frame.Run, rx []frame.Rx) []byte {
	if a.Reserve(tx) != 1 {
		t.Fatal("nothing lent")
	}
	put(&tx[0], src, dst)
	if err := a.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := b.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return rx[0].Data
		}
		if err := b.Wait(0, clock.Never); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	a, b := c.open(t, 0, false)
	if _, err := a.Path(addrA, addrB, 0xC000); err != nil {
		t.Fatal(err)
	}
	tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
	if n := testing.AllocsPerRun(200, func() {
		sendOne(t, a, b, addrA, addrB, tx, rx)
		b.Release(rx)
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// The host learns that a neighbour has another address now; so does the link,
// without being asked.
func TestNeighbourMoves(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	a, b := c.open(t, 0, false)
	if _, err := a.Path(addrA, addrB, 0xC000); err != nil {
		t.Fatal(err)
	}
	const moved = "02:00:00:00:00:77"
	c.b.Run("ip link set v1 address " + moved)
	c.a.Run("ip neigh replace 10.9.0.2 dev v0 lladdr " + moved + " nud permanent")
	tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
	// The news come in their own time: frames to the old address vanish.
	for range 1000 {
		if a.Reserve(tx) != 1 {
			t.Fatal("nothing lent")
		}
		put(&tx[0], addrA, addrB)
		if err := a.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		if n, _ := b.Recv(0, rx); n == 1 {
			if f, _ := ether.FrameOf(rx[0].Data); f.Dst().String() != moved {
				t.Errorf("sent to %v", f.Dst())
			}
			b.Release(rx)
			return
		}
		_ = b.Wait(0, clock.Time(1e6))
	}
	t.Error("nothing arrives at the new address")
}

// unreachable is how many ICMP messages of that kind a host has sent and heard,
// of both families.
func unreachable(t testing.TB, s *netns.Space) (sent, heard int) {
	t.Helper()
	out, err := s.Output("cat", "/proc/thread-self/net/snmp", "/proc/thread-self/net/snmp6")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	seen := 0
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		switch {
		case len(f) == 0:
		case f[0] == "Icmp:" && names == nil:
			names = f
		case f[0] == "Icmp:":
			for i, name := range names {
				n, _ := strconv.Atoi(f[i])
				switch name {
				case "OutDestUnreachs":
					sent, seen = sent+n, seen+1
				case "InDestUnreachs":
					heard, seen = heard+n, seen+1
				}
			}
		case f[0] == "Icmp6OutDestUnreachs" || f[0] == "Icmp6InDestUnreachs":
			n, _ := strconv.Atoi(f[1])
			if seen++; f[0] == "Icmp6OutDestUnreachs" {
				sent += n
			} else {
				heard += n
			}
		}
	}
	if seen != 4 {
		t.Fatalf("%d of 4 counters in\n%s", seen, out)
	}
	return sent, heard
}

// The kernel does not answer for the port, and says nothing by ICMP, while a link
// has it; without one it does, which shows that this test would see it.
func TestKernelKeepsQuiet(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	// The kernel limits how many such messages it sends.
	c.b.Run("sysctl -qw net.ipv4.icmp_ratelimit=0", "sysctl -qw net.ipv6.icmp.ratelimit=0")
	a, b := c.open(t, 0, false)
	ways := [][2]netip.Addr{{addrA, addrB}, {addrA6, addrB6}}
	tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
	for _, w := range ways {
		if _, err := a.Path(w[0], w[1], 0xC000); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			sendOne(t, a, b, w[0], w[1], tx, rx)
			b.Release(rx)
		}
	}
	if sent, _ := unreachable(t, c.b); sent != 0 {
		t.Errorf("%d ICMP messages from a host whose port is held", sent)
	}
	if _, heard := unreachable(t, c.a); heard != 0 {
		t.Errorf("the peer has heard %d ICMP messages", heard)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// Over IPv6 a kernel that nobody has asked takes checksum 0 for damage, and is
	// quiet for that reason.
	commit(t, a, addrA, addrB)
	for end := time.Now().Add(deadline); ; {
		sent, _ := unreachable(t, c.b)
		_, heard := unreachable(t, c.a)
		if sent == 1 && heard == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d sent and %d heard when nobody holds the port", sent, heard)
		}
	}
}

// What Path refuses it refuses with the reason, and Open too.
func TestRefusals(t *testing.T) {
	c := newCable(t, 1500)
	c.a.Run("ip addr add 10.9.0.3/24 dev v0", "ip route add 10.7.0.0/24 via 10.9.0.2", "ip route add 10.6.0.0/24 via 10.9.0.2 mtu 1200")
	c.meet(t)
	a, _ := c.open(t, 0, false)
	for _, x := range []struct {
		src, dst string
		port     uint16
		want     string
	}{
		{"10.9.0.9", "10.9.0.2", 1, "is no address of this link"},
		{"10.9.0.1", "2001:db8:9::2", 1, "not of one address family"},
		{"10.9.0.1", "10.9.0.3", 1, "an address of this host"},
		{"10.9.0.1", "192.0.2.1", 1, "no route to 192.0.2.1 over v0"},
		{"10.9.0.1", "10.7.0.1", 0, "behind the router 10.9.0.2, and RoCE v1 crosses none"},
	} {
		_, err := a.Path(netip.MustParseAddr(x.src), netip.MustParseAddr(x.dst), x.port)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s to %s: %v, want %q", x.src, x.dst, err, x.want)
		}
	}
	if p, err := a.Path(addrA, netip.MustParseAddr("10.6.0.1"), 1); err != nil || p.MTU != 1200+ether.HeaderLen {
		t.Errorf("a route with an MTU of 1200: %+v, %v", p, err)
	}
	open := func(cfg packet.Config) (err error) {
		c.a.Do(func() {
			var l link.Link
			if l, err = packet.Open(cfg); err == nil {
				_ = l.Close()
			}
		})
		return err
	}
	for want, cfg := range map[string]packet.Config{
		"no interface given":       {Addrs: []netip.Addr{addrA}},
		"no address given":         {Interface: "v0"},
		"named twice":              {Interface: "v0", Addrs: []netip.Addr{addrA, addrA}},
		"VLAN 4095, can be":        {Interface: "v0", Addrs: []netip.Addr{addrA}, VLAN: 4095},
		"open packet link on none": {Interface: "none", Addrs: []netip.Addr{addrA}},
	} {
		if err := open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := open(packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA}}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("an address that has a link: %v", err)
	}
	if err := open(packet.Config{Interface: "v0", Addrs: []netip.Addr{addrB}}); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("an address of another host: %v", err)
	}
}
