package theory_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

var approx = cmpopts.EquateApprox(1e-12, 0)

func TestMaxMin(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity []float64
		flows    []theory.Demand
		rates    []float64
		at       []int
	}{
		{
			"N flows into one link have C/N",
			[]float64{40},
			[]theory.Demand{{Links: []int{0}}, {Links: []int{0}}, {Links: []int{0}}, {Links: []int{0}}},
			[]float64{10, 10, 10, 10},
			[]int{0, 0, 0, 0},
		},
		{
			// Bertsekas and Gallager, Data Networks, figure 6.9's kind: the long
			// flow is held at the link of three, the others take what is left.
			"parking lot",
			[]float64{1, 1, 2},
			[]theory.Demand{{Links: []int{0, 1, 2}}, {Links: []int{0}}, {Links: []int{1}}, {Links: []int{1}}, {Links: []int{2}}},
			[]float64{1. / 3, 2. / 3, 1. / 3, 1. / 3, 5. / 3},
			[]int{1, 0, 1, 1, 2},
		},
		{
			"weights",
			[]float64{12},
			[]theory.Demand{{Links: []int{0}, Weight: 1}, {Links: []int{0}, Weight: 2}, {Links: []int{0}, Weight: 3}},
			[]float64{2, 4, 6},
			[]int{0, 0, 0},
		},
		{
			"a limit leaves the rest to the others",
			[]float64{100},
			[]theory.Demand{{Links: []int{0}, Limit: 10}, {Links: []int{0}}, {Links: []int{0}}},
			[]float64{10, 45, 45},
			[]int{theory.NoLink, 0, 0},
		},
		{
			"a flow by itself has its limit", nil,
			[]theory.Demand{{Limit: 7}},
			[]float64{7},
			[]int{theory.NoLink},
		},
		{
			"a link that is down",
			[]float64{0, 5},
			[]theory.Demand{{Links: []int{0, 1}}, {Links: []int{1}}},
			[]float64{0, 5},
			[]int{0, 1},
		},
		{"nobody", []float64{1}, nil, []float64{}, []int{}},
	} {
		rates, at, err := theory.MaxMin(c.capacity, c.flows)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.rates, rates, approx) + cmp.Diff(c.at, at); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// What makes rates max-min fair: no link carries more than it can, and every flow
// is at its limit or has a link that is full and on which nobody has more for
// their weight (Bertsekas and Gallager §6.5.2).
func TestMaxMinHasBottlenecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SliceOfN(rapid.Float64Range(1, 400), 1, 8).Draw(t, "capacity")
		flows := make([]theory.Demand, rapid.IntRange(1, 20).Draw(t, "flows"))
		for f := range flows {
			flows[f].Links = rapid.SliceOfNDistinct(rapid.IntRange(0, len(capacity)-1), 1, len(capacity), rapid.ID).Draw(t, "links")
			flows[f].Weight = rapid.SampledFrom([]float64{0, 1, 2, 0.5}).Draw(t, "weight")
			flows[f].Limit = rapid.SampledFrom([]float64{0, 0, 3, 50}).Draw(t, "limit")
		}
		rates, at, err := theory.MaxMin(capacity, flows)
		if err != nil {
			t.Fatal(err)
		}
		level := func(f int) float64 {
			if flows[f].Weight == 0 {
				return rates[f]
			}
			return rates[f] / flows[f].Weight
		}
		used, top := make([]float64, len(capacity)), make([]float64, len(capacity))
		for f := range flows {
			for _, l := range flows[f].Links {
				used[l] += rates[f]
				top[l] = max(top[l], level(f))
			}
		}
		for l := range capacity {
			if used[l] > capacity[l]*(1+1e-9) {
				t.Fatalf("link %d of %g carries %g", l, capacity[l], used[l])
			}
		}
		for f := range flows {
			if at[f] == theory.NoLink {
				if math.Abs(rates[f]-flows[f].Limit) > 1e-9*flows[f].Limit {
					t.Fatalf("flow %d has %g, neither held by a link nor at its limit %g", f, rates[f], flows[f].Limit)
				}
				continue
			}
			if l := at[f]; used[l] < capacity[l]*(1-1e-9) || level(f) < top[l]*(1-1e-9) {
				t.Fatalf("flow %d at %g: link %d of %g carries %g, its highest level is %g", f, rates[f], l, capacity[l], used[l], top[l])
			}
		}
	})
}

func TestMaxMinErrors(t *testing.T) {
	one := []theory.Demand{{Links: []int{0}}}
	for want, f := range map[string]func() error{
		"link 0: capacity -1":  func() error { _, _, err := theory.MaxMin([]float64{-1}, one); return err },
		"link 0: capacity NaN": func() error { _, _, err := theory.MaxMin([]float64{math.NaN()}, one); return err },
		"flow 0: link 0 is":    func() error { _, _, err := theory.MaxMin(nil, one); return err },
		"flow 0: weight -1": func() error {
			_, _, err := theory.MaxMin([]float64{1}, []theory.Demand{{Links: []int{0}, Weight: -1}})
			return err
		},
		"flow 0 crosses no link": func() error { _, _, err := theory.MaxMin(nil, []theory.Demand{{}}); return err },
		"crosses link 0 twice": func() error {
			_, _, err := theory.MaxMin([]float64{1}, []theory.Demand{{Links: []int{0, 0}}})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestJain(t *testing.T) {
	near(t, "equal", theory.Jain([]float64{3, 3, 3}), 1, 1e-12)
	near(t, "one has all", theory.Jain([]float64{5, 0, 0, 0}), 0.25, 1e-12)
	near(t, "1 2 3", theory.Jain([]float64{1, 2, 3}), 36./42, 1e-12)
	near(t, "nothing", theory.Jain(nil), 1, 0)
}

// SIGCOMM'15 DCQCN §2.2: k ports in backlog have 1/k each, so a port with m
// flows gives each 1/(k m).
func TestPortFair(t *testing.T) {
	// Figure 3's switch T4 at 40 Gb/s: H4 alone on its port, the others behind two
	// uplinks. H4 has the most, whatever ECMP did.
	for _, c := range []struct {
		flows []int
		want  []float64
	}{
		{[]int{1, 2, 1}, []float64{40. / 3, 20. / 3, 40. / 3}},
		{[]int{1, 3, 0}, []float64{20, 20. / 3, 0}},
		{[]int{4}, []float64{10}},
		{[]int{0}, []float64{0}},
	} {
		if d := cmp.Diff(c.want, theory.PortFlows(40, c.flows), approx); d != "" {
			t.Errorf("%v: %s", c.flows, d)
		}
	}
	if d := cmp.Diff([]float64{5, 17.5, 17.5}, theory.PortFair(40, []float64{5, 40, math.Inf(1)}), approx); d != "" {
		t.Error(d)
	}
}

func TestParkingLot(t *testing.T) {
	for _, c := range []struct {
		local []int
		want  []float64
	}{
		// Three switches with one host each: the far two share what the uplink
		// has, which is half of a half.
		{[]int{1, 1, 1}, []float64{0.25, 0.25, 0.5}},
		{[]int{1, 1, 1, 1}, []float64{0.125, 0.125, 0.25, 0.5}},
		{[]int{3}, []float64{1. / 3}},
		{[]int{2, 0, 1}, []float64{0.25, 0, 0.5}},
		{[]int{0, 1}, []float64{0, 1}},
		{[]int{0, 0}, []float64{0, 0}},
		{nil, []float64{}},
	} {
		got := theory.ParkingLot(1, c.local)
		if d := cmp.Diff(c.want, got, approx); d != "" {
			t.Errorf("%v: %s", c.local, d)
		}
		sum := 0.0
		for i, v := range got {
			sum += v * float64(c.local[i])
		}
		if sum != 0 {
			near(t, "the link is full", sum, 1, 1e-12)
		}
	}
}

func TestETS(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name    string
		classes []theory.Class
		want    []float64
	}{
		{"by weight", []theory.Class{{Weight: 50, Demand: inf}, {Weight: 30, Demand: inf}, {Weight: 20, Demand: inf}}, []float64{50, 30, 20}},
		{"strict first", []theory.Class{{Weight: 50, Demand: inf}, {Strict: true, Demand: 10}, {Weight: 50, Demand: inf}}, []float64{45, 10, 45}},
		{"strict starves", []theory.Class{{Strict: true, Demand: inf}, {Weight: 1, Demand: inf}}, []float64{100, 0}},
		{"two strict, in order", []theory.Class{{Strict: true, Demand: 70}, {Strict: true, Demand: 70}}, []float64{70, 30}},
		// 50:30:20 with 10 wanted of 50: 40 to share 3:2.
		{"what one leaves, the others share", []theory.Class{{Weight: 50, Demand: 10}, {Weight: 30, Demand: inf}, {Weight: 20, Demand: inf}}, []float64{10, 54, 36}},
		{"all content", []theory.Class{{Weight: 1, Demand: 5}, {Weight: 9, Demand: 6}}, []float64{5, 6}},
		{"idle", []theory.Class{{Weight: 1}, {Weight: 1, Demand: inf}}, []float64{0, 100}},
	} {
		if d := cmp.Diff(c.want, theory.ETS(100, c.classes), approx); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
