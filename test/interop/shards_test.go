//go:build linux

package interop

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// TestShardsData moves random bytes both ways between rdma_rxe and queue pairs in every shard of a device, whose
// completions come to one queue. However the system chooses the socket that a packet comes to, each of the guest's is
// received: also where all come to one, since the guest has one address.
func TestShardsData(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, c := range []struct {
		shards int
		how    verbs.Steering
	}{{2, verbs.SteerQPN}, {4, verbs.SteerQPN}, {4, verbs.SteerAddresses}} {
		t.Run(fmt.Sprintf("%d by %v", c.shards, c.how), func(t *testing.T) {
			ctx := within(t, patience)
			h := openHost(t, network(t), 2*dataBytes, verbs.Config{Shards: c.shards, Steering: c.how})
			before := h.account()
			seen := map[int]bool{}
			for i := range c.shards {
				fam := allFamilies[i%len(allFamilies)]
				p := newPair(ctx, h, ib.RC, fam, settings{mtu: ib.MTU1024}, dataBytes)
				seen[int(p.q.Num())%c.shards] = true
				d := &mover{pair: p, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), uint64(i)))}
				for _, n := range []int{1, 100_001} {
					d.send(n)
					d.sendBack(n)
					d.write(n)
					d.writeBack(n)
					d.read(n)
					d.readBack(n)
					if t.Failed() {
						t.Fatalf("queue pair %d at %d bytes", i, n)
					}
				}
			}
			before.settle()
			h.clean()
			if len(seen) != c.shards {
				t.Errorf("queue pairs were in shards %v of %d", seen, c.shards)
			}
			var misdirected uint64
			for _, q := range h.dev.Queues() {
				misdirected += q.Misdirected
				if q.RcvdPackets == 0 || q.QPs == 0 {
					t.Errorf("a queue without packets: %+v", q)
				}
			}
			switch {
			case c.how == verbs.SteerQPN && misdirected != 0:
				t.Errorf("%d packets came to the wrong socket", misdirected)
			case c.how == verbs.SteerAddresses && misdirected == 0:
				t.Error("by addresses alone no packet came to the wrong socket")
			}
		})
	}
}

// TestShardsPrograms runs perftest on several queue pairs against a device of several shards, which nobody without
// privileges opens.
func TestShardsPrograms(t *testing.T) {
	judge.Need(t, "rxe", "perftest")
	b := &bench{net: network(t), gids: hostGIDs(t, verbs.Config{})}
	b.program(t)
	for i, c := range []struct {
		verb    string
		shards  int
		weServe bool
	}{{"write", 2, true}, {"send", 4, false}} {
		r := run{
			program: program{
				name: fmt.Sprintf("%s-bw, %d shards", c.verb, c.shards), typ: ib.RC,
				ours:   fmt.Sprintf("perf %s-bw -c RC --shards %d", c.verb, c.shards),
				theirs: fmt.Sprintf("ib_%s_bw -c RC", c.verb),
			},
			weServe: c.weServe, size: 64 << 10, mtu: ib.MTU1024, fam: allFamilies[i%2], qps: 4, variant: "-b",
		}
		t.Run(r.String(), func(t *testing.T) { b.run(t, r) })
	}
}
