package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Spreading says how far congestion went beyond those who made it.
type Spreading struct {
	Victims []Victim // the worst first; at most maxVictims
	Count   int      // all of them
	// Culprits are the flows that cross a root for which victims waited.
	Culprits int
	// Stuck ones got nothing through at all.
	Stuck int
	// Factor is the median of Victims' Excess without the stuck, Worst the
	// largest; 0 if all are stuck.
	Factor, Worst float64
	// Approximate: max-min shares were computed in steps.
	Approximate bool
}

// Victim is a flow that was slowed by congestion that is not on its path, while
// its receiver's port had room.
type Victim struct {
	Flow     FlowRef
	Running  bool
	Bytes    int64    // 0: endless
	Got      int64    // bytes through so far
	Took     sim.Time // so far, if it is running
	Base     sim.Time // on an idle network; 0: not known
	Fair     sim.Time // at its max-min share; Never if it is running
	Slowdown float64  // over Base; 0 if it is running
	Excess   float64  // over its max-min share
	// WaitedAt is the egress of its path that was stopped longest for Root,
	// Waited how long.
	WaitedAt Place
	Waited   sim.Time
	Root     Place
	Prio     uint8
	// Receiver is the last egress of its path, Room the share of it that was
	// unused meanwhile.
	Receiver Place
	Room     float64

	rootKey int32
}

// victims looks for flows that stops held up for roots they do not cross.
func (s *stops) victims(f *fluid) Spreading {
	out := Spreading{Approximate: f.coarse}
	by := s.rootSpans()
	var excess []float64
	for i := range s.n.flows {
		v, ok := s.victim(f, by, int32(i))
		if ok {
			out.Victims = append(out.Victims, v)
			if v.Got == 0 {
				out.Stuck++
				continue
			}
			excess = append(excess, v.Excess)
		}
	}
	out.Count = len(out.Victims)
	if out.Count == 0 {
		return out
	}
	slices.SortStableFunc(out.Victims, func(a, b Victim) int { return cmp.Compare(b.Excess, a.Excess) })
	if slices.Sort(excess); len(excess) > 0 {
		out.Factor, out.Worst = excess[(len(excess)-1)/2], excess[len(excess)-1]
	}
	out.Culprits = s.culprits(out.Victims)
	out.Victims = out.Victims[:min(maxVictims, out.Count)]
	return out
}

// rootSpan is when an egress was stopped for one root.
type rootSpan struct {
	root int32
	when spans
}

// rootSpans groups each egress' stops by root.
func (s *stops) rootSpans() [][]rootSpan {
	out := make([][]rootSpan, len(s.by))
	for k, list := range s.by {
		if len(list) == 0 {
			continue
		}
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(s.all[a].root, s.all[b].root) })
		for len(list) > 0 {
			root := s.all[list[0]].root
			var w []Window
			for len(list) > 0 && s.all[list[0]].root == root {
				w = append(w, Window{s.all[list[0]].from, s.all[list[0]].to})
				list = list[1:]
			}
			out[k] = append(out[k], rootSpan{root, union(w)})
		}
	}
	return out
}

func (s *stops) victim(f *fluid, by [][]rootSpan, i int32) (Victim, bool) {
	d := &s.n.flows[i]
	if d.f.State == result.Waiting || d.life() <= 0 || len(d.path) == 0 || d.spread {
		return Victim{}, false
	}
	v := Victim{Flow: s.n.ref(i), Bytes: d.f.Bytes, Got: d.f.Delivered, Took: d.life(), Base: d.f.Base, Running: d.f.State != result.Finished, Prio: d.f.Prio}
	// Stops of one instant overlap along a path: the longest counts, not the sum.
	for _, e := range d.path {
		for _, r := range by[s.key(e, d.f.Prio)] {
			if s.onPath(d, r.root) {
				continue
			}
			if t := r.when.within(d.start, d.end); t > v.Waited {
				v.Waited, v.WaitedAt, v.rootKey = t, s.n.place(e), r.root
			}
		}
	}
	if permille(v.Waited, d.life()) < victimStopPermille {
		return Victim{}, false
	}
	v.Excess = f.excess(i)
	used := s.n.lastUse(i)
	if v.Excess < victimSlowdown || used >= roomPermille {
		return Victim{}, false
	}
	v.Fair, v.Slowdown = sim.Never, d.f.Slowdown()
	if !v.Running {
		v.Got = d.f.Bytes
		v.Fair = f.ideal(i)
	}
	v.Root = s.rootPlace(v.rootKey)
	v.Receiver, v.Room = s.n.place(d.last()), float64(1000-used)/1000
	return v, true
}

func (s *stops) rootPlace(root int32) Place {
	if node, whole := rootOf(root); whole {
		return s.n.nodePlace(node)
	}
	return s.n.place(root)
}

// onPath reports whether a flow has itself to do with a root: it crosses the
// egress, or ends or begins at the host.
func (s *stops) onPath(d *flow, root int32) bool {
	node, whole := rootOf(root)
	if !whole {
		if lock := s.deadlockOf(root, d.f.Prio); lock != nil {
			return slices.ContainsFunc(lock.Cycle, func(h result.Hop) bool { return d.crosses(s.n.egress(h.Node, h.Port)) })
		}
		return d.crosses(root)
	}
	if d.from == node || d.to == node {
		return true
	}
	for _, e := range d.path {
		if s.n.node[e] == node {
			return true
		}
	}
	return false
}

// culprits counts the flows that cross the victims' roots.
func (s *stops) culprits(victims []Victim) int {
	var roots []int32
	for i := range victims {
		if !slices.Contains(roots, victims[i].rootKey) {
			roots = append(roots, victims[i].rootKey)
		}
	}
	count := 0
	for i := range s.n.flows {
		d := &s.n.flows[i]
		if d.f.State != result.Waiting && slices.ContainsFunc(roots, func(r int32) bool { return s.onPath(d, r) }) {
			count++
		}
	}
	return count
}

// lastUse returns how busy a flow's last egress was while it lived, in
// thousandths. Flows to one port are taken to have moved evenly over their
// lives; what was sent again is not counted.
func (n *net) lastUse(i int32) int64 {
	d := &n.flows[i]
	return n.usedBy(d.last(), d.start, d.end)
}

// usedBy returns how much of an egress all flows took in a span, in thousandths.
func (n *net) usedBy(e int32, from, to sim.Time) int64 {
	if n.port(e).Rate <= 0 {
		return 1000
	}
	var bytes int64
	for _, j := range n.through(e) {
		o := &n.flows[j]
		if both := min(o.end, to) - max(o.start, from); both > 0 {
			bytes = min(mostBytes, bytes) + muldiv(o.sent, int64(both), int64(o.life()))
		}
	}
	return min(1000, muldiv(bytes, 1000, max(1, n.port(e).Rate.Bytes(to-from))))
}
