package verbs_test

import (
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// A device of several shards with DCQCN on, and what it has counted: see docs/shards.md,
// docs/dcqcn-on-the-wire.md and docs/counters.md.
func ExampleConfig_shards() {
	cfg := verbs.Config{Addr: netip.MustParseAddr("127.0.0.13"), Shards: 2, DCQCN: verbs.DCQCN{
		Preset: "paper", LineRate: 10e9, // loopback tells no rate of its own
		Knobs: map[string]string{"rpg_ai_rate": "10Mbps"},
	}}
	p := connectedBy(cfg, verbs.Config{Addr: netip.MustParseAddr("127.0.0.14")})
	defer p.close()
	a := p.a
	fmt.Println(a.dev.DCQCN(), "on", a.dev.Attr().CompVectors, "completion vectors")

	before := a.dev.Counters()
	check(a.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, 4096), Remote: a.peer.At(0), Flags: ib.Signaled}))
	fmt.Println(await(a).Status)
	after := a.dev.Counters()
	counted := after.Sub(&before)
	copied, _ := counted.Get("copied_tx")
	cnps, _ := counted.Get("rp_cnp_handled") // mlx5's name
	fmt.Println("copied:", copied, "bytes; CNPs:", cnps)
	fmt.Println("may send at:", a.qp.Congestion().Rate)
	for _, q := range a.dev.Queues() {
		fmt.Println("queue", q.Index, "misdirected:", q.Misdirected)
	}
	// Output:
	// paper at 10Gbps, rpg_ai_rate=10Mbps on 2 completion vectors
	// SUCCESS
	// copied: 4096 bytes; CNPs: 0
	// may send at: 10000000000
	// queue 0 misdirected: 0
	// queue 1 misdirected: 0
}
