package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

// Every kind of traffic runs to its end and breaks no rule.
func TestKindsOfTraffic(t *testing.T) {
	for _, w := range []string{
		"{kind: incast, src: host1..7, dst: host0, bytes: 100KB}",
		"{kind: permutation, bytes: 50KB, count: 2, cross_leaf: true}",
		"{kind: all-to-all, hosts: host0..5, bytes: 20KB}",
		"{kind: all-reduce-ring, hosts: host0..7, bytes: 80KB}",
		"{kind: all-reduce-tree, hosts: host0..6, bytes: 40KB, chunks: 2}",
		"{kind: poisson, cdf: WebSearch, load: 20%, count: 50}",
		"{kind: bursts, src: host1, dst: host9, bytes: 32KB, every: 20us, count: 10, one_qp: true}",
		"{kind: long, src: host1..4, dst: host9..12, bytes: 200KB, every: 5us, qps: 3}",
		"{kind: long, src: host1, dst: host9, bytes: 200KB, op: read}",
		"{kind: long, src: host1, dst: host9, bytes: 200KB, op: send, message: 8KB}",
		"{kind: long, src: host1, dst: host9, bytes: 200KB, service: uc}",
		"{kind: long, src: host1, dst: host9, bytes: 20KB, service: ud}",
		"{kind: flows, list: [{src: host0, dst: host1, bytes: 1KB}, {src: host3, dst: host2, bytes: 5KB, start: 3us}]}",
	} {
		sc, err := scenario.Parse("x.yaml", []byte("name: x\ntopology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 8}\nworkload: ["+w+"]\n"))
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		r, _, err := Load(sc, nil)
		if err != nil {
			t.Errorf("%s: %v", w, err)
			continue
		}
		if err := r.Finish(); err != nil {
			t.Errorf("%s: %v", w, err)
		}
		res := r.Result()
		for _, b := range res.Breaches {
			t.Errorf("%s: %v %s: %s", w, b.At, b.Rule, b.Detail)
		}
		if len(res.Flows) == 0 {
			t.Errorf("%s: no flows", w)
		}
		for i := range res.Flows {
			f := &res.Flows[i]
			if f.State != result.Finished || f.Delivered != f.Bytes {
				t.Errorf("%s: flow %d: state %d %s, %d of %d bytes, %s", w, i, f.State, f.Status, f.Delivered, f.Bytes, res.Why)
				break
			}
		}
	}
}
