package explain

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// What NICs can bring at once is a maximum flow: as much as the narrowest cut lets
// through, found by looking at all of them.
func TestOfferIsTheNarrowestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nics, ins := rapid.IntRange(1, 6).Draw(t, "nics"), rapid.IntRange(1, 5).Draw(t, "ins")
		rates := rapid.SliceOfN(rapid.IntRange(0, 4), nics+ins, nics+ins).Draw(t, "rates")
		f := newBuilder()
		sw := f.node("sw", true, 1)
		for i := range nics + ins {
			f.link(sw, f.node("n", false, 0), sim.Rate(rates[i])*100*g)
		}
		n := index(&f.r)
		o := offer{n: n}
		var joined [][2]int
		for range rapid.IntRange(0, 20).Draw(t, "flows") {
			w := [2]int{rapid.IntRange(0, nics-1).Draw(t, "nic"), rapid.IntRange(0, ins-1).Draw(t, "in")}
			joined = append(joined, w)
			o.way(n.egress(sw, int32(w[0])), n.egress(sw, int32(nics+w[1])))
		}
		want := sim.Rate(-1)
		for cut := range 1 << ins {
			sum := sim.Rate(0)
			for k := range ins {
				if cut>>k&1 != 0 {
					sum += sim.Rate(rates[nics+k]) * 100 * g
				}
			}
			closed := map[int]bool{}
			for _, w := range joined {
				if cut>>w[1]&1 == 0 && !closed[w[0]] {
					closed[w[0]] = true
					sum += sim.Rate(rates[w[0]]) * 100 * g
				}
			}
			if want < 0 || sum < want {
				want = sum
			}
		}
		if got := o.most(); got != want {
			t.Fatalf("%d NICs by %d ports, rates %v, ways %v: %v, want %v", nics, ins, rates, joined, got, want)
		}
	})
}

// A sender whose first flow shares a port with another sender's fills its other one
// with its second: that is more than the egress takes.
func TestSenderOfTwoPorts(t *testing.T) {
	f := spineLeaf(2, 2, 2)
	f.flow("long", 0, 2, 0, 20*mb, 0, 4*ms)
	f.flow("burst", 1, 2, 0, mb, 0, ms)
	f.flow("burst", 1, 2, 1, mb, 0, ms)
	f.stop(f.leaf[1], 2, 0, false, 100*us, 500*us)
	s := Explain(f.sorted())
	if c := &s.Trees[0].Cause; c.Kind != Incast || c.Senders != 2 || c.InPorts != 2 || c.Ratio != 2 || c.Before {
		t.Errorf("cause %+v", c)
	}
}

// Senders that met before the first stop left a queue that stands, since what comes
// now is as fast as the egress: they are the cause, and it is said when.
func TestQueueOfBefore(t *testing.T) {
	f := star(3)
	f.flow("long", 1, 0, 0, 20*mb, 0, 4*ms)
	f.flow("burst", 2, 0, 0, mb, 0, 200*us)
	f.stop(f.leaf[0], 1, 0, false, ms, 500*us)
	s := Explain(f.sorted())
	if c := &s.Trees[0].Cause; c.Kind != Incast || c.Senders != 2 || !c.Before {
		t.Errorf("cause %+v", c)
	}
	if got := text(t, s); !strings.Contains(strings.Join(strings.Fields(got), " "), "2 x its 100 Gb/s, before the first stop: what they left was still in the queue") {
		t.Error(got)
	}
}
