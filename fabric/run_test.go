package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// t32 is the published test fabric: 4 leaves of 8 hosts, 8 spines, 100 Gb/s,
// 1 us a link, 1,000 + 48 B packets.
func t32(t testing.TB, sets ...string) (*scenario.Scenario, *topo.Graph) {
	t.Helper()
	g, err := topo.SpineLeaf{Leaves: 4, Spines: 8, HostsPerLeaf: 8, Rate: 100 * sim.Gbps, Delay: sim.Microsecond}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.ParseSet("t32.yaml", []byte("name: t32\npacket: {payload: 1000, header: 48, gap: false, control: 64}\nrecord: {series: none}\n"), sets)
	if err != nil {
		t.Fatal(err)
	}
	return sc, g
}

func incast(n int, bytes int64) []work.Flow {
	var f []work.Flow
	for i := range n {
		f = append(f, work.Flow{Src: int32(8 + i), Dst: 0, Bytes: bytes, Prio: -1, DSCP: -1, Group: "incast"})
	}
	return f
}

func finish(t testing.TB, sc *scenario.Scenario, g *topo.Graph, flows []work.Flow) (*Run, *result.Run) {
	t.Helper()
	r, err := New(sc, g, &work.List{Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	res := r.Result()
	for _, b := range res.Breaches {
		t.Errorf("%v: %s: %s", b.At, b.Rule, b.Detail)
	}
	return r, res
}

// Without ECN, the last of an incast ends when the bottleneck has sent
// everything.
func TestIncastEndsWithTheBottleneck(t *testing.T) {
	sc, g := t32(t, "host.dcqcn.preset=off", "switch.ecn.priorities=none")
	_, res := finish(t, sc, g, incast(16, 1_000_000))
	var last sim.Time
	for i := range res.Flows {
		f := &res.Flows[i]
		if f.State != result.Finished {
			t.Fatalf("flow %d: %v %s", i, f.State, f.Status)
		}
		last = max(last, f.FCT())
	}
	t.Logf("last %v, events %d, hops %d, pauses %d, why %s", last, res.Events, res.DataHops, len(res.Pauses), res.Why)
}
