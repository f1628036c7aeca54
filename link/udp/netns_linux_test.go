package udp_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/roce"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/wire"
)

const inNamespaceEnv = "VERBENA_TEST_IN_NAMESPACE"

// inNamespace runs the calling test again in a process of its own that has a
// network namespace of its own, made for it and gone with it. It returns true
// in that process, after it has run the commands; the caller of the other one
// returns at once.
func inNamespace(t *testing.T, commands ...string) bool {
	t.Helper()
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "needs iproute2: %v", err)
		}
	}
	if os.Getenv(inNamespaceEnv) == t.Name() {
		for _, c := range append([]string{"ip link set lo up"}, commands...) {
			f := strings.Fields(c)
			if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
				need.Missing(t, "%s: %v: %s", c, err, out)
			}
		}
		awaitLocalRoutes(t)
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespaceEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC):
		need.Missing(t, "may not make a network namespace: %v", err)
	case err != nil:
		t.Errorf("in its own namespace: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		need.Missing(t, "in its own namespace:\n%s", out)
	default:
		t.Logf("in its own namespace:\n%s", out)
	}
	return false
}

// awaitLocalRoutes waits until the kernel, which does it in its own time, has
// made the IPv6 addresses reachable.
func awaitLocalRoutes(t *testing.T) {
	t.Helper()
	as, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range as {
		ip := a.(*net.IPNet).IP
		if ip.To4() != nil || ip.IsLinkLocalUnicast() {
			continue
		}
		for try := 0; ; try++ {
			out, err := exec.Command("ip", "-6", "route", "get", ip.String()).CombinedOutput()
			if err == nil && strings.Contains(string(out), "local") {
				break
			}
			if try == 200 {
				need.Missing(t, "%v does not become reachable: %s", ip, out)
			}
		}
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestIPv6(t *testing.T) {
	if !inNamespace(t, "ip addr add 2001:db8::1/64 dev lo nodad", "ip addr add 2001:db8::2/64 dev lo nodad") {
		return
	}
	conform(t, udp.Config{}, true, false, addr("2001:db8::1"), addr("2001:db8::2"))
	t.Run("portable", func(t *testing.T) {
		conform(t, udp.Config{Portable: true}, false, false, addr("2001:db8::1"), addr("2001:db8::2"))
	})
}

func TestLinkLocal(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 up", "ip link set v1 up",
		"ip addr add fe80::a/64 dev v0 nodad", "ip addr add fe80::b/64 dev v0 nodad") {
		return
	}
	v0, err := net.InterfaceByName("v0")
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]udp.Config{"by zone": {}, "by index": {Interface: v0.Index}} {
		t.Run(name, func(t *testing.T) {
			x, y := addr("fe80::a"), addr("fe80::b")
			cfg.Port = testPort(t)
			zone := ""
			if cfg.Interface == 0 {
				zone = "v0"
			}
			cfg.Addrs = []netip.Addr{x.WithZone(zone)}
			a := open(t, cfg)
			cfg.Addrs = []netip.Addr{y.WithZone(zone)}
			b := open(t, cfg)
			p, err := a.Path(x, y, 0xC001)
			if err != nil {
				t.Fatal(err)
			}
			tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
			sendOne(a, tx, x, y, p.SrcPort, 100)
			for drain(t, b, rx) == 0 {
				if err := b.Wait(0, clock.Never); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// RNICs send UDP checksum 0, over IPv6 too.
func TestZeroChecksum(t *testing.T) {
	if !inNamespace(t, "ip addr add 2001:db8::1/64 dev lo nodad") {
		return
	}
	for _, dst := range []string{"127.0.0.1", "2001:db8::1"} {
		port := testPort(t)
		l := open(t, udp.Config{Addrs: []netip.Addr{addr(dst)}, Port: port})
		c, err := net.Dial("udp", net.JoinHostPort(dst, strconv.Itoa(int(port))))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.(*net.UDPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		const udpNoCheck6TX = 101
		_ = raw.Control(func(fd uintptr) {
			if addr(dst).Is4() {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, udpNoCheck6TX, 1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		got := 0
		for try := 0; got == 0 && try < 1000; try++ {
			_ = l.Wait(0, clock.Time(time.Millisecond))
			got = drain(t, l, make([]frame.Rx, 1))
		}
		if got == 0 {
			t.Errorf("%s: a packet without checksum was not received", dst)
		}
		_ = c.Close()
	}
}

// A run longer than the interface carries is dropped, counted and reported
// once, with what would fit; what fits still goes.
func TestRouteMTU(t *testing.T) {
	if !inNamespace(t, "ip link add d0 type veth peer name d1", "ip link set d1 up", "ip link set d0 mtu 1400 up", "ip addr add 10.7.0.1/24 dev d0",
		"ip route add 10.8.0.0/24 dev d0 mtu 1000", "ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev d0") {
		return
	}
	src, dst := addr("10.7.0.1"), addr("10.7.0.9")
	l := open(t, udp.Config{Addrs: []netip.Addr{src}, Port: testPort(t)})
	if got := l.Caps().MTU; got != 1400-28 {
		t.Errorf("Caps.MTU = %d, want %d", got, 1400-28)
	}
	p, err := l.Path(src, dst, 0xC001)
	if err != nil || p.MTU != 1400-28 {
		t.Errorf("Path to the neighbour: %+v, %v", p, err)
	}
	// The route is narrower than its interface.
	if p, err := l.Path(src, addr("10.8.0.1"), 0xC001); err != nil || p.MTU != 1000-28 {
		t.Errorf("Path by the narrow route: %+v, %v", p, err)
	}
	if _, err := l.Path(src, addr("192.0.2.1"), 0xC001); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("Path to nowhere: %v", err)
	}
	for i, c := range []struct {
		seg, segs     int
		long, refused uint64
	}{{1372, 1, 0, 0}, {1373, 1, 1, 0}, {1372, 8, 1, 0}, {1500, 8, 9, 0}, {1500, 1, 10, 0}, {100, 8, 10, 0}} {
		tx := make([]frame.Run, 1)
		if l.Reserve(tx) != 1 {
			t.Fatal("Reserve")
		}
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.Seg, r.Segs, r.N = src, dst, p.SrcPort, c.seg, c.segs, c.seg*c.segs
		if err := l.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		if got := l.Counters(); got.TxTooLong != c.long || got.TxRefused != c.refused || got.TxSplit != 0 {
			t.Errorf("run %d: %+v, want %+v", i, got, c)
		}
	}
	ev, ok := l.Event()
	if !ok || ev.Kind != link.EventRouteMTU || ev.MTU != 1372 || ev.Frame != 1373 || ev.Dst != dst {
		t.Errorf("event %v %v", ev, ok)
	}
	if ev, ok := l.Event(); ok {
		t.Errorf("second event %v", ev)
	}
}

// What no route or a firewall refuses is counted and reported once.
func TestRefused(t *testing.T) {
	if !inNamespace(t, "ip link add d0 type veth peer name d1", "ip link set d1 up", "ip link set d0 up", "ip addr add 10.7.0.1/24 dev d0",
		"ip route add prohibit 10.9.0.0/24") {
		return
	}
	src := addr("10.7.0.1")
	l := open(t, udp.Config{Addrs: []netip.Addr{src}, Port: testPort(t)})
	p, err := l.Path(src, addr("10.7.0.9"), 0xC001)
	if err != nil {
		t.Fatal(err)
	}
	for _, dst := range []string{"10.9.0.1", "10.9.0.1", "192.0.2.1"} {
		sendOne(l, make([]frame.Run, 1), src, addr(dst), p.SrcPort, 100)
	}
	if c := l.Counters(); c.TxRefused != 3 {
		t.Errorf("counters %+v", c)
	}
	for _, want := range []string{"10.9.0.1", "192.0.2.1"} {
		if ev, ok := l.Event(); !ok || ev.Kind != link.EventRefused || ev.Dst != addr(want) {
			t.Errorf("event %v %v, want one about %s", ev, ok, want)
		}
	}
	if ev, ok := l.Event(); ok {
		t.Errorf("one event too many: %v", ev)
	}
}

// A way out that is slower than the sender makes runs wait, not vanish, and
// Wait ends when there is room.
func TestFullSendQueueWaits(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 mtu 9000 up", "ip link set v1 mtu 9000 up",
		"ip addr add 10.7.0.1/24 dev v0", "ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev v0",
		"tc qdisc add dev v0 root tbf rate 400mbit burst 64kb limit 100mb") {
		return
	}
	src, dst := addr("10.7.0.1"), addr("10.7.0.9")
	l := open(t, udp.Config{Addrs: []netip.Addr{src}, Port: testPort(t), SendBuffer: 64 << 10})
	p, err := l.Path(src, dst, 0xC001)
	if err != nil {
		t.Fatal(err)
	}
	waited := 0
	tx := make([]frame.Run, 4)
	for range 200 {
		n := l.Reserve(tx)
		if n == 0 {
			waited++
			// Nobody else wakes us.
			if err := l.Wait(0, clock.Never); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Recv(0, make([]frame.Rx, 1)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i := range tx[:n] {
			r := &tx[i]
			r.Src, r.Dst, r.SrcPort, r.Seg, r.Segs, r.N = src, dst, p.SrcPort, 1084, 30, 30*1084
		}
		if err := l.Commit(0, tx[:n]); err != nil {
			t.Fatal(err)
		}
	}
	c := l.Counters()
	if c.SendCalls == 0 || c.WaitCalls == 0 {
		t.Errorf("counters %+v", c)
	}
	c.SendCalls, c.RecvCalls, c.WaitCalls = 0, 0, 0
	if waited == 0 || c != (link.Counters{}) {
		t.Errorf("waited %d times, counters %+v", waited, c)
	}
	t.Logf("waited %d times", waited)
}

// A way out that is stuck costs what was to leave, counted, and the link works
// on for other destinations.
func TestStuckSendQueueGivesUp(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 mtu 9000 up", "ip link set v1 mtu 9000 up",
		"ip addr add 10.7.0.1/24 dev v0", "ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev v0",
		"tc qdisc add dev v0 root tbf rate 8kbit burst 32kb limit 100mb") {
		return
	}
	src, dst := addr("10.7.0.1"), addr("10.7.0.9")
	l := open(t, udp.Config{Addrs: []netip.Addr{src}, Port: testPort(t), SendBuffer: 64 << 10})
	p, err := l.Path(src, dst, 0xC001)
	if err != nil {
		t.Fatal(err)
	}
	tx := make([]frame.Run, 4)
	dropped := uint64(0)
	for now := clock.Time(0); now < clock.Time(time.Second) && dropped < 60; now += clock.Time(time.Millisecond) {
		n := l.Reserve(tx)
		for i := range tx[:n] {
			r := &tx[i]
			r.Src, r.Dst, r.SrcPort, r.Seg, r.Segs, r.N = src, dst, p.SrcPort, 1084, 30, 30*1084
		}
		if err := l.Commit(now, tx[:n]); err != nil {
			t.Fatal(err)
		}
		dropped = l.Counters().TxDropped
	}
	if dropped < 60 {
		t.Errorf("counters %+v", l.Counters())
	}
}

// The Identifications that the kernel writes are those that the ICRC was
// computed for: 0, 1, 2, … in a run that the kernel cuts, 0 in one that the
// link cuts because the kernel will not.
func TestIdentificationOnTheWire(t *testing.T) {
	if !inNamespace(t, "ip link add v0 type veth peer name v1", "ip link set v0 mtu 9000 gso_max_segs 1 up", "ip link set v1 mtu 9000 up",
		"ip addr add 10.7.0.1/24 dev v0", "ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev v0") {
		return
	}
	src, dst := addr("10.7.0.1"), addr("10.7.0.9")
	tap := packets(t, "v1")
	l := open(t, udp.Config{Addrs: []netip.Addr{src}})
	p, err := l.Path(src, dst, 0xC001)
	if err != nil {
		t.Fatal(err)
	}
	for _, segs := range []int{1, 2, 7, 30} {
		tx := make([]frame.Run, 1)
		l.Reserve(tx)
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = src, dst, p.SrcPort, 0x6A, 9
		for i := range segs - 1 {
			roce.Append(r, wire.RCSendMiddle, 0x11, ib.PSN(i), 1024)
		}
		roce.Append(r, wire.RCSendLast, 0x11, ib.PSN(segs-1), 13)
		if segs == 1 {
			r.Seg = r.N
		}
		if err := l.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		for i := range segs {
			b := tap()
			id, frag := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
			f := roce.Flow(src, dst, binary.BigEndian.Uint16(b[20:]))
			if int(id) != i || frag != 0x4000 || b[1] != 0x6A || b[8] != 9 || !f.Verify(id, true, b[28:]) {
				t.Errorf("packet %d of %d: Identification %d, flags %#x, TOS %#x, TTL %d, ICRC %v", i, segs, id, frag, b[1], b[8], f.Verify(id, true, b[28:]))
			}
		}
	}
}

// packets opens a packet socket on an interface and returns a function that
// returns the next IPv4 packet for RoCEv2's port.
func packets(t *testing.T, dev string) func() []byte {
	t.Helper()
	ifi, err := net.InterfaceByName(dev)
	if err != nil {
		t.Fatal(err)
	}
	const ipv4 = 0x0800
	proto := uint16(ipv4>>8 | ipv4<<8&0xFF00)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		need.Missing(t, "packet socket: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: ifi.Index}); err != nil {
		t.Fatal(err)
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	return func() []byte {
		for {
			b := make([]byte, 65536)
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				t.Fatalf("packet socket: %v", err)
			}
			if n >= 28 && b[0] == 0x45 && binary.BigEndian.Uint16(b[22:]) == udp.Port {
				return b[:n]
			}
		}
	}
}
