package read_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// sysfsOf opens this host with the sysfs of a namespace, which is mounted for the thread
// that opens it and for nothing else.
func sysfsOf(t *testing.T, space *netns.Space) *source.Live {
	t.Helper()
	dir := t.TempDir()
	var live *source.Live
	var failed error
	space.Do(func() {
		if failed = unix.Unshare(unix.CLONE_NEWNS); failed != nil {
			return
		}
		if failed = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); failed != nil {
			return
		}
		if failed = unix.Mount("sysfs", dir, "sysfs", 0, ""); failed == nil {
			live, failed = source.NewLive(source.LiveConfig{SysfsRoot: dir})
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { live.Close() })
	return live
}

// TestSysfsOfAnotherNamespace has two namespaces with interfaces of the same names and
// indices: the files of one are not taken for the interfaces of the other.
func TestSysfsOfAnotherNamespace(t *testing.T) {
	here, there := netns.New(t), netns.New(t)
	for _, s := range []*netns.Space{here, there} {
		s.Run("ip link add eth0 type veth peer name eth1")
	}
	there.Run("ip link set eth0 mtu 4200 up")
	host := func(live *source.Live, opt read.Options) (s *snapshot.Snapshot) {
		here.Do(func() { s = read.Host(live, opt) })
		return s
	}
	own := host(sysfsOf(t, here), read.Options{})
	strange := host(sysfsOf(t, there), read.Options{})
	for _, name := range []string{"eth0", "eth1"} {
		a, b := own.Netdev(name), strange.Netdev(name)
		if a == nil || b == nil {
			t.Fatalf("no %s", name)
		}
		known(t, "index of "+name, b.Index, a.Index.Or(-1))
		known(t, "MTU of "+name, b.MTU, a.MTU.Or(-1))
		known(t, "address of "+name, b.MAC, a.MAC.Or("?"))
		known(t, "state of "+name, b.OperState, a.OperState.Or("?"))
		// Those that netlink has are of this namespace; the rest only files have.
		if len(a.Statistics) <= 8 || len(b.Statistics) != 8 || !b.Statistics.Get("collisions").IsZero() {
			t.Errorf("%s: %d statistics of its own, %d of a stranger", name, len(a.Statistics), len(b.Statistics))
		}
		refused(t, "speed of "+name, b.SpeedMbps, "sysfs shows the interfaces of another network namespace: mount sysfs anew in this one")
		if b.Virtual.IsKnown() {
			t.Errorf("%s: virtual %v, from another's directory", name, b.Virtual)
		}
	}
	if n, ok := own.SNMP["Ip6.InReceives"].Get(); !ok || n > 1000 { // a namespace that nothing was sent to
		t.Errorf("IPv6 counters of another namespace: %v", own.SNMP["Ip6.InReceives"])
	}
	for _, p := range problems(own) {
		if strings.Contains(p, "sys/class/net") {
			t.Errorf("its own sysfs: %s", p)
		}
	}
	if got := strings.Join(problems(strange), "\n"); !strings.Contains(got, "sys/class/net: shows the interfaces of another network namespace") {
		t.Errorf("nobody says so:\n%s", got)
	}
}

// A namespace that has lo only shows lo of everybody: that is no evidence.
func TestSysfsWithLoopbackOnly(t *testing.T) {
	here, there := netns.New(t), netns.New(t)
	here.Run("ip link add eth0 type veth peer name eth1")
	live := sysfsOf(t, there)
	var s *snapshot.Snapshot
	here.Do(func() { s = read.Host(live, read.Options{}) })
	if lo := s.Netdev("lo"); lo == nil || !lo.Statistics.Get("collisions").IsZero() || lo.Statistics.Get("rx_bytes").IsZero() {
		t.Errorf("lo has the statistics of another namespace: %+v", lo)
	}
	if got := strings.Join(problems(s), "\n"); !strings.Contains(got, "another network namespace") {
		t.Errorf("nobody says so:\n%s", got)
	}
}

// One interface that was made anew between the two questions is one stranger.
func TestOneStranger(t *testing.T) {
	s := read.Host(memory{
		"nl/ip/link":                 `[{"name":"lo","index":1},{"name":"eth0","index":2,"address":"02:00:00:00:00:01"},{"name":"eth1","index":3,"address":"02:00:00:00:00:02"},{"name":"eth2","index":4,"address":"02:00:00:00:00:03"}]`,
		"sys/class/net/lo/ifindex":   "1\n",
		"sys/class/net/eth0/ifindex": "2\n",
		"sys/class/net/eth0/address": "02:00:00:00:00:01\n",
		"sys/class/net/eth0/speed":   "100000\n",
		"sys/class/net/eth1/ifindex": "3\n",
		"sys/class/net/eth1/address": "02:00:00:00:00:99\n",
		"sys/class/net/eth1/speed":   "25000\n",
		"sys/class/net/eth2/ifindex": "9\n",
		"sys/class/net/eth2/address": "02:00:00:00:00:03\n",
		"sys/class/net/eth2/speed":   "25000\n",
	}, read.Options{})
	known(t, "speed of eth0", s.Netdev("eth0").SpeedMbps, 100000)
	refused(t, "speed of eth1", s.Netdev("eth1").SpeedMbps, "sysfs has another interface of that name: address 02:00:00:00:00:99, not 02:00:00:00:00:02")
	refused(t, "speed of eth2", s.Netdev("eth2").SpeedMbps, "sysfs has another interface of that name: index 9, not 4")
	if got := problems(s); len(got) != 2 {
		t.Errorf("problems %q", got)
	}
}
