package udp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
)

func openShards(t testing.TB, cfg udp.Config, n int) []link.Link {
	t.Helper()
	ls, err := udp.OpenShards(cfg, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range ls {
			_ = l.Close()
		}
	})
	return ls
}

// stranger is a plain socket that sends what a foreign peer may.
type stranger struct {
	fd int
	to unix.Sockaddr
}

func newStranger(t testing.TB, to netip.Addr, port uint16) *stranger {
	t.Helper()
	family, sa := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(port), Addr: to.As16()})
	if to.Is4() {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: to.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &stranger{fd, sa}
}

// send sends data in one call, cut by the kernel into segments of seg bytes if
// that is not 0.
func (s *stranger) send(t testing.TB, data []byte, seg int) {
	t.Helper()
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, seg); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(s.fd, data, 0, s.to); err != nil {
		t.Fatal(err)
	}
}

// packet returns n bytes that begin as the BTH of a packet for qpn.
func packet(qpn uint32, tag byte, n int) []byte {
	b := bytes.Repeat([]byte{tag}, n)
	if n >= 8 {
		binary.BigEndian.PutUint32(b[4:], 0x55<<24|qpn) // the reserved byte means nothing
	}
	return b
}

// gather receives from all links until there are n packets, and returns those
// of each, in order.
func gather(t testing.TB, ls []link.Link, n int) [][][]byte {
	t.Helper()
	c := clock.NewReal()
	got := make([][][]byte, len(ls))
	rx := make([]frame.Rx, 4)
	for until := c.Now().Add(2 * time.Minute); n > 0 && c.Now() < until; {
		for i, l := range ls {
			k, err := l.Recv(c.Now(), rx)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range rx[:k] {
				seg := f.Seg
				if seg == 0 {
					seg = max(len(f.Data), 1)
				}
				for b := f.Data; len(b) > 0; b = b[min(seg, len(b)):] {
					got[i] = append(got[i], bytes.Clone(b[:min(seg, len(b))]))
					n--
				}
			}
			if k > 0 {
				l.Release(rx[:k])
			}
		}
	}
	if n != 0 {
		t.Fatalf("%d packets are missing", n)
	}
	return got
}

// A packet comes to the link that its queue pair belongs to; the numbers with a
// meaning of their own, and what is too short to have one, to the first.
func TestPacketsAreSteered(t *testing.T) {
	for _, at := range []netip.Addr{addr("127.0.6.1"), addr("::1")} {
		for _, n := range []int{2, 3, 4, 7, udp.MaxShards} {
			t.Run(fmt.Sprintf("%v %d", at, n), func(t *testing.T) {
				port := testPort(t)
				ls := openShards(t, udp.Config{Addrs: []netip.Addr{at}, Port: port}, n)
				s := newStranger(t, at, port)
				want := make([]int, n)
				qpns := []uint32{0, 1, 0xFFFFFF, 2, 3, 0xFFFFFE, 0x800000}
				for i := range uint32(100) {
					qpns = append(qpns, 0x1234+i*7)
				}
				for _, q := range qpns {
					s.send(t, packet(q, 1, 64), 0)
					if q <= 1 || q == 0xFFFFFF {
						want[0]++
					} else {
						want[int(q)%n]++
					}
				}
				s.send(t, packet(0, 1, 5), 0)
				want[0]++
				for i, ps := range gather(t, ls, len(qpns)+1) {
					if len(ps) != want[i] {
						t.Errorf("link %d got %d packets, want %d", i, len(ps), want[i])
					}
					if c := ls[i].Counters(); c.RxMisdirected != 0 || c.RxDropped != 0 {
						t.Errorf("link %d: %+v", i, c)
					}
				}
			})
		}
	}
}

// By addresses alone, one sender's packets come to one socket whatever its ports
// and queue pairs are; by ports too, they spread. Either way each packet gets to
// its link.
func TestSteeringAsNetworkCardsDo(t *testing.T) {
	const shards, senders = 4, 32
	for _, at := range []netip.Addr{addr("127.0.6.1"), addr("::1")} {
		for how, want := range map[udp.Steering]func(used int) bool{
			udp.SteerAddresses: func(used int) bool { return used == 1 },
			udp.SteerPorts:     func(used int) bool { return used > 1 },
		} {
			t.Run(fmt.Sprintf("%v %v", at, how), func(t *testing.T) {
				port := testPort(t)
				ls := openShards(t, udp.Config{Addrs: []netip.Addr{at}, Port: port, Steering: how}, shards)
				expect := make([]int, shards)
				for i := range uint32(senders) {
					newStranger(t, at, port).send(t, packet(100+i, 1, 64), 0)
					expect[(100+i)%shards]++
				}
				used := 0
				for i, ps := range gather(t, ls, senders) {
					if len(ps) != expect[i] {
						t.Errorf("link %d got %d packets, want %d", i, len(ps), expect[i])
					}
					if ls[i].Counters().RxSocket > 0 {
						used++
					}
				}
				if !want(used) {
					t.Errorf("%d of %d sockets got packets", used, shards)
				}
				if c := counts(ls); c.RxSocket != senders {
					t.Errorf("%d packets came out of the sockets, %d were sent", c.RxSocket, senders)
				}
			})
		}
	}
}

// Pieces that hold packets for several shards, as a sender that mixes or a merge
// on the way make them, are sorted out: every packet comes to its link, in order
// and once, with the length that it had.
func TestMixedPiecesAreSortedOut(t *testing.T) {
	const shards, seg = 3, 120
	at, port := addr("127.0.6.1"), testPort(t)
	ls := openShards(t, udp.Config{Addrs: []netip.Addr{at}, Port: port}, shards)
	s := newStranger(t, at, port)
	for name, qpns := range map[string][]uint32{
		"all for one":        {3, 3, 3, 3},
		"all for another":    {3, 4, 4, 4, 4},
		"by turns":           {10, 11, 12, 10, 11, 12, 10, 11, 12, 10},
		"ours at both ends":  {9, 9, 10, 11, 9, 9},
		"ours in the middle": {10, 9, 9, 11},
		"one":                {11},
	} {
		for _, last := range []int{seg, 40} {
			t.Run(fmt.Sprintf("%s, last %d", name, last), func(t *testing.T) {
				before := counts(ls)
				want := make([][][]byte, shards)
				var data []byte
				misdirected := 0
				for i, q := range qpns {
					p := packet(q, byte(i), seg)
					if i == len(qpns)-1 {
						p = p[:last]
					}
					data = append(data, p...)
					to := int(q) % shards
					want[to] = append(want[to], p)
					if to != int(qpns[0])%shards {
						misdirected++
					}
				}
				s.send(t, data, seg)
				got := gather(t, ls, len(qpns))
				for i := range ls {
					if !equalPackets(got[i], want[i]) {
						t.Errorf("link %d got %d packets, want %d, or they differ", i, len(got[i]), len(want[i]))
					}
				}
				after := counts(ls)
				if n := after.RxMisdirected - before.RxMisdirected; n != uint64(misdirected) {
					t.Errorf("%d packets were misdirected, %d were counted", misdirected, n)
				}
				if after.RxDropped != before.RxDropped {
					t.Errorf("%d packets were dropped", after.RxDropped-before.RxDropped)
				}
			})
		}
	}
}

func equalPackets(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func counts(ls []link.Link) (sum link.Counters) {
	for _, l := range ls {
		sum.Add(l.Counters())
	}
	return sum
}

// Whoever waits is woken by what another shard hands over; buffers go round; and
// what nobody fetches is dropped and counted.
func TestHandOverWakesAndIsBounded(t *testing.T) {
	at, port := addr("127.0.6.1"), testPort(t)
	ls := openShards(t, udp.Config{Addrs: []netip.Addr{at}, Port: port}, 2)
	s := newStranger(t, at, port)
	c := clock.NewReal()
	mixed := append(packet(2, 1, 100), packet(3, 2, 100)...)
	rx := make([]frame.Rx, 8)
	recv := func(l link.Link) (n int) {
		k, err := l.Recv(c.Now(), rx)
		if err != nil {
			t.Error(err)
		}
		for _, f := range rx[:k] {
			n += max(len(f.Data)/100, 1)
		}
		if k > 0 {
			l.Release(rx[:k])
		}
		return n
	}
	turn := func() {
		s.send(t, mixed, 100)
		for recv(ls[0]) == 0 {
		}
		for recv(ls[1]) == 0 {
		}
	}
	woken := make(chan error, 1)
	go func() { woken <- ls[1].Wait(c.Now(), clock.Never) }()
	s.send(t, mixed, 100)
	for recv(ls[0]) == 0 {
	}
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	for recv(ls[1]) == 0 {
	}
	for range 100 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n >= 1 {
		t.Errorf("%v allocations a hand-over", n)
	}
	const many = 1000
	for range many {
		s.send(t, mixed, 100)
		for recv(ls[0]) == 0 {
		}
	}
	got := 0
	for n := recv(ls[1]); n > 0; n = recv(ls[1]) {
		got += n
	}
	if d := counts(ls).RxDropped; got == 0 || uint64(got)+d != many {
		t.Errorf("%d packets came and %d were dropped, of %d", got, d, many)
	}
	if err := ls[1].Close(); err != nil {
		t.Fatal(err)
	}
	s.send(t, mixed, 100) // for one that is gone: lost, and nothing else
	for recv(ls[0]) == 0 {
	}
}

// Source ports belong to all links of a set.
func TestShardsShareSourcePorts(t *testing.T) {
	a, b, port := addr("127.0.6.1"), addr("127.0.6.2"), testPort(t)
	ls := openShards(t, udp.Config{Addrs: []netip.Addr{a}, Port: port}, 3)
	peer := open(t, udp.Config{Addrs: []netip.Addr{b}, Port: port})
	p, err := ls[1].Path(a, b, 0xC321)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range ls {
		if q, err := l.Path(a, b, 0xC321); err != nil || q.SrcPort != p.SrcPort {
			t.Errorf("link %d: port %d, %v; want %d", i, q.SrcPort, err, p.SrcPort)
		}
		var tx [1]frame.Run
		if l.Reserve(tx[:]) != 1 {
			t.Fatal("nothing reserved")
		}
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.N, r.Seg, r.Segs = a, b, p.SrcPort, copy(r.Buf, packet(5, byte(i), 64)), 64, 1
		if err := l.Commit(0, tx[:]); err != nil {
			t.Fatal(err)
		}
		if c := l.Counters(); c.TxNoPort != 0 {
			t.Errorf("link %d: %+v", i, c)
		}
		if i == 0 {
			if err := l.Close(); err != nil { // the others go on
				t.Fatal(err)
			}
		}
	}
	gather(t, []link.Link{peer}, 3)
}

func TestShardRefusals(t *testing.T) {
	cfg := udp.Config{Addrs: []netip.Addr{addr("127.0.6.1")}, Port: testPort(t)}
	for _, n := range []int{-1, 0, udp.MaxShards + 1} {
		if _, err := udp.OpenShards(cfg, n); err == nil {
			t.Errorf("%d shards", n)
		}
	}
	portable := cfg
	portable.Portable = true
	if _, err := udp.OpenShards(portable, 2); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("portable: %v", err)
	}
	ls := openShards(t, cfg, 2)
	if _, err := udp.OpenShards(cfg, 2); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second set: %v", err)
	}
	if _, err := udp.Open(cfg); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a link beside a set: %v", err)
	}
	for _, l := range ls {
		_ = l.Close()
	}
	for _, l := range openShards(t, cfg, 2) {
		_ = l.Close()
	}
}
