package scenario

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

const small = `
name: demo
topology: {kind: spine-leaf, leaves: 4, spines: 8, hosts_per_leaf: 8, rate: 100Gbps, delay: 1us, subnets: per-leaf}
switch:
  buffer: {alpha: 1/8, headroom: hpcc}
  ecn: {kmin: 8KB, kmax: 8KB, pmax: 100%}
  scheduler: {strict: [6], weights: {3: 50, 0: 50}}
  dscp_map: {26: 3}
switches:
  - match: leaf1
    dscp_map: {26: 0}
host: {dcqcn: {preset: mlx5, rpg_ai_rate: 5}}
workload:
  - {name: long, kind: long, src: host0, dst: host8, bytes: 200MB}
  - {name: burst, kind: bursts, src: host16, dst: host8, bytes: 128KB, every: 400us}
expect:
  - {what: flow.long.goodput, near: 10Gbps, within: 15%, source: "x"}
`

func TestParse(t *testing.T) {
	s, err := Parse("demo.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if s.Topology.Leaves != 4 || s.Switch.ECN.KMin != 8000 || s.Switch.ECN.PMax != One || s.Workload[1].Every != 400*sim.Microsecond {
		t.Errorf("%+v", s)
	}
	if a, b := s.SwitchFor("leaf0"), s.SwitchFor("leaf1"); a.DSCPMap[26] != 3 || b.DSCPMap[26] != 0 {
		t.Error(a.DSCPMap[26], b.DSCPMap[26])
	}
}
