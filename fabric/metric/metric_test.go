package metric

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// run is a result worked out by hand: three flows of "a", of which one is not
// finished, one of "b", one switch and one host.
func run() *result.Run {
	us := sim.Microsecond
	r := &result.Run{
		End: 100 * us, DataHops: 7, Events: 9,
		Flows: []result.Flow{
			{Group: "a", State: result.Finished, Start: 0, Finish: 10 * us, Base: 5 * us, Bytes: 100_000, Delivered: 100_000, Marks: 3, CNPs: 2},
			{Group: "a", State: result.Finished, Start: 10 * us, Finish: 50 * us, Base: 50 * us, Bytes: 100_000, Delivered: 100_000, Retransmitted: 4},
			{Group: "a", State: result.Running, Start: 0, Bytes: 1_000_000, Delivered: 250_000, LastRate: 4e9},
			{Group: "b", State: result.Failed, Start: 0, Bytes: 10},
		},
		Nodes: []result.Node{
			{Name: "leaf0", Switch: true, Buffer: result.Buffer{PeakShared: 900, PeakHeadroom: 20}, Ports: []result.Port{
				{Name: "Ethernet0", TxBusy: 25 * us}, {Name: "Ethernet1", TxBusy: 50 * us, LinkErrors: 2},
			}},
			{Name: "host0", Ports: []result.Port{{Name: "eth0"}}, NIC: []result.Counter{{Name: "np_cnp_sent", Value: 5}}},
		},
		Lost:     []result.Counter{{Name: result.DropNoBuffer.String(), Value: 11}, {Name: result.DropError.String(), Value: 2}},
		Lossless: []result.Lossless{{Need: 100, Have: 200, Peak: 50}, {Need: 300, Have: 200, Peak: 200, Dropped: 6}},
		Storms:   make([]result.Storm, 2),
	}
	p := &r.Nodes[0].Ports[1].Prio[3]
	*p = result.PortPrio{TxBytes: 1000, PeakQueue: 700, MeanQueue: 12.5, PauseTx: 3, ResumeTx: 2, PausedFor: 30 * us, Marked: 8, RxDrops: 1, TxDrops: 4}
	r.Nodes[0].Ports[0].Prio[3] = result.PortPrio{TxBytes: 500, PeakQueue: 300, PauseTx: 1, PausedFor: 10 * us}
	return r
}

func TestValues(t *testing.T) {
	us := float64(sim.Microsecond)
	for _, c := range []struct {
		name string
		want float64
		unit Unit
	}{
		{"flow.a.count", 3, Number},
		{"flow.a.finished", 2, Number},
		{"flow.b.failed", 1, Number},
		{"flow.*.count", 4, Number},
		{"flow.a.fct", 40 * us, Time}, // the slowest
		{"flow.a.fct.min", 10 * us, Time},
		{"flow.a.fct.p50", 10 * us, Time}, // nearest rank: the first of two
		{"flow.a.fct.p51", 40 * us, Time},
		{"flow.a.fct.mean", 25 * us, Time},
		{"flow.a.slowdown.max", 2, Number},
		{"flow.a.slowdown.min", 1, Number},       // 40 us of 50 count as 1
		{"flow.a.goodput.max", 80e9, Bits},       // 100 KB in 10 us
		{"flow.a.goodput.min", 20e9, Bits},       // 100 KB in 40 us, and 250 KB in 100 us
		{"flow.a.goodput", 40e9, Bits},           // the mean of 80, 20, 20
		{"flow.a.jain", 14400.0 / 21600, Number}, // 120² / (3 (80² + 20² + 20²))
		{"flow.a.makespan", 100 * us, Time},      // one is not finished
		{"flow.a.marks", 3, Number},
		{"flow.a.cnps", 2, Number},
		{"flow.a.retransmitted", 4, Number},
		{"flow.a.delivered", 450_000, Bytes},
		{"flow.a.rate.max", 4e9, Bits},
		{"queue.leaf0.Ethernet1.p3.max", 700, Bytes},
		{"queue.leaf0.Ethernet1.p3.mean", 12.5, Bytes},
		{"queue.leaf0.*.p3.max", 700, Bytes},
		{"queue.*.*.p3.max", 700, Bytes},
		{"port.leaf0.Ethernet*.p3.tx_bytes", 1500, Bytes},
		{"port.leaf0.Ethernet1.p3.pause_tx", 3, Number},
		{"port.leaf0.*.p3.pause_tx", 4, Number},
		{"port.leaf0.*.p3.paused", 30 * us, Time}, // the longest
		{"port.leaf0.Ethernet1.p3.share", 0.3, Number},
		{"port.leaf0.Ethernet1.p3.drops", 5, Number},
		{"port.leaf0.*.utilisation", 0.5, Number},
		{"port.leaf0.*.errors", 2, Number},
		{"port.leaf0.Ethernet1.rate", 80e6, Bits}, // 1,000 B in 100 us
		{"buffer.leaf0.shared", 900, Bytes},
		{"buffer.*.headroom", 20, Bytes},
		{"nic.host0.np_cnp_sent", 5, Number},
		{"nic.*.np_cnp_sent", 5, Number},
		{"nic.host0.nothing", 0, Number},
		{"pauses", 4, Number},
		{"resumes", 2, Number},
		{"marks", 8, Number},
		{"cnps", 2, Number},
		{"drops.no_buffer", 11, Number},
		{"drops.fcs_error", 2, Number},
		{"drops.link_down", 0, Number},
		{"drops.lossless", 6, Number},
		{"headroom.violated", 100, Bytes},
		{"headroom.used", 1, Number},
		{"storms", 2, Number},
		{"deadlocks", 0, Number},
		{"hops", 7, Number},
		{"end", 100 * us, Time},
		{"failed", 1, Number},
	} {
		v, err := Of(run(), c.name)
		if err != nil || math.Abs(v.V-c.want) > 1e-9*math.Abs(c.want) || v.Unit != c.unit {
			t.Errorf("%s is %v %v, want %v %v", c.name, v, err, c.want, c.unit)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"", `metric "": unknown`},
		{"nonsense", `metric "nonsense": unknown`},
		{"pauses.all", `metric "pauses.all": unknown`},
		{"flow.a", `metric "flow.a": give a workload and a quantity, as in flow.long.goodput`},
		{"flow.c.fct", `metric "flow.c.fct": no flow is of workload "c"`},
		{"flow.a.speed", `metric "flow.a.speed": unknown quantity "speed"`},
		{"flow.a.fct.p101", `metric "flow.a.fct.p101": unknown statistic "p101": give min, max, mean, sum or p1 to p100`},
		{"flow.a.fct.", `metric "flow.a.fct.": unknown statistic "": give min, max, mean, sum or p1 to p100`},
		{"flow.a.fct.max.min", `metric "flow.a.fct.max.min": unknown statistic "max.min"`},
		{"flow.b.fct", `metric "flow.b.fct": no flow of "b" has a fct: none is finished`},
		{"queue.leaf0.Ethernet1.max", `metric "queue.leaf0.Ethernet1.max": give a node, a port and a priority, as in queue.leaf0.Ethernet3.p3.max`},
		{"queue.leaf9.Ethernet1.p3.max", `metric "queue.leaf9.Ethernet1.p3.max": there is no port Ethernet1 of leaf9`},
		{"queue.leaf0.Ethernet1.p3.min", `metric "queue.leaf0.Ethernet1.p3.min": unknown quantity "min"`},
		{"port.leaf0.Ethernet1.p3", `metric "port.leaf0.Ethernet1.p3": unknown quantity "p3"`},
		{"drops.bad", `metric "drops.bad": unknown reason "bad"`},
		{"buffer.host0.shared", `metric "buffer.host0.shared": there is no switch "host0"`},
		{"nic.leaf0.x", `metric "nic.leaf0.x": there is no host "leaf0"`},
		{"headroom.much", `metric "headroom.much": unknown "much"`},
	} {
		v, err := Of(run(), c.name)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v %v, want %s", c.name, v, err, c.want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("flow.a.fct.p50")
	f.Add("port.*.*.p3.share")
	r := run()
	f.Fuzz(func(t *testing.T, name string) {
		if v, err := Of(r, name); err == nil && math.IsNaN(v.V) {
			t.Errorf("%q is not a number", name)
		}
	})
}
