package fabric

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// Whatever congestion control there is, what fills a port has its name: the
// cause that was put in is the one that is told, and nothing is unknown. Buffers
// are so small that PFC acts before any notification is back.
func TestEveryCauseWithEveryCongestionControl(t *testing.T) {
	const tight = `
switch: {buffer: {total: 12MB, xoff: 20KB}, ecn: {priorities: [3, 4], kmin: 5KB, kmax: 200KB, pmax: 1%}}
duration: 20ms
host: {dcqcn: {preset: PRESET}}
`
	for _, x := range []struct {
		name, text string
		want       explain.Kind // Unknown: nobody is stopped
		root, says string       // says: a regular expression
	}{
		{"incast", tight + `
topology: {kind: star, hosts: 5}
workload: [{kind: incast, src: host1..host4, dst: host0, bytes: 1MB}]
`, explain.Incast, "sw0:Ethernet0", `incast, 4 senders with 4 flows at once by 4 ports, 4 x its 100 Gb/s`},
		{"incast of which two senders share an uplink, and one has another", tight + `
topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 2}
workload:
  - {kind: flows, bytes: 2MB, list: [{src: host0, dst: host2}, {src: host1, dst: host2}, {src: host0, dst: host2}, {src: host1, dst: host2}, {src: host0, dst: host2}, {src: host1, dst: host2}]}
`, explain.Incast, "leaf1:Ethernet0", `incast, 2 senders with [3-6] flows at once by 2 ports, 2 x its`},
		{"collision", tight + `
topology: {kind: spine-leaf, leaves: 2, spines: 1, hosts_per_leaf: 2}
workload: [{kind: flows, bytes: 1MB, list: [{src: host0, dst: host2}, {src: host1, dst: host3}]}]
`, explain.Collision, "leaf0:Ethernet2", `collision on a link, 2 senders`},
		{"step-down", tight + `
topology: {kind: dumbbell, left: 1, right: 1, rate: 100Gbps, uplink_rate: 25Gbps}
workload: [{kind: long, src: host0, dst: host1, bytes: 1MB}]
`, explain.StepDown, "sw0:Ethernet1", `speed step-down, 1 flow comes in at 100 Gb/s and goes out at 25 Gb/s`},
		{"starved", `
topology: {kind: star, hosts: 3}
switch: {buffer: {total: 12MB, xoff: 20KB}, scheduler: {strict: [4]}, pfc: {priorities: [3, 4]}, ecn: {priorities: [3, 4], kmin: 5KB, kmax: 200KB, pmax: 1%}, dscp_map: {34: 4}}
host: {nic: {pfc: [3, 4]}, dcqcn: {preset: PRESET}}
duration: 20ms
workload:
  - {name: high, kind: long, src: host1, dst: host0, bytes: 20MB, priority: 4, dscp: 34}
  - {name: low, kind: long, src: host2, dst: host0, bytes: 1MB}
`, explain.Starved, "sw0:Ethernet0", `other priorities took 9\d(\.\d+)? % of the bytes`},
		{"slow receiver", tight + `
topology: {kind: star, hosts: 3}
hosts: [{match: host0, nic: {pcie_rate: 10Gbps}}]
workload: [{kind: long, src: host1, dst: host0, bytes: 4MB}]
`, explain.SlowReceiver, "host0", `slow receiver, host0 cannot take in`},
		{"storm", tight + `
topology: {kind: star, hosts: 3}
workload: [{kind: long, src: host1, dst: host0, bytes: 4MB}]
faults: [{at: 10us, kind: storm, where: host0, priorities: [3]}]
`, explain.StormHost, "host0", `pause storm, host0 says stop without end`},
		{"global pause", `
topology: {kind: star, hosts: 3}
switch: {buffer: {total: 12MB, xoff: 20KB}, pfc: {global_pause: true}, ecn: {priorities: [3], kmin: 5KB, kmax: 200KB, pmax: 1%}}
duration: 20ms
host: {dcqcn: {preset: PRESET}}
workload: [{kind: incast, src: host1..host2, dst: host0, bytes: 1MB}]
`, explain.Incast, "sw0:Ethernet0", `incast, 2 senders`},
		{"link down", tight + `
topology: {kind: star, hosts: 3}
workload: [{kind: long, src: host1, dst: host0, bytes: 4MB}]
faults: [{at: 10us, kind: link-down, where: host0, for: 2ms}]
`, explain.Unknown, "", `the link at host0:eth0 was down\.`},
		{"deadlock", tight + `
topology: {kind: bounce, hosts_per_leaf: 2}
workload:
  - {kind: flows, bytes: 10MB, list: [{src: host0, dst: host4}, {src: host1, dst: host5}, {src: host6, dst: host2}, {src: host7, dst: host3}, {src: host2, dst: host4}, {src: host3, dst: host5}, {src: host4, dst: host2}, {src: host5, dst: host3}]}
`, explain.Cycle, "", `it is in a deadlock`},
	} {
		for _, preset := range []string{"off", "paper", "mlx5", "hpcc"} {
			t.Run(x.name+"/"+preset, func(t *testing.T) {
				r := loaded(t, strings.ReplaceAll(x.text, "PRESET", strconv.Quote(preset)))
				if err := r.Finish(); err != nil {
					t.Fatal(err)
				}
				named(t, r.Result(), x.want, x.root, x.says)
			})
		}
	}
}

// named holds the first tree of pauses to a cause, and the whole text to words for
// all of them.
func named(t *testing.T, r *result.Run, want explain.Kind, root, says string) {
	t.Helper()
	s := explain.Explain(r)
	var b strings.Builder
	if err := s.Text(&b, 1000); err != nil {
		t.Fatal(err)
	}
	if (len(s.Trees) == 0) != (want == explain.Unknown) {
		t.Fatalf("%d trees of pauses:\n%s", len(s.Trees), b.String())
	}
	for i := range s.Trees {
		if k := s.Trees[i].Cause.Kind; i == 0 && (k != want || root != "" && s.Trees[i].Root.Name != root) {
			t.Errorf("the cause is %v at %s; want %v at %s", k, s.Trees[i].Root.Name, want, root)
		}
		if s.Trees[i].Cause.Kind == explain.Unknown {
			t.Errorf("what filled %s is unknown", s.Trees[i].Root.Name)
		}
	}
	if !regexp.MustCompile(says).MatchString(b.String()) {
		t.Errorf("no word of %q", says)
	}
	for _, not := range []string{"unknown", "the result does not say"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("the text says %q", not)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
}
