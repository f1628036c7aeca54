package report_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// The table of ranks of the definition: of five values the 30th percentile is
// the 2nd, because ceil(0.3·5) = 2.
func TestPercentile(t *testing.T) {
	v := []int{15, 20, 35, 40, 50}
	for percent, want := range map[int]int{0: 15, 5: 15, 20: 15, 21: 20, 30: 20, 40: 20, 50: 35, 99: 50, 100: 50} {
		if got := report.Percentile(v, percent); got != want {
			t.Errorf("p%d is %d, want %d", percent, got, want)
		}
	}
	if got := report.Percentile[int](nil, 50); got != 0 {
		t.Errorf("of none: %d", got)
	}
}

// At least percent of the values are not greater, and it is the least such.
func TestPercentileIsNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 60).Draw(t, "v")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		slices.Sort(v)
		got := report.Percentile(v, percent)
		share := func(x int) int { // hundredfold count of values up to x
			n := 0
			for _, y := range v {
				if y <= x {
					n++
				}
			}
			return 100 * n
		}
		if share(got) < percent*len(v) {
			t.Fatalf("p%d of %v is %d: too low", percent, v, got)
		}
		for _, x := range v {
			if x < got && share(x) >= percent*len(v) {
				t.Fatalf("p%d of %v is %d, but %d would do", percent, v, got, x)
			}
		}
	})
}

func TestGroups(t *testing.T) {
	gs := report.Groups(sample())
	var names []string
	for _, g := range gs {
		names = append(names, g.Name)
	}
	if diff := cmp.Diff([]string{"incast", "victim", "tail", "all"}, names); diff != "" {
		t.Fatal(diff)
	}
	in := gs[0]
	// FCTs are 342.000999 to 345.000999 us; nearest rank of 4: p50 the 2nd,
	// p99 the 4th.
	if in.Min != 342*us+999 || in.P50 != 343*us+999 || in.P99 != 345*us+999 || in.Max != 345*us+999 {
		t.Errorf("FCTs of incast: %v %v %v %v", in.Min, in.P50, in.P99, in.Max)
	}
	if want := (342+343+344+345)*us/4 + 999; in.Mean != want {
		t.Errorf("mean %d, want %d", in.Mean, want)
	}
	// 4 MB in 345.000999 us are 32e6 bit / 345.000999e-6 s.
	if want := sim.Rate(92753354); in.Goodput/1000 != want {
		t.Errorf("goodput %d kb/s, want %d", in.Goodput/1000, want)
	}
	tail := gs[2]
	if tail.Flows != 3 || tail.Finished != 0 || tail.Running != 1 || tail.Failed != 1 || tail.NotBegun != 1 || tail.P50 != sim.Never || tail.SlowP50 != 0 {
		t.Errorf("tail: %+v", tail)
	}
	// 1 MB from 100 us to the end at 500 us.
	if want := 20 * sim.Gbps; tail.Goodput != want {
		t.Errorf("goodput of what runs: %v, want %v", tail.Goodput, want)
	}
	if all := gs[3]; all.Flows != 8 || all.Bytes != 18e6 {
		t.Errorf("all: %+v", all)
	}
}

// Means of long times do not overflow.
func TestMeanDoesNotOverflow(t *testing.T) {
	r := &result.Run{}
	long := sim.Never/2 + 1
	for i := range 4 {
		r.Flows = append(r.Flows, result.Flow{ID: int32(i), State: result.Finished, Finish: long, Base: 1})
	}
	if g := report.Groups(r)[0]; g.Mean != long || g.Name != "flows" {
		t.Errorf("mean %v, want %v", g.Mean, long)
	}
}

// Forty flows make twenty shares of two: nearest rank gives the lower as the
// median and the upper as p95 and p99. A flow that is faster than the idle
// network counts as 1.
func TestSlowdowns(t *testing.T) {
	r := &result.Run{}
	for i := range 40 {
		f := result.Flow{ID: int32(i), State: result.Finished, Bytes: int64(39-i) * 1000, Base: 10 * us, Finish: sim.Time(i+1) * 5 * us}
		r.Flows = append(r.Flows, f)
	}
	r.Flows = append(r.Flows, result.Flow{State: result.Running, Bytes: 1, Base: us})
	rows := report.Slowdowns(r)
	if len(rows) != 20 {
		t.Fatalf("%d rows", len(rows))
	}
	// Smallest: flows 39 and 38, FCT 200 and 195 us over 10 us.
	want := report.SlowdownRow{From: 0, Flows: 2, Size: 1000, P50: 19.5, P95: 20, P99: 20}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Error(diff)
	}
	// Largest: flows 1 and 0, FCT 10 and 5 us: 1 and 0.5, which counts as 1.
	want = report.SlowdownRow{From: 95, Flows: 2, Size: 39000, P50: 1, P95: 1, P99: 1}
	if diff := cmp.Diff(want, rows[19]); diff != "" {
		t.Error(diff)
	}
	got := string(written(t, writeWith(r, func(w writer, r *result.Run) error { return report.WriteSlowdown(w, report.Slowdowns(r)[:2]) })))
	if want := "0.000 1000\t19.500 20.000 20.000\n0.050 3000\t18.500 19.000 19.000\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Fewer than twenty flows leave shares empty; each flow is still in one.
func TestSlowdownsOfFew(t *testing.T) {
	for n := range 25 {
		r := &result.Run{}
		for range n {
			r.Flows = append(r.Flows, result.Flow{State: result.Finished, Base: us, Finish: us})
		}
		sum := 0
		for _, row := range report.Slowdowns(r) {
			sum += row.Flows
		}
		if sum != n {
			t.Errorf("%d flows, %d in the table", n, sum)
		}
	}
}
