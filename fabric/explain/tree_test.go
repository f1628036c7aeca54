package explain

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// spread is 16 senders of leaves 1 and 2 to host 0, and a victim from host 8
// to host 24: leaf 0 stops the spines, they stop the leaves, those the hosts.
func spread() *fabric {
	f := spineLeaf(4, 4, 8)
	f.r.Name = "victims"
	f.r.End = 6 * ms
	for i := range 16 {
		f.flow("incast", 8+i, 0, i%4, 4*mb, 0, 5400*us)
	}
	// Over spine 0, where its way up is stopped for host 0's sake.
	f.flow("victim", 8, 24, 0, 2*mb, 0, 1900*us)
	f.port(f.leaf[0], 0).Prio[3].PeakQueue = 1200 * kb
	for k := range 5 {
		at := 100*us + sim.Time(k)*ms
		for s := range 4 {
			f.stop(f.leaf[0], int32(8+s), 0, false, at, 800*us)
			for l := 1; l <= 2; l++ {
				f.stop(f.spine[s], f.down(l), f.down(0), true, at+50*us, 700*us)
			}
		}
		for h := range 16 {
			f.stop(f.leaf[1+h/8], int32(h%8), int32(8+h%4), true, at+100*us, 600*us)
		}
	}
	return f
}

func TestPauseTree(t *testing.T) {
	f := spread()
	s := Explain(f.sorted())
	if len(s.Trees) != 1 {
		t.Fatalf("%d trees, want 1", len(s.Trees))
	}
	tree := &s.Trees[0]
	if tree.Root.Name != "leaf0:Ethernet0" || tree.Depth() != 3 {
		t.Errorf("root %s, depth %d; want leaf0:Ethernet0, 3", tree.Root, tree.Depth())
	}
	// 5 times: 4 spines' egresses, 8 leaves' uplinks, 16 hosts.
	want := []Level{{4, 20, 20 * 800 * us}, {8, 40, 40 * 700 * us}, {16, 80, 80 * 600 * us}}
	for i, l := range tree.Levels {
		if l != want[i] {
			t.Errorf("level %d: %+v, want %+v", i+1, l, want[i])
		}
	}
	c := tree.Cause
	// 16 NICs of 100G come in by 4 ports of 100G.
	if c.Kind != Incast || c.Senders != 16 || c.InPorts != 4 || c.Ratio != 4 || c.Receiver != "host0" {
		t.Errorf("cause %+v", c)
	}
	if tree.First() != 100*us || len(tree.Windows) != 5 {
		t.Errorf("first %v, %d windows", tree.First(), len(tree.Windows))
	}
	if s.Spreading.Count != 1 {
		t.Fatalf("%d victims, want 1", s.Spreading.Count)
	}
	golden(t, "spread", text(t, s))
}
