package fabric

import (
	"runtime"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

func BenchmarkFatTree(b *testing.B) {
	for _, k := range []int{16, 36} {
		b.Run(map[int]string{16: "1024", 36: "11664"}[k], func(b *testing.B) {
			for b.Loop() {
				g, err := topo.FatTree{K: k, Rate: 100 * sim.Gbps, Delay: sim.Microsecond}.Build()
				if err != nil {
					b.Fatal(err)
				}
				sc, err := scenario.ParseSet("x.yaml", []byte("name: x\npacket: {payload: 1000, header: 48, gap: false, control: 64}\nrecord: {series: none}\nhost: {dcqcn: {preset: hpcc}}"), nil)
				if err != nil {
					b.Fatal(err)
				}
				rnd := sim.NewRand(1, "perm")
				n := len(g.Endpoints)
				p := make([]int32, n)
				for i := range p {
					p[i] = int32(i)
				}
				rnd.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
				var flows []work.Flow
				for i := range p {
					flows = append(flows, work.Flow{Src: p[i], Dst: p[(i+1)%n], Bytes: 1_000_000, Prio: -1, DSCP: -1})
				}
				var m0, m1 runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m0)
				_, res := finish(b, sc, g, flows)
				runtime.ReadMemStats(&m1)
				b.ReportMetric(float64(res.Events), "events")
				b.ReportMetric(float64(res.DataHops), "hops")
				b.ReportMetric(res.End.Micros(), "us")
				b.ReportMetric(float64(m1.Sys)/1e6, "MBsys")
			}
		})
	}
}
