package ethtool_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/ethtool"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// aliases are features that the ethtool program prints under older names than the
// kernel's.
var aliases = map[string]string{
	"rx-checksum": "rx-checksumming", "rx-gro": "generic-receive-offload", "rx-lro": "large-receive-offload",
	"tx-generic-segmentation": "generic-segmentation-offload", "rx-ntuple-filter": "ntuple-filters", "rx-hashing": "receive-hashing",
	"rx-vlan-hw-parse": "rx-vlan-offload", "tx-vlan-hw-insert": "tx-vlan-offload",
}

// TestAsEthtoolSaysIt asks the driver of a veth and Debian's ethtool for the same: what it
// has is the same, and what it does not have is not supported, never zero.
func TestAsEthtoolSaysIt(t *testing.T) {
	if _, err := exec.LookPath("ethtool"); err != nil {
		need.Missing(t, "no ethtool program (package ethtool)")
	}
	s := netns.New(t)
	s.Run("ip link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1", "ip link set v0 up", "ip link set v1 up", "ethtool -K v0 gro on tx off")
	judge := func(args ...string) [][2]string {
		out, err := s.Output(append([]string{"ethtool"}, args...)...)
		if err != nil {
			t.Fatalf("ethtool %q: %v: %s", args, err, out)
		}
		var all [][2]string
		for line := range strings.Lines(out) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				all = append(all, [2]string{k, strings.TrimSpace(v)})
			}
		}
		return all
	}
	said := map[string][][2]string{}
	for _, o := range []string{"-i", "-k", "-l", "-S"} {
		said[o] = judge(o, "v0")
	}
	s.Do(func() {
		c, err := ethtool.Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()

		driver, err := c.Driver("v0")
		if want := said["-i"][0][1]; err != nil || driver != want {
			t.Errorf("driver %q, %v, not %q", driver, err, want)
		}
		stats, err := c.Stats("v0")
		var ours [][2]string
		for _, k := range stats {
			ours = append(ours, [2]string{k.Name, fmt.Sprint(k.Value)})
		}
		names := func(all [][2]string) (n []string) {
			for _, k := range all {
				n = append(n, k[0])
			}
			return n
		}
		// Values may rise between the two questions; the names and their order stay.
		if d := cmp.Diff(names(said["-S"][1:]), names(ours)); d != "" || err != nil || ours[0] != said["-S"][1] {
			t.Errorf("statistics: %v, first %v and %v -ethtool +ours\n%s", err, said["-S"][1], ours[0], d)
		}
		features, err := c.Features("v0")
		if err != nil || len(features) < 30 {
			t.Errorf("%d features, %v", len(features), err)
		}
		theirs := map[string]string{}
		for _, f := range said["-k"] {
			theirs[f[0]], _, _ = strings.Cut(f[1], " ")
		}
		for name, on := range features {
			if a := aliases[name]; a != "" {
				name = a
			}
			if want := map[bool]string{true: "on", false: "off"}[on]; theirs[name] != want {
				t.Errorf("%s is %s, ethtool says %q", name, want, theirs[name])
			}
		}
		channels, err := c.Channels("v0")
		l := said["-l"]
		if err != nil || len(l) < 11 || fmt.Sprint(channels["rx_max"], channels["tx_max"], channels["rx"], channels["tx"]) != fmt.Sprint(l[2][1], " ", l[3][1], " ", l[7][1], " ", l[8][1]) {
			t.Errorf("channels %v, %v; ethtool says %q", channels, err, l)
		}
		for what, err := range map[string]error{
			"rings": failed(c.Rings("v0")), "pause": failed(c.Pause("v0")), "FEC": failed(c.FEC("v0")), "hash": failed[snapshot.Hash](c.Hash("v0", "udp4")),
			"statistics of lo": failed(c.Stats("lo")),
		} {
			if !errors.Is(err, syscall.EOPNOTSUPP) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := failed(c.Stats("nobody")); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("an interface that is not there: %v", err)
		}
	})
}

func failed[T any](_ T, err error) error { return err }
