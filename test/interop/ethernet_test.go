//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
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
	"github.com/verbena-rdma/verbena/verbs"
)

// The Ethernet device between namespaces of the kernel's making: veth pairs, its
// routes, its neighbour discovery, and Wireshark's dissectors as the judge of
// every frame.

// wireEnd is one device in a namespace, with a queue pair for each service
// level that a test needs.
type wireEnd struct {
	t    testing.TB
	addr netip.Addr
	dev  *verbs.Device
	pd   *verbs.PD
	mr   *verbs.MR
	tap  *recorder
	// timeoutExp is the local ACK timeout: 19 is 2.1 s, long enough for a neighbour
	// that does not hear the first question.
	timeoutExp uint8
}

// slowPort is the line rate, in bits a second, that the links claim here: it
// decides nothing but how long quanta last.
const slowPort = 1_000_000

// recorder keeps what a link receives, as frames.
type recorder struct {
	link.Link
	frames [][]byte
	merged int // pieces of several frames
}

func (r *recorder) Caps() link.Caps {
	c := r.Link.Caps()
	c.LineRate = slowPort
	return c
}

func (r *recorder) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := r.Link.Recv(now, rx)
	for _, f := range rx[:n] {
		seg := f.Seg
		if seg == 0 {
			seg = len(f.Data)
		} else {
			r.merged++
		}
		for at := 0; at < len(f.Data) && len(r.frames) < 5000; at += seg {
			r.frames = append(r.frames, append([]byte(nil), f.Data[at:min(at+seg, len(f.Data))]...))
		}
	}
	return n, err
}

func openWire(t testing.TB, s *netns.Space, dev string, addr netip.Addr, vlan uint16, tag bool) *wireEnd {
	t.Helper()
	var l link.Link
	var err error
	s.Do(func() {
		l, err = packet.Open(packet.Config{Interface: dev, Addrs: []netip.Addr{addr}, VLAN: vlan, Tag: tag})
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &wireEnd{t: t, addr: addr, tap: &recorder{Link: l}, timeoutExp: 19}
	if e.dev, err = verbs.Open(verbs.Config{Addr: addr, Link: e.tap, Name: dev}); err != nil {
		t.Fatal(errors.Join(err, l.Close()))
	}
	t.Cleanup(func() { _ = e.dev.Close() })
	e.pd = e.dev.AllocPD()
	if e.mr, err = e.pd.RegisterMR(make([]byte, 1<<20), ib.AccessAll); err != nil {
		t.Fatal(err)
	}
	return e
}

// row is the row of the GID table for a RoCE version.
func (e *wireEnd) row(v ib.GIDType) int {
	for _, g := range e.dev.GIDs() {
		if g.Type == v {
			return g.Index
		}
	}
	e.t.Fatalf("no GID of type %v in %v", v, e.dev.GIDs())
	return 0
}

// wireQP is one end of a connection.
type wireQP struct {
	*verbs.QP
	cq *verbs.CQ
}

func (e *wireEnd) qp() wireQP {
	e.t.Helper()
	cq, err := e.dev.CreateCQ(verbs.CQConfig{Depth: 256})
	if err != nil {
		e.t.Fatal(err)
	}
	qp, err := e.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		e.t.Fatal(err)
	}
	if err := qp.ToInit(ib.RemoteAll); err != nil {
		e.t.Fatal(err)
	}
	return wireQP{qp, cq}
}

// toRTS connects a queue pair; retry is how often it tries what is not
// acknowledged.
func (e *wireEnd) toRTS(q wireQP, peer *wireEnd, dest ib.QPN, v ib.GIDType, sl uint8) error {
	p := verbs.Path{
		DestQPN: dest, PSN: 7, LocalPSN: 7, GID: ib.GIDFromAddr(peer.addr), GIDType: v, GIDIndex: e.row(v), SL: sl,
		TimeoutExp: e.timeoutExp, RetryCnt: 7, MTU: ib.MTU1024,
	}
	if err := q.ToRTR(p); err != nil {
		return err
	}
	return q.ToRTS(p)
}

func connectWire(t testing.TB, a, b *wireEnd, v ib.GIDType, sl uint8) (wireQP, wireQP) {
	t.Helper()
	x, y := a.qp(), b.qp()
	if err := a.toRTS(x, b, y.Num(), v, sl); err != nil {
		t.Fatal(err)
	}
	if err := b.toRTS(y, a, x.Num(), v, sl); err != nil {
		t.Fatal(err)
	}
	return x, y
}

// write writes the first n bytes of a's region into b's.
func (e *wireEnd) write(q wireQP, to *wireEnd, n int) {
	e.t.Helper()
	err := q.PostSend(ib.SendWR{
		Op: ib.Write, Flags: ib.Signaled, SGL: e.mr.SGE(0, n), Remote: ib.Remote{Addr: to.mr.Addr(), RKey: to.mr.RKey()},
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

func (q wireQP) await(t testing.TB) ib.WC {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wcs [1]ib.WC
	if _, err := q.cq.Wait(ctx, wcs[:]); err != nil {
		t.Fatal(err)
	}
	return wcs[0]
}

// wireCable is two hosts at one cable.
func wireCable(t testing.TB) (a, b *netns.Space) {
	a, b = netns.New(t), netns.New(t)
	netns.Join(a, "v0", b, "v1")
	a.Run("ip addr add 10.9.0.1/24 dev v0", "ip addr add 2001:db8:9::1/64 dev v0 nodad")
	b.Run("ip addr add 10.9.0.2/24 dev v1", "ip addr add 2001:db8:9::2/64 dev v1 nodad")
	return a, b
}

// One table has both versions of each address. A queue pair whose ends are of
// different versions is refused, with the reason, and is as it was.
func TestEthernetVersionsDiffer(t *testing.T) {
	sa, sb := wireCable(t)
	a := openWire(t, sa, "v0", netip.MustParseAddr("10.9.0.1"), 0, false)
	b := openWire(t, sb, "v1", netip.MustParseAddr("10.9.0.2"), 0, false)
	rows := a.dev.GIDs()
	if len(rows) != 2 || rows[0].Type != ib.GIDTypeRoCEv1 || rows[1].Type != ib.GIDTypeRoCEv2 || rows[0].GID != rows[1].GID ||
		rows[0].GID != ib.GIDFromAddr(a.addr) || rows[0].Index != 0 || rows[1].Index != 1 {
		t.Fatalf("%+v", rows)
	}
	q := a.qp()
	for _, x := range []struct{ ours, theirs ib.GIDType }{{ib.GIDTypeRoCEv2, ib.GIDTypeRoCEv1}, {ib.GIDTypeRoCEv1, ib.GIDTypeRoCEv2}} {
		err := q.ToRTR(verbs.Path{DestQPN: b.qp().Num(), GID: ib.GIDFromAddr(b.addr), GIDType: x.theirs, GIDIndex: a.row(x.ours)})
		if err == nil || !strings.Contains(err.Error(), "the peer's GID is for "+x.theirs.String()) || !strings.Contains(err.Error(), "from INIT to RTR") {
			t.Errorf("%v", err)
		}
		if q.State() != ib.Init {
			t.Errorf("the queue pair is in %v", q.State())
		}
	}
	p := b.qp()
	if err := errors.Join(a.toRTS(q, b, p.Num(), ib.GIDTypeRoCEv1, 0), b.toRTS(p, a, q.Num(), ib.GIDTypeRoCEv1, 0)); err != nil {
		t.Fatal(err)
	}
	a.write(q, b, 100)
	if wc := q.await(t); wc.Status != ib.Success {
		t.Errorf("%+v", wc)
	}
	// One that says v2 all the same is not believed by an end that speaks v1.
	x := a.qp()
	a.timeoutExp = 14
	if err := a.toRTS(x, b, p.Num(), ib.GIDTypeRoCEv2, 0); err != nil {
		t.Fatal(err)
	}
	a.write(x, b, 100)
	if wc := x.await(t); wc.Status != ib.RetryExcErr || b.dev.Stats().Get("drop_roce_version") == 0 {
		t.Errorf("%+v, %d dropped for their version", wc, b.dev.Stats().Get("drop_roce_version"))
	}
}

// RoCEv1 stays on its segment: it is refused when it is asked to leave, and a
// router does not forward its frames. RoCEv2 crosses.
func TestEthernetRouter(t *testing.T) {
	sa, router, sb := netns.New(t), netns.New(t), netns.New(t)
	netns.Join(sa, "v0", router, "r0")
	netns.Join(sb, "v1", router, "r1")
	sa.Run("ip addr add 10.9.1.1/24 dev v0", "ip route add default via 10.9.1.254")
	sb.Run("ip addr add 10.9.2.1/24 dev v1", "ip route add default via 10.9.2.254")
	router.Run("ip addr add 10.9.1.254/24 dev r0", "ip addr add 10.9.2.254/24 dev r1", "sysctl -qw net.ipv4.ip_forward=1")
	a := openWire(t, sa, "v0", netip.MustParseAddr("10.9.1.1"), 0, false)
	b := openWire(t, sb, "v1", netip.MustParseAddr("10.9.2.1"), 0, false)

	p, _ := connectWire(t, a, b, ib.GIDTypeRoCEv2, 0)
	a.write(p, b, 3000)
	if wc := p.await(t); wc.Status != ib.Success {
		t.Fatalf("RoCEv2: %+v", wc)
	}

	q := a.qp()
	err := a.toRTS(q, b, b.qp().Num(), ib.GIDTypeRoCEv1, 0)
	if err == nil || !strings.Contains(err.Error(), "behind the router 10.9.1.254, and RoCE v1 crosses none") {
		t.Errorf("RoCEv1 towards another segment: %v", err)
	}
	// Somebody who believes that the other one is next door sends all the same,
	// and the router answers for it.
	sa.Run("ip route add 10.9.2.0/24 dev v0", "ip neigh add 10.9.2.1 dev v0 lladdr "+macOf(t, router, "r0")+" nud permanent")
	a.timeoutExp = 14
	if err := a.toRTS(q, b, 0x99, ib.GIDTypeRoCEv1, 0); err != nil {
		t.Fatal(err)
	}
	heard := rawSocket(t, sb, "v1")
	before := b.dev.Stats().Get("rcvd_pkts")
	a.write(q, b, 100)
	if wc := q.await(t); wc.Status != ib.RetryExcErr {
		t.Errorf("RoCEv1 through a router: %+v", wc)
	}
	if n := heard(0x8915); n != 0 || b.dev.Stats().Get("rcvd_pkts") != before {
		t.Errorf("%d frames of RoCEv1 came through the router", n)
	}
}

func macOf(t *testing.T, s *netns.Space, dev string) string {
	t.Helper()
	out, err := s.Output("ip", "-o", "link", "show", "dev", dev)
	_, rest, ok := strings.Cut(out, "link/ether ")
	if err != nil || !ok {
		t.Fatalf("%v %s", err, out)
	}
	return strings.Fields(rest)[0]
}

// rawSocket hears everything on an interface; the function counts the frames of
// an EtherType until now.
func rawSocket(t *testing.T, s *netns.Space, dev string) func(typ uint16) int {
	t.Helper()
	var fd int
	var err error
	s.Do(func() {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0x0300)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func(typ uint16) int {
		n := 0
		var b [2048]byte
		for {
			k, _, err := unix.Recvfrom(fd, b[:], 0)
			if err != nil {
				return n
			}
			if k >= 14 && binary.BigEndian.Uint16(b[12:]) == typ {
				n++
			}
		}
	}
}

// PFC stops the queue pairs of its priority and no others; XON lets them go on;
// quanta expire by themselves.
func TestEthernetPFC(t *testing.T) {
	sa, sb := wireCable(t)
	a := openWire(t, sa, "v0", netip.MustParseAddr("10.9.0.1"), 7, true)
	b := openWire(t, sb, "v1", netip.MustParseAddr("10.9.0.2"), 7, true)
	three, _ := connectWire(t, a, b, ib.GIDTypeRoCEv2, 3)
	four, _ := connectWire(t, a, b, ib.GIDTypeRoCEv2, 4)

	// 65,535 quanta of 512 bits are 33.6 s at the rate that slowPort claims: none of
	// what follows takes so long.
	if err := b.dev.SendPFC(1<<3, 0xFFFF); err != nil {
		t.Fatal(err)
	}
	until(t, "priority 3 is paused", func() bool { return a.dev.Paused() == 1<<3 })
	a.write(three, b, 2000)
	for range 20 {
		a.write(four, b, 2000)
		if wc := four.await(t); wc.Status != ib.Success {
			t.Fatalf("priority 4: %+v", wc)
		}
	}
	var wcs [1]ib.WC
	if n := three.cq.Poll(wcs[:]); n != 0 {
		t.Errorf("priority 3 was paused, and %+v", wcs[0])
	}
	if err := b.dev.SendPFC(1<<3, 0); err != nil {
		t.Fatal(err)
	}
	if wc := three.await(t); wc.Status != ib.Success {
		t.Errorf("priority 3 after XON: %+v", wc)
	}
	// Without XON it ends by itself: 200 quanta are 102 ms.
	if err := b.dev.SendPFC(1<<3, 200); err != nil {
		t.Fatal(err)
	}
	until(t, "the frame came", func() bool { return a.dev.Stats().Get("rx_prio3_pause") == 3 })
	a.write(three, b, 2000)
	if wc := three.await(t); wc.Status != ib.Success {
		t.Errorf("priority 3 after its quanta: %+v", wc)
	}
	until(t, "nothing is paused", func() bool { return a.dev.Paused() == 0 })
	// And everything at once, until PAUSE with 0 says otherwise.
	if err := b.dev.SendPause(0xFFFF); err != nil {
		t.Fatal(err)
	}
	until(t, "all is paused", func() bool { return a.dev.Paused() == 0xFF })
	sent := a.dev.Stats().Get("sent_pkts")
	a.write(three, b, 2000)
	a.write(four, b, 2000)
	for range 1000 {
		if three.cq.Poll(wcs[:])+four.cq.Poll(wcs[:]) != 0 {
			t.Fatalf("everything was paused, and %+v", wcs[0])
		}
	}
	if now := a.dev.Stats().Get("sent_pkts"); now != sent || a.dev.Paused() != 0xFF {
		t.Errorf("%d packets left while %08b were paused", now-sent, a.dev.Paused())
	}
	if err := b.dev.SendPause(0); err != nil {
		t.Fatal(err)
	}
	for _, q := range []wireQP{three, four} {
		if wc := q.await(t); wc.Status != ib.Success {
			t.Errorf("after the end of PAUSE: %+v", wc)
		}
	}
	// It ends by itself too.
	if err := b.dev.SendPause(200); err != nil {
		t.Fatal(err)
	}
	until(t, "the PAUSE frames came", func() bool { return a.dev.Stats().Get("rx_global_pause") == 3 })
	a.write(four, b, 2000)
	if wc := four.await(t); wc.Status != ib.Success {
		t.Errorf("priority 4 after PAUSE: %+v", wc)
	}
	for prio := range 8 {
		want := uint64(0)
		if prio == 3 {
			want = 3
		}
		rx, tx := a.dev.Stats().Get(fmt.Sprintf("rx_prio%d_pause", prio)), b.dev.Stats().Get(fmt.Sprintf("tx_prio%d_pause", prio))
		if rx != want || tx != want {
			t.Errorf("priority %d: %d PFC frames received, %d sent, want %d", prio, rx, tx, want)
		}
	}
	if tx := b.dev.Stats().Get("tx_global_pause"); tx != 3 || b.dev.Stats().Get("rx_global_pause") != 0 || a.dev.Stats().Get("tx_global_pause") != 0 {
		t.Errorf("%d PAUSE frames sent", tx)
	}
}

// until polls for what must come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}
