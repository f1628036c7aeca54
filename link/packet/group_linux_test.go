package packet_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/packet"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/wire/ether"
)

func packetConfig(addrs ...netip.Addr) packet.Config {
	return packet.Config{Interface: "v1", Addrs: addrs}
}

// macOf is the address of an interface of b.
func macOf(t testing.TB, c cable, dev string) string {
	t.Helper()
	out, err := c.b.Output("cat", "/sys/class/net/"+dev+"/address")
	if err == nil && strings.Contains(out, ":") {
		return strings.TrimSpace(out)
	}
	// /sys is that of the namespace in which it was mounted.
	out, err = c.b.Output("ip", "-o", "link", "show", "dev", dev)
	_, rest, ok := strings.Cut(out, "link/ether ")
	if err != nil || !ok {
		t.Fatalf("%v %s", err, out)
	}
	return strings.Fields(rest)[0]
}

// joined reports whether the host tells others that an interface is in a group.
func joined(t testing.TB, s *netns.Space, dev, group string) bool {
	t.Helper()
	out, err := s.Output("ip", "maddr", "show", "dev", dev)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) > 1 && f[1] == group {
			return true
		}
	}
	return false
}

// Groups of both families: the MAC addresses of RFC 1112 and RFC 2464, frames
// for who has joined and nobody else, the sender's own copy, leaving.
func TestGroups(t *testing.T) {
	c := newCable(t, 1500)
	a, b := c.open(t, 0, false)
	for _, x := range []struct{ src, local, group, mac string }{
		{"10.9.0.1", "10.9.0.2", "239.129.2.3", "01:00:5e:01:02:03"},
		{"2001:db8:9::1", "2001:db8:9::2", "ff15::1:2:3", "33:33:00:02:00:03"},
	} {
		src, local, group := netip.MustParseAddr(x.src), netip.MustParseAddr(x.local), netip.MustParseAddr(x.group)
		ga, gb := a.(link.Grouper), b.(link.Grouper)
		if _, err := a.Path(src, group, 0xC000); err != nil {
			t.Fatal(err)
		}
		none := func(l link.Link, why string) {
			t.Helper()
			if n, err := l.Recv(0, make([]frame.Rx, 4)); n != 0 || err != nil {
				t.Errorf("%s: %d frames, %v", why, n, err)
			}
		}
		// A veth hands a frame over within the call: what has not come does not come.
		commit(t, a, src, group)
		none(b, "nobody has joined")
		for range 2 {
			if err := gb.Join(local, group); err != nil {
				t.Fatal(err)
			}
		}
		for _, what := range []string{x.mac, x.group} {
			if !joined(t, c.b, "v1", what) {
				t.Errorf("the host is not in %s", what)
			}
		}
		commit(t, a, src, group)
		rx := make([]frame.Rx, 2)
		if n, err := b.Recv(0, rx); n != 1 || err != nil {
			t.Fatalf("%d frames, %v", n, err)
		}
		if f, _ := ether.FrameOf(rx[0].Data); f.Dst().String() != x.mac {
			t.Errorf("sent to %v, want %s", f.Dst(), x.mac)
		}
		b.Release(rx[:1])
		none(a, "the sender has not joined")

		if err := ga.Join(src, group); err != nil {
			t.Fatal(err)
		}
		commit(t, a, src, group)
		count(t, b, 1)
		count(t, a, 1)
		none(a, "one copy is enough")

		for i := range 2 {
			if !joined(t, c.b, "v1", x.group) {
				t.Errorf("left after %d of 2", i)
			}
			if err := gb.Leave(local, group); err != nil {
				t.Error(err)
			}
		}
		if joined(t, c.b, "v1", x.group) || joined(t, c.b, "v1", x.mac) {
			t.Error("the host is still in the group")
		}
		commit(t, a, src, group)
		none(b, "all have left")
		count(t, a, 1)
		if err := ga.Leave(src, group); err != nil {
			t.Error(err)
		}
		if err := ga.Leave(src, group); err == nil || !strings.Contains(err.Error(), "was not joined") {
			t.Errorf("%v", err)
		}
	}
}

// There can be as many groups as the adapter offers, and what is wrong is said.
func TestManyGroups(t *testing.T) {
	c := newCable(t, 1500)
	_, b := c.open(t, 0, false)
	g := b.(link.Grouper)
	for _, at := range []struct{ local, format string }{{"10.9.0.2", "239.1.0.%d"}, {"2001:db8:9::2", "ff15::%x"}} {
		local := netip.MustParseAddr(at.local)
		group := func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf(at.format, i)) }
		var errs []error
		c.b.Do(func() { // Join opens sockets now and then
			for i := range 128 {
				errs = append(errs, g.Join(local, group(i)))
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		out, err := c.b.Output("ip", "maddr", "show", "dev", "v1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 128 {
			if !strings.Contains(out, " "+group(i).String()+"\n") {
				t.Fatalf("not in %v", group(i))
			}
			if err := g.Leave(local, group(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, x := range []struct{ local, group, want string }{
		{"10.9.0.9", "239.1.2.3", "10.9.0.9 is no address of this link"},
		{"10.9.0.2", "ff15::1", "not a multicast group of that family"},
		{"10.9.0.2", "10.9.0.1", "not a multicast group of that family"},
	} {
		if err := g.Join(netip.MustParseAddr(x.local), netip.MustParseAddr(x.group)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}
