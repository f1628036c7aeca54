package verbs_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// A plan counts in each shard for itself: the third message of the queue pair in
// every shard is lost once, whatever the others do.
func TestPlanCountsInEachShard(t *testing.T) {
	const shards, messages, size = 2, 6, 9000
	a := open(t, verbs.Config{
		Addr: shardA, Port: testPort, Shards: shards,
		Faults: plan(t, "inject: lose, direction: out, opcode: write, position: first, nth: 3", "inject: duplicate, direction: out, opcode: write, position: last, count: 2"),
	})
	b := openShards(t, shardB, shards)
	var ends [shards]*end
	pdA, pdB := a.AllocPD(), b.AllocPD()
	for i := range ends {
		cqA := newCQ(t, a, verbs.CQConfig{Depth: 64, Vector: verbs.VectorOf(i)})
		cqB := newCQ(t, b, verbs.CQConfig{Depth: 64, Vector: verbs.VectorOf(i)})
		ends[i] = endOn(t, a, pdA, ib.RC, cqA, cqA, nil)
		join(t, ends[i], endOn(t, b, pdB, ib.RC, cqB, cqB, nil))
	}
	for i, e := range ends {
		for range messages {
			must(t, e.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: e.mr.SGE(0, size), Remote: e.peer.At(0)}))
			expectAll(t, e.cq, 1)
		}
		r, _ := a.Faults()
		if lost, twice := r.Rules[0].Hits, r.Rules[1].Hits; lost != uint64(i+1) || twice != 2*uint64(i+1) {
			t.Errorf("with %d shards in use: %d lost, want %d; %d doubled, want %d", i+1, lost, i+1, twice, 2*(i+1))
		}
	}
}
