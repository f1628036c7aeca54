package explain

import (
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Locked is a deadlock: a cycle of egresses each of which waits for the next.
type Locked struct {
	At    sim.Time
	Until sim.Time // Never: to the end of the run
	Prio  uint8
	Cycle []Place // each is stopped by the node of the next
	Flows []FlowRef
	// FlowCount flows cross two neighbours of the cycle, and so make it;
	// Flows names some.
	FlowCount int
	// Turns are the places where such flows go down and then up again, which
	// shortest paths in a tree never do.
	Turns  []Turn
	Opened Opening
	// Dropped packets, and Restored the instant from which on nothing was dropped
	// any more (Never: not in this run), if a watchdog opened it.
	Dropped  uint64
	Restored sim.Time
	// Rerouted is when the routes that made it had gone while it stood; 0: they had
	// not.
	Rerouted sim.Time
	// Start is the root of the stop that came first of those that formed it,
	// its own egress if nothing outside began it.
	Start Place
	// StartCause is why that one was full; Unknown if Start is in the cycle.
	StartCause Kind
}

// Turn is a node at which flows go up again after they had come down.
type Turn struct {
	Node  Place
	Flows int
}

// Opening says what ended a deadlock.
type Opening uint8

// The ways.
const (
	NeverOpened Opening = iota
	OpenedByWatchdog
	OpenedByLoss // packets held in the cycle were dropped
	OpenedByLink // a link of the cycle changed
	OpenedByItself
)

// Storm is an egress that was stopped for longer than the watchdog allows.
type Storm struct {
	result.Storm
	Egress Place
	By     Place // the node that said stop
	Host   bool  // it is a host
	// Ended is To, or the end of the run.
	Ended    sim.Time
	Restored uint64 // times that the watchdog let go again
	Frames   uint64 // PFC frames that arrived there
}

func (s *stops) deadlocks(trees []Tree) []Locked {
	var out []Locked
	for i := range s.n.r.Deadlocks {
		if d, ok := s.deadlock(&s.n.r.Deadlocks[i], trees); ok {
			out = append(out, d)
		}
	}
	return out
}

func (s *stops) deadlock(d *result.Deadlock, trees []Tree) (Locked, bool) {
	n := s.n
	out := Locked{At: d.At, Until: d.Until, Prio: d.Prio}
	var cycle []int32
	for _, h := range d.Cycle {
		e := n.egress(h.Node, h.Port)
		if e == none {
			return Locked{}, false
		}
		cycle = append(cycle, e)
		out.Cycle = append(out.Cycle, n.place(e))
	}
	if len(cycle) == 0 {
		return Locked{}, false
	}
	s.members(&out, cycle)
	if out.Until == sim.Never {
		out.Until = s.letGo(cycle, d)
	}
	out.Opened = s.opened(d, out.Until, cycle)
	if out.Opened == OpenedByWatchdog {
		s.watchdogs(&out, cycle)
	}
	for _, c := range n.r.Reroutes {
		if c.At > out.At && c.At < min(out.Until, n.r.End) && out.Rerouted == 0 {
			out.Rerouted = c.At
		}
	}
	s.began(&out, cycle, trees)
	return out, true
}

// members finds the flows whose paths make the cycle.
func (s *stops) members(out *Locked, cycle []int32) {
	n := s.n
	for i := range n.flows {
		d := &n.flows[i]
		if d.f.Prio != out.Prio || d.start > out.At || d.end < out.At {
			continue
		}
		in := false
		for j := 1; j < len(d.path); j++ {
			k := slices.Index(cycle, d.path[j-1])
			if k < 0 || cycle[(k+1)%len(cycle)] != d.path[j] {
				continue
			}
			in = true
			if n.turns(d.path[j-1], d.path[j]) {
				out.turn(n.nodePlace(n.node[d.path[j]]))
			}
		}
		if !in {
			continue
		}
		out.FlowCount++
		if len(out.Flows) < maxVictims {
			out.Flows = append(out.Flows, n.ref(int32(i)))
		}
	}
}

// turns reports whether a hop over in goes down and the next over out goes up.
func (n *net) turns(in, out int32) bool {
	a, b, c := n.node[in], n.node[out], n.peerNode(out)
	if c == none || !n.r.Nodes[a].Switch || !n.r.Nodes[c].Switch {
		return false
	}
	return n.r.Nodes[a].Tier > n.r.Nodes[b].Tier && n.r.Nodes[c].Tier > n.r.Nodes[b].Tier
}

func (d *Locked) turn(p Place) { d.Turns = addTurn(d.Turns, p) }

func addTurn(all []Turn, p Place) []Turn {
	for i := range all {
		if all[i].Node == p {
			all[i].Flows++
			return all
		}
	}
	return append(all, Turn{p, 1})
}

// allTurns looks at the paths of all flows in a class with PFC.
func (n *net) allTurns() []Turn {
	var out []Turn
	for i := range n.flows {
		d := &n.flows[i]
		if d.f.Prio > 7 || n.r.Shape.Lossless&(1<<d.f.Prio) == 0 {
			continue
		}
		for j := 1; j < len(d.path); j++ {
			if n.turns(d.path[j-1], d.path[j]) {
				out = addTurn(out, n.nodePlace(n.node[d.path[j]]))
			}
		}
	}
	return out
}

// letGo returns when the first egress of a cycle was let go, by the record of
// stops; Never if all stood to the end.
func (s *stops) letGo(cycle []int32, d *result.Deadlock) sim.Time {
	first := sim.Never
	for _, e := range cycle {
		if d.Prio > 7 {
			return sim.Never
		}
		for _, w := range s.when[s.key(e, d.Prio)].w {
			if w.From <= d.At && d.At < w.To && w.To < s.n.r.End {
				first = min(first, w.To)
			}
		}
	}
	return first
}

func (s *stops) opened(d *result.Deadlock, until sim.Time, cycle []int32) Opening {
	if until == sim.Never {
		return NeverOpened
	}
	for i := range s.n.r.Storms {
		if s.watched(&s.n.r.Storms[i], d.Prio, d.At, until, cycle) {
			return OpenedByWatchdog
		}
	}
	for i := range s.n.r.Links {
		l := &s.n.r.Links[i]
		if l.At < d.At || l.At > until {
			continue
		}
		if e := s.n.egress(l.Node, l.Port); e != none && (slices.Contains(cycle, e) || slices.Contains(cycle, s.n.peer(e))) {
			return OpenedByLink
		}
	}
	for i := range s.n.r.Drops {
		p := &s.n.r.Drops[i]
		if p.At < d.At || p.At > until || p.Prio != d.Prio {
			continue
		}
		if e := s.n.egress(p.Node, p.Port); e != none && slices.Contains(cycle, s.n.peer(e)) {
			return OpenedByLoss // at the far end of one of its egresses: in the cycle
		}
	}
	return OpenedByItself
}

// watched reports whether a storm is a watchdog's of a cycle while that stood.
func (s *stops) watched(w *result.Storm, prio uint8, at, until sim.Time, cycle []int32) bool {
	return w.Watchdog && w.Prio == prio && w.From <= until && w.To >= at && slices.Contains(cycle, s.n.egress(w.Node, w.Port))
}

// watchdogs says what the watchdogs that opened a deadlock did.
func (s *stops) watchdogs(out *Locked, cycle []int32) {
	for i := range s.n.r.Storms {
		w := &s.n.r.Storms[i]
		if !s.watched(w, out.Prio, out.At, out.Until, cycle) {
			continue
		}
		out.Dropped += w.Dropped
		restored := w.Restored
		if restored <= 0 {
			restored = sim.Never
		}
		out.Restored = max(out.Restored, restored)
	}
}

// began looks for the first stop of an egress of the cycle that still stood
// when it closed.
func (s *stops) began(out *Locked, cycle []int32, trees []Tree) {
	first := none
	for _, e := range cycle {
		for _, i := range s.by[s.key(e, out.Prio)] {
			p := &s.all[i]
			if p.from <= out.At && p.to.Add(lookBack) >= out.At && (first == none || p.from < s.all[first].from) {
				first = i
			}
		}
	}
	if first == none {
		out.Start = out.Cycle[0]
		return
	}
	root := s.all[first].root
	out.Start = s.rootPlace(root)
	if root >= 0 && slices.Contains(cycle, root) {
		out.Start = s.n.place(s.all[first].reason)
		return
	}
	for i := range trees {
		if trees[i].root == root && trees[i].Prio == out.Prio {
			out.StartCause = trees[i].Cause.Kind
		}
	}
}

// storms lists storms that are not the face of a deadlock.
func (s *stops) storms() []Storm {
	n := s.n
	var out []Storm
	for i := range n.r.Storms {
		w := &n.r.Storms[i]
		e := n.egress(w.Node, w.Port)
		if e == none || w.Prio > 7 || s.inDeadlock(e, w) {
			continue
		}
		st := Storm{Storm: *w, Egress: n.place(e), Ended: min(w.To, n.r.End), By: Place{-1, -1, "?"}}
		st.Restored = n.port(e).Prio[w.Prio].WatchdogRestored
		st.Frames = n.port(e).Prio[w.Prio].PauseRx
		if p := n.peerNode(e); p != none {
			st.By, st.Host = n.nodePlace(p), !n.r.Nodes[p].Switch
		}
		out = append(out, st)
	}
	return out
}

func (s *stops) inDeadlock(e int32, w *result.Storm) bool {
	for i := range s.n.r.Deadlocks {
		d := &s.n.r.Deadlocks[i]
		if d.Prio != w.Prio || d.At > w.To || d.Until < w.From {
			continue
		}
		for _, h := range d.Cycle {
			if s.n.egress(h.Node, h.Port) == e {
				return true
			}
		}
	}
	return false
}
