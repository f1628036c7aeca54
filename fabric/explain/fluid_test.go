package explain

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"pgregory.net/rapid"
)

// about reports whether a is within one in a million of b.
func about(a, b sim.Time) bool { return max(a-b, b-a) <= b/1_000_000+2 }

// wire of n bytes in frames of 1000 + 48.
func wire(n int64) int64 { return n + (n+999)/1000*48 }

func TestAloneIsBase(t *testing.T) {
	f := spineLeaf(2, 2, 2)
	f.flow("", 0, 2, 0, 2*mb, 5*us, 200*us)
	fl := newFluid(index(&f.r), fluidWork)
	if got, want := fl.ideal(0), f.r.Flows[0].Base; !about(got, want) {
		t.Errorf("ideal %v, want Base %v", got, want)
	}
}

// Two flows of 1 MB to one port, one of which starts when the other is half
// done: each has half until the first ends.
func TestShareChangesWithTime(t *testing.T) {
	f := star(4)
	one := (100 * g).For(int(wire(mb))) // alone
	f.flow("", 1, 0, 0, mb, 0, ms)
	f.flow("", 2, 0, 0, mb, one/2, ms)
	fl := newFluid(index(&f.r), fluidWork)
	// The first: half alone, the other half at half speed. The second: half of
	// itself meanwhile, then the rest alone.
	want := []sim.Time{one/2 + one, one + one/2}
	for i, w := range want {
		if got := fl.done[i] - f.r.Flows[i].Start; !about(got, w) {
			t.Errorf("flow %d: %v, want %v", i, got, w)
		}
	}
}

// A flow that is limited elsewhere leaves its part to the others: max-min and
// not equal shares.
func TestMaxMinNotEqual(t *testing.T) {
	f := star(6)
	// Hosts 1, 2, 3 → 0 share port 0, so 33.3 each; 3 → 4 then has 66.7 of
	// host 3's NIC.
	big := 100 * mb
	for _, p := range [][2]int{{1, 0}, {2, 0}, {3, 0}, {3, 4}} {
		fl := f.flow("", p[0], p[1], 0, big, 0, ms)
		fl.State, fl.Delivered = result.Running, 0
	}
	f.r.End = ms
	fl := newFluid(index(&f.r), fluidWork)
	for i, gbit := range []float64{100. / 3, 100. / 3, 100. / 3, 200. / 3} {
		want := int64(gbit * 1e9 / 8 / 1000) // bytes in 1 ms
		if got := fl.moved[i]; max(got-want, want-got) > 10 {
			t.Errorf("flow %d moved %d bytes, want %d", i, got, want)
		}
	}
}

func TestFlowsOwnLimits(t *testing.T) {
	f := star(3)
	f.r.Nodes[f.host[1]].Host.QPRate = 15 * g
	a := f.flow("", 1, 0, 0, 100*mb, 0, ms)
	a.QPs, a.State = 2, result.Running // 2 * 15
	b := f.flow("", 2, 0, 0, 100*mb, 0, ms)
	b.RateLimit, b.State = 20*g, result.Running
	f.r.End = ms
	fl := newFluid(index(&f.r), fluidWork)
	for i, gbit := range []int64{30, 20} {
		if want := gbit * 1e9 / 8 / 1000; fl.moved[i] != want {
			t.Errorf("flow %d moved %d, want %d", i, fl.moved[i], want)
		}
	}
}

// At every instant the shares are those of package theory.
func TestSharesAgainstTheory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := spineLeaf(rapid.IntRange(1, 3).Draw(t, "leaves"), rapid.IntRange(1, 3).Draw(t, "spines"), 3)
		hosts := len(f.host)
		for range rapid.IntRange(1, 12).Draw(t, "flows") {
			src := rapid.IntRange(0, hosts-1).Draw(t, "src")
			dst := (src + rapid.IntRange(1, hosts-1).Draw(t, "dst")) % hosts
			f.flow("", src, dst, rapid.IntRange(0, len(f.spine)-1).Draw(t, "spine"), mb, 0, ms)
		}
		n := index(&f.r)
		fl := newFluid(n, 0) // shares only
		var act []active
		capacity := make([]float64, len(n.node))
		for e := range capacity {
			capacity[e] = float64(n.port(int32(e)).Rate)
		}
		var demands []theory.Demand
		for i := range n.flows {
			act = append(act, active{flow: int32(i), left: 1, limit: int64(n.qpLimit(&n.flows[i]))})
			var links []int
			for _, e := range n.flows[i].path {
				links = append(links, int(e))
			}
			demands = append(demands, theory.Demand{Links: links})
		}
		fl.shares(act)
		want, _, err := theory.MaxMin(capacity, demands)
		if err != nil {
			t.Fatal(err)
		}
		for i := range act {
			if d := float64(act[i].share) - want[i]; d > 100 || d < -100 { // bit/s: divisions round down
				t.Errorf("flow %d: %d, want %g", i, act[i].share, want[i])
			}
		}
	})
}

// When the work runs out, time goes on in steps; the answer stays near.
func TestCoarse(t *testing.T) {
	f := star(17)
	for i := range 400 {
		f.flow("", 1+i%16, 0, 0, 50*kb, sim.Time(i)*3*us, ms)
	}
	f.r.End = 4 * ms
	n := index(&f.r)
	exact := newFluid(n, fluidWork)
	rough := newFluid(n, exact.work/2)
	if exact.coarse || !rough.coarse {
		t.Fatalf("coarse: %v, %v", exact.coarse, rough.coarse)
	}
	for i := range n.flows {
		a, b := exact.ideal(int32(i)), rough.ideal(int32(i))
		if b == sim.Never || max(a-b, b-a) > a/4+4*ms/fluidSteps {
			t.Errorf("flow %d: %v exactly, %v in steps", i, a, b)
		}
	}
}

// No input makes the computation run for ever.
func TestFluidEnds(t *testing.T) {
	f := star(3)
	fl := f.flow("", 1, 0, 0, 1<<60, 0, ms)
	fl.State = result.Running
	f.flow("", 2, 0, 0, 1<<60, 0, ms)
	f.port(f.leaf[0], 0).Rate = 1
	f.r.Flows = append(f.r.Flows, result.Flow{Bytes: 1 << 62, State: result.Finished, Start: sim.Never - 5, Finish: sim.Never - 1, Path: f.path(1, 0, 0)})
	newFluid(index(&f.r), fluidWork)
}

// A flow without an end takes its share like any other: of two on one port the
// finite one has a half, and is not held back by marks when it gets that.
func TestEndlessFlowsShare(t *testing.T) {
	for _, bytes := range []int64{0, 100 * mb} { // endless, and as good as
		f := star(3)
		long := f.flow("long", 0, 2, 0, 100*mb, 0, 0)
		long.State, long.Finish, long.Received, long.Bytes, long.Delivered = result.Running, sim.Never, sim.Never, bytes, 50*mb
		short := f.flow("short", 1, 2, 0, 10*mb, 0, 2*unit())
		short.CNPsHandled, short.Marks, short.CNPs = 100, 100, 100
		f.r.Shape.Preset = "paper"
		f.r.End = 4 * unit()
		n := index(&f.r)
		fl := newFluid(n, fluidWork)
		half := float64(sim.RateOf(10*mb, unit())) / 2
		if got := float64(fl.share(1)); math.Abs(got/half-1) > 0.002 {
			t.Errorf("beside %d bytes (0: endless) the share is %v, want %v", bytes, fl.share(1), sim.Rate(half))
		}
		// 2 units at a half, then all of the line. (A few us of latency in 1.7 ms: 0.002.)
		want := float64(sim.RateOf(10*mb, unit())) * (0.5*2 + 1*2) / 4
		if got := float64(fl.share(0)); math.Abs(got/want-1) > 0.002 {
			t.Errorf("a flow of %d bytes (0: endless) has the share %v, want %v", bytes, fl.share(0), sim.Rate(want))
		}
		if s := Explain(&f.r); s.Rates != nil && s.Rates.HeldCount != 0 {
			t.Errorf("beside %d bytes (0: endless) %d flows are held below their share", bytes, s.Rates.HeldCount)
		}
	}
}
