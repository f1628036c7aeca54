package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ring is n switches with a host each; every flow goes two switches on, so that
// each egress of the ring waits for the next. Port 0 of a switch is the host's,
// 1 goes to the next switch, 2 to the one before (port 1 of the last: 2, 1).
func ring(n int) *fabric {
	f := &fabric{builder: newBuilder(), per: 1}
	f.r.Why = "deadlock"
	for i := range n {
		f.leaf = append(f.leaf, f.node(fmt.Sprintf("sw%d", i), true, 1))
	}
	for i := range n {
		f.host = append(f.host, f.node(fmt.Sprintf("host%d", i), false, 0))
		f.link(f.leaf[i], f.host[i], 100*g)
	}
	next := make([]int32, n)
	for i := range n {
		next[i] = f.link(f.leaf[i], f.leaf[(i+1)%n], 100*g)
	}
	var cycle []result.Hop
	for i := range n {
		cycle = append(cycle, result.Hop{Node: f.leaf[i], Port: next[i]})
		dst := (i + 2) % n
		f.r.Flows = append(f.r.Flows, result.Flow{
			ID: int32(i), Group: "ring", Src: int32(i), Dst: int32(dst), SrcNode: f.host[i], DstNode: f.host[dst], Bytes: 10 * mb, Prio: 3,
			State: result.Running, Finish: sim.Never, Received: sim.Never, Delivered: 100 * kb, Silent: "priority paused", Paths: 1,
			Path: []result.Hop{{Node: f.host[i]}, {Node: f.leaf[i], Port: next[i]}, {Node: f.leaf[(i+1)%n], Port: next[(i+1)%n]}, {Node: f.leaf[dst]}},
		})
	}
	for i := range n {
		// sw(i+1) stops sw(i), because its own egress is full.
		j := (i + 1) % n
		in := f.port(f.leaf[i], next[i]).PeerPort
		at := 20*us + sim.Time(i)*us
		f.r.Pauses = append(f.r.Pauses, result.Pause{At: at, Node: f.leaf[j], Port: in, Egress: next[j], Held: 60000, Limit: 50000, Prio: 3, On: true, EgressStopped: i > 0})
	}
	f.r.Deadlocks = []result.Deadlock{{At: 23 * us, Until: sim.Never, Cycle: cycle, Prio: 3}}
	return f
}

func TestDeadlock(t *testing.T) {
	f := ring(3)
	s := Explain(f.sorted())
	if len(s.Deadlocks) != 1 {
		t.Fatalf("%d deadlocks", len(s.Deadlocks))
	}
	d := &s.Deadlocks[0]
	var names []string
	for _, p := range d.Cycle {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"sw0:Ethernet1", "sw1:Ethernet2", "sw2:Ethernet2"}, names); diff != "" {
		t.Error(diff)
	}
	if d.FlowCount != 3 || d.Opened != NeverOpened || s.Verdict.Main != MainDeadlock {
		t.Errorf("%d flows, opened %v, main %v", d.FlowCount, d.Opened, s.Verdict.Main)
	}
	if s.Spreading.Count != 0 {
		t.Errorf("flows of the cycle are victims: %+v", s.Spreading.Victims)
	}
	golden(t, "deadlock", text(t, s))
}

func TestDeadlockOpened(t *testing.T) {
	until := 500 * us
	tests := []struct {
		name string
		make func(f *fabric)
		want Opening
	}{
		{"watchdog", func(f *fabric) {
			c := f.r.Deadlocks[0].Cycle[1]
			f.r.Storms = []result.Storm{{From: 25 * us, To: until, Node: c.Node, Port: c.Port, Prio: 3, Watchdog: true, Dropped: 40}}
		}, OpenedByWatchdog},
		{"watchdog of another priority", func(f *fabric) {
			c := f.r.Deadlocks[0].Cycle[1]
			f.r.Storms = []result.Storm{{From: 25 * us, To: until, Node: c.Node, Port: c.Port, Prio: 4, Watchdog: true}}
		}, OpenedByItself},
		{"link", func(f *fabric) {
			c := f.r.Deadlocks[0].Cycle[2]
			f.r.Links = []result.LinkChange{{At: until - us, Node: c.Node, Port: c.Port}}
		}, OpenedByLink},
		{"loss", func(f *fabric) {
			c := f.r.Deadlocks[0].Cycle[0]
			p := f.port(c.Node, c.Port)
			f.r.Drops = []result.Drop{{At: until - us, Node: p.Peer, Port: p.PeerPort, Flow: 0, Prio: 3, Reason: result.DropHeadroom}}
		}, OpenedByLoss},
		{"nothing", func(*fabric) {}, OpenedByItself},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := ring(3)
			f.r.Deadlocks[0].Until = until
			tt.make(f)
			s := Explain(f.sorted())
			if got := s.Deadlocks[0].Opened; got != tt.want {
				t.Errorf("opened by %d, want %d", got, tt.want)
			}
			for _, w := range s.Storms {
				if w.Prio == 3 {
					t.Errorf("the deadlock is a storm too: %+v", w)
				}
			}
		})
	}
}

// The record of stops says when a deadlock opened if the run does not.
func TestDeadlockLetGo(t *testing.T) {
	f := ring(3)
	c := f.r.Deadlocks[0].Cycle[0]
	p := f.port(c.Node, c.Port)
	f.r.Pauses = append(f.r.Pauses, result.Pause{At: ms, Node: p.Peer, Port: p.PeerPort, Prio: 3})
	f.r.Storms = []result.Storm{{From: 25 * us, To: sim.Never, Node: c.Node, Port: c.Port, Prio: 3, Watchdog: true}}
	d := Explain(f.sorted()).Deadlocks[0]
	if d.Until != ms || d.Opened != OpenedByWatchdog {
		t.Errorf("until %v, opened %v", d.Until, d.Opened)
	}
}

// What the watchdog took and when it gave back is told, and that better routes did
// not open what stood.
func TestWhatTheWatchdogDid(t *testing.T) {
	for _, x := range []struct {
		restored sim.Time
		want     string
	}{
		{2 * ms, "opened it at 1 ms, after 977 us: it took 40 packets and gave the queues back at 2 ms. Since 700 us all routes are shortest paths"},
		{sim.Never, "it took 40 packets, and had not given the queues back when the run ended."},
		{0, "it took 40 packets, and had not given the queues back when the run ended."}, // of a run that does not say
	} {
		f := ring(3)
		d := &f.r.Deadlocks[0]
		d.Until = ms
		f.r.Storms = []result.Storm{{From: 25 * us, To: ms, Node: d.Cycle[1].Node, Port: d.Cycle[1].Port, Prio: 3, Watchdog: true, Dropped: 40, Restored: x.restored}}
		f.r.Reroutes = []result.RouteChange{{At: 10 * us}, {At: 700 * us}, {At: 800 * us}, {At: 2 * ms}}
		if got := strings.Join(strings.Fields(text(t, Explain(f.sorted()))), " "); !strings.Contains(got, x.want) {
			t.Errorf("no word of %q in\n%s", x.want, got)
		}
	}
}

// Flows that go down and up again are the ones to re-route.
func TestTurns(t *testing.T) {
	f := spineLeaf(3, 2, 1)
	// host0 → leaf0 → spine0 → leaf1 → spine1 → leaf2 → host2: up again at leaf1.
	f.r.Flows = append(f.r.Flows, result.Flow{
		Src: 0, Dst: 2, SrcNode: f.host[0], DstNode: f.host[2], Bytes: mb, Prio: 3, State: result.Running, Silent: "priority paused",
		Path: []result.Hop{{Node: f.host[0]}, {Node: f.leaf[0], Port: 1}, {Node: f.spine[0], Port: 1}, {Node: f.leaf[1], Port: 2}, {Node: f.spine[1], Port: 2}, {Node: f.leaf[2]}},
	})
	f.r.Deadlocks = []result.Deadlock{{At: us, Until: sim.Never, Prio: 3, Cycle: []result.Hop{{Node: f.spine[0], Port: 1}, {Node: f.leaf[1], Port: 2}}}}
	s := Explain(&f.r)
	d := s.Deadlocks[0]
	if len(d.Turns) != 1 || d.Turns[0].Node.Name != "leaf1" || d.Turns[0].Flows != 1 {
		t.Errorf("turns %+v", d.Turns)
	}
}

// Flows that go up again are told of without a deadlock; others are not.
func TestTurnsWithoutDeadlock(t *testing.T) {
	f := spineLeaf(3, 2, 1)
	f.r.Flows = append(f.r.Flows, result.Flow{
		SrcNode: f.host[0], DstNode: f.host[2], Bytes: mb, Prio: 3, State: result.Finished, Finish: ms, Base: ms,
		Path: []result.Hop{{Node: f.host[0]}, {Node: f.leaf[0], Port: 1}, {Node: f.spine[0], Port: 1}, {Node: f.leaf[1], Port: 2}, {Node: f.spine[1], Port: 2}, {Node: f.leaf[2]}},
	})
	s := Explain(&f.r)
	if len(s.Turns) != 1 || s.Turns[0].Node.Name != "leaf1" || s.Verdict.Main != AllWell {
		t.Errorf("turns %+v, main %v", s.Turns, s.Verdict.Main)
	}
	f.r.Shape.Lossless = 0
	if s := Explain(&f.r); len(s.Turns) != 0 {
		t.Errorf("lossy: %+v", s.Turns)
	}
	if s := Explain(spread().sorted()); len(s.Turns) != 0 {
		t.Errorf("up and down once: %+v", s.Turns)
	}
}

// Long stops in a chain are no deadlock if none was found.
func TestNoFalseDeadlock(t *testing.T) {
	s := Explain(spread().sorted())
	if len(s.Deadlocks) != 0 || len(s.Storms) != 0 || s.Verdict.Main == MainDeadlock {
		t.Errorf("deadlocks %v, storms %v", s.Deadlocks, s.Storms)
	}
}

func TestStorm(t *testing.T) {
	f := spineLeaf(2, 1, 4)
	f.r.Name, f.r.Why, f.r.End = "storm", "duration", 20*ms
	a := f.flow("victim", 0, 5, 0, mb, 0, ms)
	a.State, a.Finish, a.Delivered, a.Silent = result.Running, sim.Never, 0, "priority paused"
	b := f.flow("to the storm", 1, 4, 0, mb, 0, ms)
	b.State, b.Finish, b.Delivered, b.Silent = result.Running, sim.Never, 0, "priority paused"
	f.stop(f.host[4], 0, -1, false, 10*us, 19*ms)
	f.r.Pauses[0].Cause = result.CauseStorm
	f.stop(f.leaf[1], 4, 0, true, 15*us, 18*ms)
	f.stop(f.spine[0], f.down(0), f.down(1), true, 20*us, 17*ms)
	f.stop(f.leaf[0], 0, 4, true, 25*us, 17*ms)
	f.r.Storms = []result.Storm{{From: 10 * us, To: sim.Never, Node: f.leaf[1], Port: 0, Prio: 3}}
	s := Explain(f.sorted())
	if s.Verdict.Main != MainStorm || s.Verdict.At.Name != "host4" {
		t.Errorf("main %v at %s", s.Verdict.Main, s.Verdict.At)
	}
	if s.Trees[0].Root.Name != "host4" || s.Trees[0].Depth() != 4 {
		t.Errorf("root %s, %d deep", s.Trees[0].Root, s.Trees[0].Depth())
	}
	if s.Spreading.Count != 1 || s.Spreading.Victims[0].Flow.Group != "victim" {
		t.Errorf("victims %+v", s.Spreading.Victims)
	}
	golden(t, "storm", text(t, s))
}
