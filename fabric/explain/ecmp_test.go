package explain

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// paths8 sends 8 flows of 2 MB from leaf 0 to leaf 1 over the given spines; n on
// one of them take n times as long.
func paths8(spines [8]int) *fabric {
	f := spineLeaf(2, 8, 8)
	f.r.Name = "ecmp"
	with := map[int]sim.Time{}
	for _, s := range spines {
		with[s]++
	}
	for i, s := range spines {
		fl := f.flow("perm", i, 8+i, s, 2*mb, 0, ms)
		fl.Finish = fl.Base + (with[s]-1)*(100*g).For(int(wire(2*mb)))
	}
	return f
}

func TestCollisions(t *testing.T) {
	f := paths8([8]int{0, 0, 0, 1, 2, 3, 4, 4})
	s := Explain(&f.r)
	// Up from leaf 0, then nothing to choose: a spine has one link to leaf 1.
	if len(s.Tiers) != 1 {
		t.Fatalf("tiers %+v", s.Tiers)
	}
	x := &s.Tiers[0]
	if x.Flows != 8 || x.Links != 8 || x.Used != 5 || x.Most != 3 || x.Worst.Name != "leaf0:Ethernet8" || x.Crowded != 5 {
		t.Errorf("tier %+v", x)
	}
	// 8 balls in 8 bins: 8(1-(7/8)^8) = 5.25 bins are hit, the fullest has 2.6.
	if math.Abs(x.ExpectedUsed-5.25) > 0.005 || math.Abs(x.Expected-2.6) > 0.05 {
		t.Errorf("expected %g used, %g in the fullest", x.ExpectedUsed, x.Expected)
	}
	if x.Polarised || s.Verdict.Main != MainECMP {
		t.Errorf("polarised %v, main %v", x.Polarised, s.Verdict.Main)
	}
	golden(t, "collisions", text(t, s))
}

func TestPolarised(t *testing.T) {
	f := paths8([8]int{0, 4, 0, 4, 0, 4, 0, 4})
	s := Explain(&f.r)
	x := &s.Tiers[0]
	if !x.Polarised || x.Used != 2 || x.NarrowUsed != 2 || x.Narrow.Name != "leaf0" || s.Verdict.At.Name != "leaf0" {
		t.Errorf("tier %+v", x)
	}
	golden(t, "polarised", text(t, s))
}

// No collision, and one that costs nothing since the link is wide enough.
func TestNoCollision(t *testing.T) {
	f := paths8([8]int{0, 1, 2, 3, 4, 5, 6, 7})
	s := Explain(&f.r)
	if x := &s.Tiers[0]; x.Costs() || x.Polarised || x.Most != 1 || s.Verdict.Main != AllWell {
		t.Errorf("tier %+v, main %v", x, s.Verdict.Main)
	}
	f = paths8([8]int{0, 0, 1, 1, 2, 2, 3, 3})
	for p := range 8 {
		f.port(f.leaf[0], int32(8+p)).Rate = 400 * g
		f.port(f.spine[p], 1).Rate = 400 * g
	}
	if x := Explain(&f.r).Tiers[0]; x.Costs() || x.Crowded != 0 {
		t.Errorf("wide links: %+v", x)
	}
}

// Collisions of flows that are slow at their receiver are not what makes them slow.
func TestCollisionThatCostsNothing(t *testing.T) {
	f := spineLeaf(2, 8, 8)
	for i := range 8 {
		f.flow("incast", i, 8, i/2, mb, 0, 8*(100*g).For(int(wire(mb))))
	}
	if x := Explain(&f.r).Tiers[0]; x.Costs() {
		t.Errorf("tier %+v", x)
	}
}

// The second tier hashes as the first: of each switch's four uplinks only two
// carry anything, since all flows there have the same bit.
func TestSecondTierPolarised(t *testing.T) {
	f := &fabric{builder: newBuilder(), per: 16}
	edge := f.node("edge0", true, 1)
	var agg, core []int32
	for i := range 2 {
		agg = append(agg, f.node([]string{"agg0", "agg1"}[i], true, 2))
	}
	far := f.node("far", true, 2)
	for i := range 8 {
		core = append(core, f.node("core"+string(rune('0'+i)), true, 3))
	}
	dst := f.node("sink", false, 0)
	var hosts []int32
	for i := range 16 {
		hosts = append(hosts, f.node("h"+string(rune('a'+i)), false, 0))
		f.link(edge, hosts[i], 10*g)
	}
	up := []int32{f.link(edge, agg[0], 100*g), f.link(edge, agg[1], 100*g)}
	var to [2][4]int32
	down := make([]int32, 8)
	for i, a := range agg {
		for c := range 4 {
			to[i][c] = f.link(a, core[4*i+c], 100*g)
		}
	}
	for c := range 8 {
		down[c] = f.link(core[c], far, 100*g)
	}
	last := f.link(far, dst, 400*g)
	for i := range 16 {
		a := i % 2     // first hash bit
		c := 2*a + i/8 // the second choice has the first bit again
		f.r.Flows = append(f.r.Flows, result.Flow{
			ID: int32(i), SrcNode: hosts[i], DstNode: dst, Bytes: mb, State: result.Finished, Finish: ms, Base: 900 * us, Delivered: mb,
			Path: []result.Hop{{Node: hosts[i]}, {Node: edge, Port: up[a]}, {Node: agg[a], Port: to[a][c]}, {Node: core[4*a+c], Port: down[4*a+c]}, {Node: far, Port: last}},
		})
	}
	s := Explain(&f.r)
	if len(s.Tiers) != 2 {
		t.Fatalf("tiers %+v", s.Tiers)
	}
	one, two := &s.Tiers[0], &s.Tiers[1]
	if one.Polarised || one.Used != 2 || one.Tier != 1 {
		t.Errorf("first tier %+v", one)
	}
	// 8 flows on 4 links at each of two switches: 2*4(1-(3/4)^8) = 7.2 expected.
	if !two.Polarised || two.Used != 4 || two.Links != 8 || math.Abs(two.ExpectedUsed-7.2) > 0.01 {
		t.Errorf("second tier %+v", two)
	}
}
