package rtnl

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// The kernel's statistics have the names that sysfs has for them: each lies between what
// sysfs says before and after, and the names are those of files, in their order.
func TestStatisticsAreThoseOfSysfs(t *testing.T) {
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for range 3 { // some frames, of a length of their own
		if _, err := in.WriteTo(make([]byte, 1000), in.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) uint64 {
		b, err := os.ReadFile("/sys/class/net/lo/statistics/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	names := []string{"rx_bytes", "rx_dropped", "rx_errors", "rx_packets", "tx_bytes", "tx_dropped", "tx_errors", "tx_packets"}
	before := map[string]uint64{}
	for _, n := range names {
		before[n] = read(n)
	}
	links, err := c.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name != "lo" {
			continue
		}
		if len(l.Statistics) != len(names) {
			t.Fatalf("%d statistics: %v", len(l.Statistics), l.Statistics)
		}
		for i, s := range l.Statistics {
			v, ok := s.Value.Get()
			if after := read(names[i]); s.Name != names[i] || !ok || v < before[names[i]] || v > after {
				t.Errorf("%s is %v, %s is %d before and %d after in sysfs", s.Name, s.Value, names[i], before[names[i]], after)
			}
		}
		if l.Statistics.Get("rx_bytes").Or(0) < 3000 {
			t.Errorf("rx_bytes %v after 3,000 bytes", l.Statistics.Get("rx_bytes"))
		}
		return
	}
	t.Error("there is no lo")
}

func TestShortStatisticsAreNone(t *testing.T) {
	for n := range 64 {
		if s := statistics(make([]byte, n)); s != nil {
			t.Errorf("%d bytes are %v", n, s)
		}
	}
	if s := statistics(make([]byte, 64)); len(s) != 8 || s[0] != (snapshot.Counter{Name: "rx_bytes", Value: snapshot.Known[uint64](0)}) {
		t.Errorf("64 bytes are %v", s)
	}
}
