package truth

import (
	"fmt"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// The reaction points of docs/truth.md, C.
var points = map[string][]string{
	"5/50":   sets("host.dcqcn.preset=hpcc host.dcqcn.rpg_ai_rate=5Mbps host.dcqcn.rpg_hai_rate=50Mbps"),
	"20/200": sets("host.dcqcn.preset=hpcc"),
	"form":   sets("host.dcqcn.preset=hpcc host.dcqcn.dce_tcp_rtt=50us host.dcqcn.rate_reduce_monitor_period=50us host.dcqcn.rpg_time_reset=55us"),
	"nocc":   {`host.dcqcn.preset="off"`, "switch.ecn.priorities=none"},
	"paper":  sets("host.dcqcn.preset=paper"),
	"mlx5":   sets("host.dcqcn.preset=mlx5"),
}

// step is marking by step at k KB.
func step(k int) []string {
	return sets("switch.ecn.kmin=%dKB switch.ecn.kmax=%dKB switch.ecn.pmax=1", k, k)
}

// burst is a periodic message into the port that the long flow needs.
type burst struct {
	bytes int64
	every sim.Time
}

// crossed runs one long flow host0 → host8 beside bursts host16 → host8.
func crossed(t testing.TB, k int, point string, long int64, b burst) *result.Run {
	t.Helper()
	r := load(t, "t32", append(step(k), points[point]...)...)
	var bursts work.Stream = &work.List{}
	if b.bytes > 0 {
		var err error
		if bursts, err = (work.Bursts{Src: 16, Dst: 8, Bytes: b.bytes, Every: b.every, As: work.Flow{Prio: -1, DSCP: -1, Group: "burst"}}).Stream(sim.NewRand(1, "bursts")); err != nil {
			t.Fatal(err)
		}
	}
	both := work.Merge(&work.List{Flows: []work.Flow{write(0, 8, long, "long")}}, bursts)
	res := end(t, r.compose(t, both))
	lossless(t, res)
	if len(res.Pauses) != 0 {
		t.Errorf("K %d KB: %d pauses", k, len(res.Pauses))
	}
	return res
}

// goodputOf returns the long flow's, in Gb/s, and the 99th percentile of the
// bursts that have ended before it, in us.
func goodputOf(t testing.TB, res *result.Run) (gbps, p99 float64) {
	t.Helper()
	long := &res.Flows[0]
	if long.Group != "long" || long.State != result.Finished {
		t.Fatalf("long flow: %v", long.Status)
	}
	var all []sim.Time
	for i := range res.Flows {
		if f := &res.Flows[i]; f.Group == "burst" && f.State == result.Finished && f.Finish <= long.Finish {
			all = append(all, f.FCT())
		}
	}
	slices.Sort(all)
	if len(all) > 0 {
		p99 = all[theory.PercentileIndex(len(all), 0.99)].Micros()
	}
	return float64(metric.Goodput(res, long)) / 1e9, p99
}

// story says why, for the table.
func story(res *result.Run) string {
	f := &res.Flows[0]
	return fmt.Sprintf("marks %d, notified %d, cuts %d, clamps %d, AI %d, HAI %d", f.Marks, f.CNPsHandled, f.Cuts, f.Clamps, f.Additive, f.Hyper)
}

// C1a: alone, nothing marks.
func TestC1Alone(t *testing.T) {
	res := crossed(t, 8, "5/50", 25*megabyte, burst{})
	want := path(4, 100*sim.Gbps, sim.Microsecond).Completion(hpccPackets, 25*megabyte, hpccAck)
	if got := int64(res.Flows[0].FCT()); got != want || res.Flows[0].Marks != 0 {
		t.Errorf("C1a: %d ps, %d marks; want %d, none", got, res.Flows[0].Marks, want)
	}
}

// C1b–C1e: a threshold below the bursts holds the long flow down.
func TestC1Thresholds(t *testing.T) {
	for _, c := range []struct {
		row, point string
		long       int64
		b          burst
		want       [2]float64 // at 8 and 256 KB
	}{
		{"C1b", "20/200", 100 * megabyte, burst{64_000, 500 * sim.Microsecond}, [2]float64{32.6, 86.3}},
		{"C1c", "form", 100 * megabyte, burst{64_000, 500 * sim.Microsecond}, [2]float64{79.3, 93.1}},
		{"C1d", "5/50", 200 * megabyte, burst{32_000, 100 * sim.Microsecond}, [2]float64{25.3, 85.7}},
		{"C1e", "5/50", 200 * megabyte, burst{128_000, 400 * sim.Microsecond}, [2]float64{7.7, 85.4}},
	} {
		for i, k := range []int{8, 256} {
			t.Run(fmt.Sprintf("%s/%dKB", c.row, k), func(t *testing.T) {
				res := crossed(t, k, c.point, c.long, c.b)
				g, p99 := goodputOf(t, res)
				near(t, c.row, fmt.Sprintf("goodput at %d KB", k), g, c.want[i], 0.15)
				t.Logf("p99 %.1f us; %s", p99, story(res))
			})
		}
	}
}

// C1f–C1h: the sweep and its knee.
func TestC1Sweep(t *testing.T) {
	goodput := []float64{28.3, 46.6, 82.3, 79.5, 81.0, 81.2, 83.3}
	short := []float64{11.9, 12.2, 13.5, 14.1, 18.2, 26.8, 42.8}
	var got []float64
	for i, k := range []int{8, 16, 32, 64, 128, 256, 512} {
		res := crossed(t, k, "5/50", 50*megabyte, burst{32_000, 100 * sim.Microsecond})
		g, p99 := goodputOf(t, res)
		near(t, "C1f", fmt.Sprintf("goodput at %d KB", k), g, goodput[i], 0.15)
		t.Logf("C1g | p99 at %d KB | %.1f | %.1f | %+.1f %%", k, short[i], p99, 100*off(p99, short[i]))
		if k <= 32 { // beyond, theirs is of more bursts than those beside the flow
			near(t, "C1g", fmt.Sprintf("p99 at %d KB", k), p99, short[i], 0.15)
		} else {
			near(t, "C1g", fmt.Sprintf("p99 at %d KB, no worse", k), p99, short[i], 0.35)
		}
		t.Log(story(res))
		got = append(got, g)
	}
	for i, g := range got {
		if below := i < 2; below && g > 0.6*got[6] || !below && g < 0.9*got[6] {
			t.Errorf("C1h: %.1f Gb/s at step %d, %.1f at the last: the knee is elsewhere", g, i, got[6])
		}
	}
}
