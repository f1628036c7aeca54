package explain

import (
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// A stop is a span in which one egress could not send one priority, for one
// reason. A refresh that gives another reason begins another.
type stop struct {
	egress   int32 // who was stopped
	node     int32 // by whom
	reason   int32 // the egress of node that held what had come in; none
	prio     uint8
	cause    result.Cause
	flagged  bool // the reason was itself stopped at that instant
	first    bool // not a refresh: a PFC frame that changed something
	held     int64
	limit    int64
	from, to sim.Time

	// What resolve finds.
	root   int32 // an egress, or rootNode(i)
	parent int32 // the stop of the reason, none at the root
	level  int32 // 1: stopped by the root itself
}

// rootNode is a root that is a whole node: a host, or a switch that does not
// say which egress is to blame.
func rootNode(i int32) int32 { return -2 - i }

// rootOf undoes it.
func rootOf(root int32) (node int32, whole bool) {
	if root <= -2 {
		return -2 - root, true
	}
	return none, false
}

// stops is every stop of a run, and by egress and priority.
type stops struct {
	n    *net
	all  []stop
	by   [][]int32 // index egress*8+prio: its stops, if it obeyed
	when []spans   // the same as a set
	// inner marks an egress (and priority) that is not a root, since it was
	// itself stopped too long.
	inner []bool
}

func readStops(n *net) *stops {
	s := &stops{n: n, by: make([][]int32, 8*len(n.node))}
	open := make([]int32, len(s.by)) // 1 + index of the stop that goes on
	last := make([]sim.Time, len(s.by))
	// Without a single refresh in the whole run they were not recorded, and
	// nothing can be said of stops that ran out.
	refreshed := slices.ContainsFunc(n.r.Pauses, func(p result.Pause) bool { return p.Refresh })
	expires := func(k int, from sim.Time) sim.Time {
		rate := n.port(int32(k / 8)).Rate
		if rate <= 0 || !refreshed {
			return sim.Never
		}
		return from.Add(rate.For(pauseQuanta * quantumBits / 8))
	}
	end := func(k int, at sim.Time) {
		if i := open[k]; i != 0 {
			s.all[i-1].to = max(s.all[i-1].from, min(at, expires(k, last[k])))
			open[k] = 0
		}
	}
	for i := range n.r.Pauses {
		p := &n.r.Pauses[i]
		by := n.egress(p.Node, p.Port)
		if by == none || p.Prio > 7 {
			continue
		}
		e := n.peer(by)
		if e == none {
			continue
		}
		k := int(e)*8 + int(p.Prio)
		if !p.On {
			end(k, p.At)
			continue
		}
		now := s.stop(p, e)
		now.first = open[k] == 0 || expires(k, last[k]) < p.At
		if i := open[k]; i != 0 && !now.first {
			was := &s.all[i-1]
			if was.reason == now.reason && was.flagged == now.flagged && was.cause == now.cause {
				was.held = max(was.held, now.held)
				last[k] = p.At
				continue
			}
		}
		end(k, p.At)
		s.all = append(s.all, now)
		open[k], last[k] = int32(len(s.all)), p.At
	}
	for k := range open {
		end(k, n.r.End)
	}
	s.sets()
	s.findInner()
	s.resolve()
	for i := range s.all {
		if s.n.isDeaf(s.all[i].egress, s.all[i].prio) {
			continue
		}
		k := s.key(s.all[i].egress, s.all[i].prio)
		s.by[k] = append(s.by[k], int32(i))
	}
	return s
}

// sets fills in when each egress was stopped.
func (s *stops) sets() {
	w := make([][]Window, len(s.by))
	for i := range s.all {
		t := &s.all[i]
		if s.n.isDeaf(t.egress, t.prio) {
			continue
		}
		k := s.key(t.egress, t.prio)
		w[k] = append(w[k], Window{t.from, t.to})
	}
	s.when = make([]spans, len(w))
	for k := range w {
		if len(w[k]) > 0 {
			s.when[k] = union(w[k])
		}
	}
}

func (s *stops) stop(p *result.Pause, e int32) stop {
	return stop{
		egress: e, node: p.Node, reason: s.n.egress(p.Node, p.Egress), prio: p.Prio, cause: p.Cause,
		flagged: p.EgressStopped, held: p.Held, limit: p.Limit, from: p.At,
	}
}

func (s *stops) key(e int32, prio uint8) int { return int(e)*8 + int(prio&7) }

// byHost reports whether a stop was not made by a switch's buffer: what is
// behind it is the node itself.
func (s *stops) byHost(t *stop) bool {
	return t.reason == none || !s.n.r.Nodes[t.node].Switch
}

// findInner weighs, for each egress that others were stopped for, how much of
// that time it was itself stopped: told so by the switch, or in our own list.
func (s *stops) findInner() {
	weight := make([]sim.Time, len(s.by))
	told := make([]sim.Time, len(s.by))
	seen := make([]sim.Time, len(s.by))
	alternating := s.alternating()
	for i := range s.all {
		t := &s.all[i]
		if s.byHost(t) {
			continue
		}
		k := s.key(t.reason, t.prio)
		weight[k] += t.to - t.from
		if t.flagged {
			told[k] += t.to - t.from
		}
		seen[k] += alternating[k].within(t.from, t.to)
	}
	s.inner = make([]bool, len(s.by))
	for k := range s.inner {
		s.inner[k] = permille(max(told[k], seen[k]), weight[k]) >= interiorPermille
	}
}

// alternating is when each egress was stopped, with the gaps of XON between
// stops closed: but only if it was stopped for a good part of that time.
func (s *stops) alternating() []spans {
	out := make([]spans, len(s.when))
	for k := range s.when {
		if len(s.when[k].w) == 0 {
			continue
		}
		out[k] = unionGap(s.when[k].w, lookBack)
		if permille(s.when[k].total(), out[k].total()) < interiorPermille {
			out[k] = s.when[k]
		}
	}
	return out
}

// resolver follows stops to their roots, in order of time.
//
// A stop whose reason is an inner egress has for its parent the stop of that
// egress which stands then, and the parent's root. The parent often comes after
// it (an egress fills, stops others, and only then is stopped itself), so when an
// egress is stopped anew all that stand for its sake are looked at again, and
// cut in two if their root is another from now on.
type resolver struct {
	*stops
	last []int32   // by key: its latest stop so far, none
	kids [][]int32 // by key: stops that were made for its sake; some are over
	most int       // stops, with what is cut off: then nothing is cut any more
}

func (s *stops) resolve() {
	r := &resolver{stops: s, last: make([]int32, len(s.when)), kids: make([][]int32, len(s.when)), most: cutFactor * len(s.all)}
	for k := range r.last {
		r.last[k] = none
	}
	for i, n := 0, len(s.all); i < n; i++ { // what is cut off is resolved already
		r.enter(int32(i))
	}
	for i := range s.all {
		if d := s.deadlockOf(s.all[i].root, s.all[i].prio); d != nil {
			s.all[i].root = s.n.egress(d.Cycle[0].Node, d.Cycle[0].Port)
		}
	}
}

func (r *resolver) enter(i int32) {
	t := &r.all[i]
	t.parent, t.level = none, 1
	if r.byHost(t) {
		t.root = rootNode(t.node)
	} else {
		k := r.key(t.reason, t.prio)
		t.root = t.reason
		if p := r.last[k]; r.inner[k] && p != none && r.all[p].to.Add(lookBack) >= t.from && r.all[p].level < maxDepth {
			t.parent, t.root, t.level = p, r.all[p].root, r.all[p].level+1
		}
		r.kids[k] = append(r.kids[k], i)
	}
	r.last[r.key(t.egress, t.prio)] = i
	r.spread(i)
}

// spread hands the root of a stop that begins on to those that stand for its
// egress. A cycle ends where the root is known already.
func (r *resolver) spread(i int32) {
	t := r.all[i] // a copy: the list grows
	k := r.key(t.egress, t.prio)
	if !r.inner[k] || t.level >= maxDepth || len(r.all) >= r.most {
		return
	}
	var changed []int32
	keep := r.kids[k][:0]
	for _, j := range r.kids[k] {
		c := &r.all[j]
		if c.to <= t.from {
			continue
		}
		if c.root != t.root {
			j = r.cut(j, t.from)
			c = &r.all[j]
			c.parent, c.root, c.level = i, t.root, t.level+1
			changed = append(changed, j)
		}
		keep = append(keep, j)
	}
	r.kids[k] = keep
	for _, j := range changed {
		r.spread(j)
	}
}

// cut ends a stop at an instant and returns the one that goes on from there.
func (r *resolver) cut(j int32, at sim.Time) int32 {
	if r.all[j].from >= at {
		return j
	}
	rest := r.all[j]
	rest.from, rest.first = at, false
	r.all[j].to = at
	r.all = append(r.all, rest)
	n := int32(len(r.all) - 1)
	if k := r.key(rest.egress, rest.prio); r.last[k] == j {
		r.last[k] = n
	}
	return n
}

// deadlockOf returns the deadlock that an egress is part of, nil if none: its
// egresses are one root.
func (s *stops) deadlockOf(e int32, prio uint8) *result.Deadlock {
	if e < 0 {
		return nil
	}
	for i := range s.n.r.Deadlocks {
		d := &s.n.r.Deadlocks[i]
		if d.Prio != prio || len(d.Cycle) == 0 || s.n.egress(d.Cycle[0].Node, d.Cycle[0].Port) == none {
			continue
		}
		for _, h := range d.Cycle {
			if s.n.egress(h.Node, h.Port) == e {
				return d
			}
		}
	}
	return nil
}
