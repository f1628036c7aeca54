package truth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// The two forms of the reaction point of docs/truth.md, B.
var forms = map[string][]string{
	"paper": sets("host.dcqcn.preset=paper host.dcqcn.rpg_hai_rate=40Mbps host.dcqcn.rpg_min_rate=10Mbps host.rdma.ack_every=16"),
	"hpcc": sets("host.dcqcn.preset=hpcc host.dcqcn.clamp_tgt_rate=true host.dcqcn.rpg_threshold=5 host.dcqcn.rpg_time_reset=55us host.dcqcn.dce_tcp_rtt=55us " +
		"host.dcqcn.rate_reduce_monitor_period=50us host.dcqcn.rpg_ai_rate=40Mbps host.dcqcn.rpg_hai_rate=40Mbps host.dcqcn.rpg_min_rate=10Mbps"),
}

// bStar is n senders and host0 with DCQCN in one of the forms.
func bStar(t testing.TB, form string, gbps, n int, more ...string) rig {
	t.Helper()
	set := append(sets("topology.hosts=%d topology.rate=%dGbps switch.buffer.total=32MB switch.buffer.alpha=1/8 switch.buffer.reserved=4KB "+
		"switch.ecn.priorities=[3] switch.ecn.kmin=5KB switch.ecn.kmax=200KB switch.ecn.pmax=0.01 until=duration duration=100ms", n+1, gbps), forms[form]...)
	set = append(set, "record={series: [queue], interval: 1us, max_samples: 200000, ports: [sw0/Ethernet0]}")
	return load(t, "star", append(set, more...)...)
}

func senders(n int) []work.Flow {
	var flows []work.Flow
	for i := range n {
		flows = append(flows, forever(int32(i+1), 0, "long"))
	}
	return flows
}

// level is what a queue did.
type level struct{ mean, sd, p50, p90, p99, empty float64 }

// queueOf returns what the sampled queue did from an instant on, in KB.
func queueOf(t testing.TB, res *result.Run, from sim.Time) level {
	t.Helper()
	for i := range res.Series {
		s := &res.Series[i]
		if s.Kind != result.QueueBytes || s.Prio != 3 {
			continue
		}
		v := slices.Clone(s.Values[(from-s.Start)/s.Step:])
		var l level
		for _, x := range v {
			l.mean += float64(x)
			if x == 0 {
				l.empty++
			}
		}
		n := float64(len(v))
		l.mean /= n
		for _, x := range v {
			l.sd += (float64(x) - l.mean) * (float64(x) - l.mean)
		}
		slices.Sort(v)
		at := func(p float64) float64 { return float64(v[int(n*p)]) / 1e3 }
		return level{l.mean / 1e3, math.Sqrt(l.sd/n) / 1e3, at(0.5), at(0.9), at(0.99), l.empty / n}
	}
	t.Fatal("no queue was sampled")
	return level{}
}

func (l level) String() string {
	return fmt.Sprintf("mean %.1f sd %.1f p50/90/99 %.0f/%.0f/%.0f empty %.1f %%", l.mean, l.sd, l.p50, l.p90, l.p99, 100*l.empty)
}

// model is the parameters of CoNEXT'16 with our packet.
func model(gbps, n int) theory.DCQCN {
	d := theory.PaperDCQCN(float64(gbps)*1e9, n)
	d.PacketBytes = 1048
	return d
}

// TestBFixedPoint runs the rows of table B.
func TestBFixedPoint(t *testing.T) {
	for _, c := range []struct {
		row     string
		gbps, n int
		more    []string
		want    float64 // KB; 0: the exact root
		within  float64 // 0: nothing is demanded
		sd      bool    // the ranges of an unstable loop
	}{
		{row: "B1", gbps: 40, n: 2, within: 0.05},
		{row: "B2", gbps: 40, n: 3, within: 0.05},
		{row: "B3", gbps: 40, n: 4, within: 0.05},
		{row: "B4", gbps: 25, n: 2, within: 0.05},
		{row: "B5", gbps: 25, n: 3, within: 0.05},
		{row: "B6", gbps: 50, n: 4, within: 0.05},
		{row: "B7", gbps: 50, n: 5, within: 0.05},
		{row: "B8", gbps: 100, n: 5},
		{row: "B9", gbps: 100, n: 8},
		{row: "B10", gbps: 100, n: 2, want: 8.4, within: 0.2},
		{row: "B11", gbps: 100, n: 16, want: 77.5, within: 0.2},
		{row: "B12", gbps: 100, n: 32, want: 57.5, within: 0.2},
		{row: "B13", gbps: 40, n: 8, want: 65, within: 15. / 65, sd: true},
		{row: "B14", gbps: 40, n: 10, want: 65, within: 15. / 65, sd: true},
		{row: "B15", gbps: 40, n: 16, want: 65, within: 15. / 65, sd: true},
		{row: "B16", gbps: 40, n: 4, more: sets("host.dcqcn.clamp_tgt_rate=false host.dcqcn.clamp_tgt_rate_after_time_inc=true"), want: 53.98, within: 0.05},
	} {
		for _, form := range []string{"paper", "hpcc"} {
			t.Run(c.row+"/"+form, func(t *testing.T) {
				res := bStar(t, form, c.gbps, c.n, c.more...).run(t, senders(c.n))
				l := queueOf(t, res, 50*sim.Millisecond)
				t.Logf("%s %s: %d Gb/s, %d flows: %v", c.row, form, c.gbps, c.n, l)
				want := c.want
				if want == 0 {
					p, err := model(c.gbps, c.n).FixedPoint()
					if err != nil {
						t.Fatal(err)
					}
					want = p.Queue / 1e3
				}
				if c.within == 0 {
					t.Logf("%s | mean KB | %.5g | %.5g | %+.2f %% | –", c.row, want, l.mean, 100*off(l.mean, want))
					return
				}
				near(t, c.row, "mean KB", l.mean, want, c.within)
				if c.sd {
					near(t, c.row, "sd KB", l.sd, 72.5, 7.5/72.5)
				}
			})
		}
	}
}
