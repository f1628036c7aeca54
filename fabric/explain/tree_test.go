package explain

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
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

// A spine's egress that is mostly stopped but was free at the instant of each
// XOFF is still not the root: XOFF and XON alternate.
func TestChatterIsNotARoot(t *testing.T) {
	f := spineLeaf(2, 1, 4)
	for i := range 4 {
		f.flow("", i, 4, 0, mb, 0, ms)
	}
	for k := range 20 {
		at := sim.Time(k) * 50 * us
		f.stop(f.leaf[1], 4, 0, false, at, 25*us)                        // for host 4
		f.stop(f.spine[0], f.down(0), f.down(1), false, at+30*us, 15*us) // in the gap: "not stopped"
	}
	s := Explain(f.sorted())
	if len(s.Trees) != 1 || s.Trees[0].Root.Name != "leaf1:Ethernet0" {
		t.Fatalf("trees %+v", s.Trees)
	}
	if b := s.Trees[0].Branches[1]; b.Egress.Name != "leaf0:Ethernet4" || b.Level != 2 || b.Stops != 20 {
		t.Errorf("branch %+v", b)
	}
}

// A root that nobody ever stops stays one, and two roots are two trees.
func TestTwoRoots(t *testing.T) {
	f := spineLeaf(2, 1, 4)
	f.flow("", 0, 4, 0, mb, 0, ms)
	f.flow("", 1, 4, 0, mb, 0, ms)
	f.flow("", 4, 2, 0, mb, 0, ms)
	f.flow("", 5, 2, 0, mb, 0, ms)
	f.stop(f.leaf[1], 4, 0, false, 10*us, 30*us)
	f.stop(f.leaf[0], 4, 2, false, 20*us, 10*us)
	s := Explain(f.sorted())
	if len(s.Trees) != 2 || s.Trees[0].Root.Name != "leaf1:Ethernet0" || s.Trees[1].Root.Name != "leaf0:Ethernet2" {
		t.Fatalf("trees %+v", s.Trees)
	}
	// One uplink of 100G brings it: no overload that the paths show.
	if k := s.Trees[0].Cause.Kind; k != Unknown {
		t.Errorf("cause %v", k)
	}
}

func TestRootCauses(t *testing.T) {
	base := func() *fabric {
		f := star(4)
		f.flow("", 1, 0, 0, mb, 0, ms)
		f.stop(f.leaf[0], 1, 0, false, 10*us, 300*us)
		return f
	}
	tests := []struct {
		name string
		make func() *fabric
		root string
		want Kind
	}{
		{"two senders", func() *fabric {
			f := base()
			f.flow("", 2, 0, 0, mb, 0, ms)
			return f
		}, "leaf0:Ethernet0", Incast},
		{"two senders, one after the other", func() *fabric {
			f := base()
			f.flow("", 2, 0, 0, mb, ms, ms)
			return f
		}, "leaf0:Ethernet0", Unknown},
		{"slower port", func() *fabric {
			f := base()
			f.port(f.leaf[0], 0).Rate = 25 * g
			return f
		}, "leaf0:Ethernet0", StepDown},
		{"starved", func() *fabric {
			f := base()
			f.port(f.leaf[0], 0).Prio[3].TxBytes = 100
			f.port(f.leaf[0], 0).Prio[5].TxBytes = 900
			return f
		}, "leaf0:Ethernet0", Starved},
		{"link down", func() *fabric {
			f := base()
			f.r.Links = []result.LinkChange{
				{At: 5 * us, Node: f.host[0], Port: 0},
				{At: 300 * us, Node: f.host[0], Port: 0, Up: true, Rate: 100 * g},
			}
			return f
		}, "leaf0:Ethernet0", LinkDown},
		{"link down, in all", func() *fabric {
			f := base()
			f.port(f.leaf[0], 0).Down = 200 * us
			return f
		}, "leaf0:Ethernet0", LinkDown},
		{"slow receiver", func() *fabric {
			f := base()
			f.host0(result.CauseSlowReceiver)
			return f
		}, "host0", SlowReceiver},
		{"storm", func() *fabric {
			f := base()
			f.host0(result.CauseStorm)
			return f
		}, "host0", StormHost},
		{"global pause", func() *fabric {
			f := base()
			f.host0(result.CauseGlobal)
			return f
		}, "host0", GlobalPause},
		{"a pause of a host that is over before", func() *fabric {
			f := base()
			f.r.Pauses[0].At, f.r.Pauses[1].At = ms, ms+300*us
			f.host0(result.CauseSlowReceiver)
			return f
		}, "host0", SlowReceiver},
		{"deadlock", func() *fabric {
			f := base()
			f.r.Deadlocks = []result.Deadlock{{At: 10 * us, Until: sim.Never, Prio: 3, Cycle: []result.Hop{{Node: f.leaf[0], Port: 0}}}}
			return f
		}, "leaf0:Ethernet0", Cycle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.make()
			s := Explain(f.sorted())
			if len(s.Trees) == 0 {
				t.Fatal("no tree")
			}
			if got := s.Trees[0]; got.Root.Name != tt.root || got.Cause.Kind != tt.want {
				t.Errorf("root %s, %v; want %s, %v", got.Root, got.Cause.Kind, tt.root, tt.want)
			}
		})
	}
}

// host0 stops the switch from 0 to 400 us.
func (f *fabric) host0(c result.Cause) {
	k := len(f.r.Pauses)
	f.stop(f.host[0], 0, -1, false, 0, 400*us)
	f.r.Pauses[k].Cause = c
}

// Traffic of a link that went down at the same switch is named.
func TestRerouted(t *testing.T) {
	f := spineLeaf(2, 2, 4)
	for i := range 4 {
		f.flow("", i, 4+i, 0, mb, 0, ms)
	}
	f.stop(f.leaf[0], 0, 4, false, 100*us, 300*us) // for the uplink to spine 0
	f.r.Links = []result.LinkChange{{At: 50 * us, Node: f.spine[1], Port: 0}}
	s := Explain(f.sorted())
	c := s.Trees[0].Cause
	if c.Kind != Collision || c.Senders != 4 || c.Ratio != 4 {
		t.Errorf("cause %+v", c)
	}
	if c.DownAt.Name != "leaf0:Ethernet5" {
		t.Errorf("link down at %s, want leaf0:Ethernet5", c.DownAt)
	}
}

// With refreshes recorded, a stop without one ends 65535 quanta of 512 bits
// after it: 335.5 us at 100G.
func TestStopsRunOut(t *testing.T) {
	f := star(3)
	f.flow("", 1, 0, 0, mb, 0, ms)
	on := result.Pause{At: 0, Node: f.leaf[0], Port: 1, Egress: 0, Prio: 3, On: true}
	again := on
	again.At, again.Refresh = 100*us, true
	f.r.Pauses = []result.Pause{on, again}
	st := readStops(index(&f.r))
	if len(st.all) != 1 {
		t.Fatalf("%d stops", len(st.all))
	}
	quanta := 65535 * 5120 * sim.Picosecond // 512 bits last 5.12 ns
	if got, want := st.all[0].to, 100*us+quanta; got != want {
		t.Errorf("ends at %v, want %v", got, want)
	}
	// Another stop after that is a new one.
	on.At = 2 * ms
	f.r.Pauses = append(f.r.Pauses, on)
	if s := Explain(&f.r); s.Trees[0].Stops != 2 || len(s.Trees[0].Windows) != 2 {
		t.Errorf("%d stops in %d windows, want 2 in 2", s.Trees[0].Stops, len(s.Trees[0].Windows))
	}
}

// The egress of the reason is itself stopped only after it has stopped others,
// and for ever: from then on they wait for its root.
func TestReasonIsStoppedLater(t *testing.T) {
	f := spineLeaf(2, 1, 4)
	f.flow("", 0, 4, 0, mb, 0, ms)
	f.stop(f.leaf[0], 0, 4, false, 10*us, 990*us)                 // host 0, for the uplink
	f.stop(f.spine[0], f.down(0), f.down(1), true, 30*us, 960*us) // the uplink, later
	f.stop(f.leaf[1], 4, 0, false, 20*us, 970*us)
	s := Explain(f.sorted())
	if len(s.Trees) != 2 || s.Trees[0].Root.Name != "leaf1:Ethernet0" || s.Trees[0].Depth() != 3 {
		t.Fatalf("trees %+v", s.Trees)
	}
	host := s.Trees[0].Branches[2]
	if host.Egress.Name != "host0:eth0" || host.Stopped != 970*us || host.First != 30*us {
		t.Errorf("host 0 under the root: %+v", host)
	}
	if first := s.Trees[1]; first.Root.Name != "leaf0:Ethernet4" || first.Stopped != 20*us || first.Stops != 1 {
		t.Errorf("before that: %+v", first)
	}
}

// No pauses, no tree; and a resume alone is nothing.
func TestNoTree(t *testing.T) {
	f := star(3)
	f.flow("", 1, 0, 0, mb, 0, 100*us)
	f.r.Pauses = []result.Pause{{At: us, Node: f.leaf[0], Port: 1, Egress: 0, Prio: 3}}
	if s := Explain(&f.r); len(s.Trees) != 0 {
		t.Errorf("trees %+v", s.Trees)
	}
}

// Stops that wait for each other end somewhere.
func TestCircularStops(t *testing.T) {
	f := ring(4)
	s := Explain(f.sorted())
	var stops int
	for _, tree := range s.Trees {
		stops += tree.Stops
	}
	if stops != 4 {
		t.Errorf("%d stops in trees, want 4", stops)
	}
}
