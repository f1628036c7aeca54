package udp_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
)

var (
	group4  = addr("239.1.2.3")
	group6  = addr("ff15::4791")
	local6  = addr("ff12::4791")
	another = addr("239.1.2.4")
)

// cast sends one run of three segments to a group.
func cast(t *testing.T, l link.Link, from, to netip.Addr, tag byte) {
	t.Helper()
	p, err := l.Path(from, to, 0xC000)
	if err != nil {
		t.Fatal(err)
	}
	var tx [1]frame.Run
	if l.Reserve(tx[:]) != 1 {
		t.Fatal("nothing reserved")
	}
	r := &tx[0]
	r.Src, r.Dst, r.SrcPort, r.TTL = from, to, p.SrcPort, 64
	r.N, r.Seg, r.Segs = 250, 100, 3
	for i := range r.Buf[:r.N] {
		r.Buf[i] = tag
	}
	if err := l.Commit(0, tx[:]); err != nil {
		t.Fatal(err)
	}
}

// heard returns how many bytes of a tag have come for a group. It waits long for
// those that are wanted, and a moment for others.
func heard(t *testing.T, l link.Link, from, to netip.Addr, tag byte, want int) (n int) {
	t.Helper()
	c := clock.NewReal()
	rx := make([]frame.Rx, 8)
	wait := 50 * time.Millisecond
	if want > 0 {
		wait = time.Minute
	}
	for until := c.Now().Add(wait); n < max(want, 1) && c.Now() < until; {
		k, err := l.Recv(c.Now(), rx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rx[:k] {
			if f.Src != from || f.Dst != to || bytes.Count(f.Data, []byte{tag}) != len(f.Data) || f.TTL != 64 {
				t.Errorf("%d bytes of %v to %v, TTL %d", len(f.Data), f.Src, f.Dst, f.TTL)
			}
			n += len(f.Data)
		}
		if k > 0 {
			l.Release(rx[:k])
		} else if err := l.Wait(c.Now(), until); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A group reaches every link that has joined it, its sender included, and no
// other; and each as long as it has joins left.
func TestGroups(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 up", "ip link set v1 up",
		"ip addr add 10.9.0.1/24 dev v0", "ip addr add 10.9.0.2/24 dev v0",
		"ip addr add 2001:db8::1/64 dev v0 nodad", "ip addr add 2001:db8::2/64 dev v0 nodad") {
		return
	}
	for name, c := range map[string]struct{ a, b, group, other netip.Addr }{
		"loopback":              {lo1, lo2, group4, another},
		"IPv4":                  {addr("10.9.0.1"), addr("10.9.0.2"), group4, another},
		"IPv6":                  {addr("2001:db8::1"), addr("2001:db8::2"), group6, local6},
		"IPv6 of the interface": {addr("2001:db8::1"), addr("2001:db8::2"), local6, group6},
	} {
		t.Run(name, func(t *testing.T) {
			port := testPort(t)
			a := open(t, udp.Config{Addrs: []netip.Addr{c.a}, Port: port})
			members := []link.Link{a, open(t, udp.Config{Addrs: []netip.Addr{c.b}, Port: port})}
			at := func(i int) netip.Addr { return []netip.Addr{c.a, c.b}[i] }
			want := func(tag byte, n ...int) {
				t.Helper()
				cast(t, a, c.a, c.group, tag)
				for i, l := range members {
					if got := heard(t, l, c.a, c.group, tag, n[i]); got != n[i] {
						t.Errorf("member %d heard %d bytes of tag %d, want %d", i, got, tag, n[i])
					}
				}
			}
			want(1, 0, 0)
			for i, l := range members {
				for range 2 {
					if err := l.(link.Grouper).Join(at(i), c.group); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.(link.Grouper).Join(at(i), c.other); err != nil {
					t.Fatal(err)
				}
			}
			want(2, 250, 250)
			leave := func(i int) {
				t.Helper()
				if err := members[i].(link.Grouper).Leave(at(i), c.group); err != nil {
					t.Error(err)
				}
			}
			leave(0)
			want(3, 250, 250)
			leave(0)
			want(4, 0, 250)
			if err := a.(link.Grouper).Leave(c.a, c.group); err == nil {
				t.Error("left once more than joined")
			}
			for _, bad := range []netip.Addr{c.a, addr("10.0.0.1"), {}} {
				if err := a.(link.Grouper).Join(c.a, bad); err == nil {
					t.Errorf("joined %v", bad)
				}
			}
			if err := a.(link.Grouper).Join(addr("127.0.0.9"), c.group); err == nil {
				t.Error("joined at a foreign address")
			}
		})
	}
}

// A link with several addresses on one interface joins at each of them and stays
// a member until it has left at the last; a message comes once.
func TestGroupAtSeveralAddresses(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 up", "ip link set v1 up",
		"ip addr add 10.9.0.1/24 dev v0", "ip addr add 10.9.0.2/24 dev v0",
		"ip addr add 2001:db8::1/64 dev v0 nodad", "ip addr add 2001:db8::2/64 dev v0 nodad") {
		return
	}
	for name, c := range map[string]struct {
		group netip.Addr
		at    []netip.Addr
	}{
		"loopback": {group4, []netip.Addr{lo1, lo2}},
		"IPv4":     {group4, []netip.Addr{addr("10.9.0.1"), addr("10.9.0.2")}},
		"IPv6":     {group6, []netip.Addr{addr("2001:db8::1"), addr("2001:db8::2")}},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, udp.Config{Addrs: c.at, Port: testPort(t)})
			want := func(tag byte, n int) {
				t.Helper()
				cast(t, l, c.at[0], c.group, tag)
				if got := heard(t, l, c.at[0], c.group, tag, n); got != n {
					t.Errorf("heard %d bytes of tag %d, want %d", got, tag, n)
				}
			}
			for round := range byte(2) { // leaving has left nothing behind
				for _, a := range c.at {
					if err := l.(link.Grouper).Join(a, c.group); err != nil {
						t.Fatal(err)
					}
				}
				want(3*round, 250)
				for i, a := range c.at {
					if err := l.(link.Grouper).Leave(a, c.group); err != nil {
						t.Fatal(err)
					}
					want(3*round+1+byte(i), 250*(1-i))
				}
			}
		})
	}
}
