package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// A stop that is told again is one stop: a pause of 65,535 quanta is repeated
// every 168 us at 100 Gb/s, and each repetition has the reason of the first.
func TestRefreshedPausesKeepTheirReason(t *testing.T) {
	r := loaded(t, `
topology: {kind: spine-leaf, leaves: 2, spines: 1, hosts_per_leaf: 2}
switch: {buffer: {total: 12MB, xoff: 100KB}, ecn: {priorities: none}}
host: {dcqcn: {preset: off}}
workload: [{kind: long, src: host0, dst: host2, bytes: 5MB}]
faults: [{at: 50us, kind: storm, where: host2, priorities: [3]}]
duration: 2ms
`)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	res := r.Result()
	type stopper struct{ node, port int32 }
	first := map[stopper]result.Pause{}
	again := 0
	for _, p := range res.Pauses {
		k := stopper{p.Node, p.Port}
		switch {
		case !p.On:
			delete(first, k)
		case !p.Refresh:
			first[k] = p
		default:
			again++
			if was := first[k]; p.Cause != was.Cause || p.Egress != was.Egress || p.Held < was.Limit && p.Cause == result.CauseBuffer {
				t.Errorf("%v: %s stops its neighbour again: %+v; at first: %+v", p.At, res.Nodes[p.Node].Name, p, was)
			}
		}
	}
	if again < 4*8 { // four stopped egresses in a row, for nearly 2 ms
		t.Errorf("%d repetitions", again)
	}
	s := explain.Explain(res)
	if len(s.Trees) != 1 || len(s.Trees[0].Levels) != 4 || s.Trees[0].Cause.Kind != explain.StormHost {
		t.Errorf("%d trees, the first of %d levels by %v; want one of 4 by a storm", len(s.Trees), len(s.Trees[0].Levels), s.Trees[0].Cause.Kind)
	}
}
