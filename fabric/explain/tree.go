package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Tree says who stopped whom for one root, in one priority: below the root the
// egresses that it stopped, below each those that were stopped for it.
type Tree struct {
	Root     Place // an egress, or a node
	Prio     uint8
	Cause    Root
	Windows  []Window // in which anybody was stopped
	Stops    int      // PFC frames that stopped somebody; refreshes not counted
	Stopped  sim.Time // of all branches together that obeyed
	Levels   []Level  // Levels[0] is next to the root
	Branches []Branch // in the order of printing: each follows its parent
	// More branches next to the root (as in Branch) are not listed: too many.
	More        int
	MoreStopped sim.Time

	root int32 // egress or rootNode
}

// Level sums up what is equally far from the root.
type Level struct {
	Egresses int
	Stops    int
	Stopped  sim.Time
}

// Branch is one stopped egress.
type Branch struct {
	Egress  Place
	Host    bool  // it is a host's NIC: the senders themselves wait
	Deaf    bool  // it was told to stop for Stopped, and sent on
	Level   int   // 1: next to the root
	Parent  int   // index in Branches, -1: the root
	By      Place // the port that sent the PFC frames
	Stops   int
	Stopped sim.Time
	First   sim.Time
	Last    sim.Time // end of its last stop
	Held    int64    // most that was held of what had come in at By, bytes
	Limit   int64    // XOFF then
	// Share is how much of the tree's windows it was stopped.
	Share float64
	// Others is how many more egresses of the same node it was stopped for; it
	// is listed below the one that cost it most.
	Others int
	// More branches below this one are not listed, with all that is below
	// them; they were stopped for MoreStopped together.
	More        int
	MoreStopped sim.Time
}

// Depth is how many hops the congestion spread.
func (t *Tree) Depth() int { return len(t.Levels) }

// First is when the first egress was stopped.
func (t *Tree) First() sim.Time {
	if len(t.Windows) == 0 {
		return sim.Never
	}
	return t.Windows[0].From
}

// Span is the time from the first stop to the last resume.
func (t *Tree) Span() sim.Time {
	if len(t.Windows) == 0 {
		return 0
	}
	return t.Windows[len(t.Windows)-1].To - t.Windows[0].From
}

// lowestLimit is the lowest XOFF at which a listed branch was stopped; 0 if none
// is known.
func (t *Tree) lowestLimit() int64 {
	low := int64(0)
	for i := range t.Branches {
		if b := &t.Branches[i]; b.Limit > 0 && (low == 0 || b.Limit < low) {
			low = b.Limit
		}
	}
	return low
}

// limb gathers the stops of one egress under one root.
type limb struct {
	egress  int32
	stops   int
	time    sim.Time
	first   sim.Time
	last    sim.Time
	held    int64
	limit   int64
	parents []support // stopped egresses above it; none: the root
	kids    []int
	placed  bool
	deaf    bool
}

type support struct {
	egress int32
	time   sim.Time
}

// trees returns all trees, the one with most stopped time first.
func (s *stops) trees() []Tree {
	groups := s.groups()
	out := make([]Tree, 0, len(groups))
	for _, g := range groups {
		out = append(out, s.tree(g))
	}
	slices.SortStableFunc(out, func(a, b Tree) int { return cmp.Compare(b.Stopped, a.Stopped) })
	return out
}

// groups sorts stops by root and priority.
func (s *stops) groups() [][]int32 {
	order := make([]int32, len(s.all))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &s.all[a], &s.all[b]
		return cmp.Or(cmp.Compare(x.root, y.root), cmp.Compare(x.prio, y.prio))
	})
	var out [][]int32
	for len(order) > 0 {
		k := 1
		for k < len(order) && s.all[order[k]].root == s.all[order[0]].root && s.all[order[k]].prio == s.all[order[0]].prio {
			k++
		}
		out = append(out, order[:k])
		order = order[k:]
	}
	return out
}

func (s *stops) tree(group []int32) Tree {
	head := &s.all[group[0]]
	t := Tree{Prio: head.prio, root: head.root}
	if node, whole := rootOf(head.root); whole {
		t.Root = s.n.nodePlace(node)
	} else {
		t.Root = s.n.place(head.root)
	}
	var w []Window
	var limbs []limb
	at := map[int32]int{} // egress to limb; looked up only
	for _, i := range group {
		p := &s.all[i]
		if p.to > p.from {
			w = append(w, Window{p.from, p.to})
		}
		j, ok := at[p.egress]
		if !ok {
			j = len(limbs)
			at[p.egress] = j
			limbs = append(limbs, limb{egress: p.egress, first: p.from, deaf: s.n.isDeaf(p.egress, p.prio)})
		}
		limbs[j].add(s, p)
	}
	set := unionGap(w, windowGap)
	t.Windows = set.w
	t.grow(s, limbs, at)
	t.Cause = s.cause(&t, group)
	return t
}

func (l *limb) add(s *stops, p *stop) {
	if p.first {
		l.stops++
	}
	d := p.to - p.from
	l.time += d
	l.last = max(l.last, p.to)
	if p.held >= l.held {
		l.held, l.limit = p.held, p.limit
	}
	above := none
	if p.parent != none {
		above = s.all[p.parent].egress
	}
	for i := range l.parents {
		if l.parents[i].egress == above {
			l.parents[i].time += d
			return
		}
	}
	l.parents = append(l.parents, support{above, d})
}

// grow hangs every limb below the one that it was stopped for longest. What
// would hang only on itself, round about, is put next to the root.
func (t *Tree) grow(s *stops, limbs []limb, at map[int32]int) {
	var top []int
	for i := range limbs {
		l := &limbs[i]
		best := slices.MaxFunc(l.parents, func(a, b support) int { return cmp.Compare(a.time, b.time) })
		j, ok := at[best.egress]
		if best.egress == none || !ok || j == i {
			top = append(top, i)
			continue
		}
		limbs[j].kids = append(limbs[j].kids, i)
	}
	span := t.windowTime()
	var place func(i, parent, level int, listed bool)
	place = func(i, parent, level int, listed bool) {
		l := &limbs[i]
		if l.placed {
			return
		}
		l.placed = true
		t.count(l, level)
		self := parent
		if listed {
			self = len(t.Branches)
			t.Branches = append(t.Branches, s.branch(l, parent, level, span))
		} else {
			t.more(parent, l.time)
		}
		order(limbs, l.kids)
		for n, k := range l.kids {
			place(k, self, level+1, listed && n < maxKids && len(t.Branches) < maxBranches)
		}
	}
	order(limbs, top)
	for n, i := range top {
		place(i, -1, 1, n < maxKids)
	}
	for i := range limbs {
		place(i, -1, 1, len(t.Branches) < maxBranches)
	}
}

func (t *Tree) count(l *limb, level int) {
	for len(t.Levels) < level {
		t.Levels = append(t.Levels, Level{})
	}
	lv := &t.Levels[level-1]
	lv.Egresses++
	lv.Stops += l.stops
	t.Stops += l.stops
	if !l.deaf {
		lv.Stopped += l.time
		t.Stopped += l.time
	}
}

func (t *Tree) more(parent int, d sim.Time) {
	if parent < 0 {
		t.More++
		t.MoreStopped += d
		return
	}
	t.Branches[parent].More++
	t.Branches[parent].MoreStopped += d
}

// order puts the longest stopped first.
func order(limbs []limb, of []int) {
	slices.SortFunc(of, func(a, b int) int {
		return cmp.Or(cmp.Compare(limbs[b].time, limbs[a].time), cmp.Compare(limbs[a].egress, limbs[b].egress))
	})
}

func (s *stops) branch(l *limb, parent, level int, span sim.Time) Branch {
	e := s.n.place(l.egress)
	others := 0
	for _, p := range l.parents {
		if permille(p.time, l.time) >= interiorPermille {
			others++
		}
	}
	return Branch{
		Others: max(0, others-1),
		Egress: e, Host: !s.n.r.Nodes[e.Node].Switch, Deaf: l.deaf, Level: level, Parent: parent, By: s.n.place(s.n.peer(l.egress)),
		Stops: l.stops, Stopped: l.time, First: l.first, Last: l.last, Held: l.held, Limit: l.limit,
		Share: min(1, ratio(float64(l.time), float64(span))),
	}
}

func (t *Tree) windowTime() sim.Time {
	var sum sim.Time
	for _, w := range t.Windows {
		sum += w.To - w.From
	}
	return sum
}

// causes returns how long each cause held among stops next to the root.
func (s *stops) causes(group []int32) (times [4]sim.Time) {
	for _, i := range group {
		if p := &s.all[i]; p.parent == none && p.cause <= result.CauseGlobal {
			times[p.cause] += p.to - p.from
		}
	}
	return times
}
