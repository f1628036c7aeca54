package report

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// tree is who stopped whom on account of whom, as a level for each egress that
// was stopped: 1 next to a root, 2 stopped by one of level 1, ….
type tree struct {
	// roots are egresses that were not stopped themselves while they made
	// their switch stop others, and hosts that stopped (port -1), by the
	// number of stops they caused, most first.
	roots  []root
	levels map[result.Hop]int // by stopped egress; looked up, never walked
}

type root struct {
	node, port int32
	count      uint64
	cause      result.Cause
}

// minorRoot is the share of all stops (in percent) below which a root is left
// out of pictures.
const minorRoot = 5

// treeOf finds the tree of a run's pauses. Each XOFF names the egress that held
// most of what came in; if that egress was free to send it is a root, and if it
// was stopped the stop comes from further on.
func treeOf(r *result.Run) tree {
	t := tree{levels: map[result.Hop]int{}}
	type cause struct{ stopped, egress result.Hop }
	seen := map[cause]bool{}
	var causes []cause
	index := map[result.Hop]int{}
	total := uint64(0)
	addRoot := func(node, port int32, c result.Cause) {
		h := result.Hop{Node: node, Port: port}
		i, ok := index[h]
		if !ok {
			i = len(t.roots)
			index[h] = i
			t.roots = append(t.roots, root{node: node, port: port, cause: c})
		}
		t.roots[i].count++
		total++
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		from := at(r, p.Node, p.Port)
		if !p.On || p.Refresh || from == nil || at(r, from.Peer, from.PeerPort) == nil {
			continue
		}
		end := result.Hop{Node: from.Peer, Port: from.PeerPort}
		if p.Cause != result.CauseBuffer && !r.Nodes[p.Node].Switch {
			addRoot(p.Node, -1, p.Cause)
			t.levels[end] = 1
			continue
		}
		if p.Egress < 0 || !p.EgressStopped {
			addRoot(p.Node, p.Egress, p.Cause)
			t.levels[end] = 1
			continue
		}
		c := cause{end, result.Hop{Node: p.Node, Port: p.Egress}}
		if !seen[c] {
			seen[c] = true
			causes = append(causes, c)
		}
	}
	// Levels grow from the roots; a cycle (deadlock) has none that grows.
	for again := true; again; {
		again = false
		for _, c := range causes {
			up, ok := t.levels[c.egress]
			if old, have := t.levels[c.stopped]; ok && (!have || old > up+1) {
				t.levels[c.stopped] = up + 1
				again = true
			}
		}
	}
	slices.SortStableFunc(t.roots, func(a, b root) int { return cmp.Compare(b.count, a.count) })
	for i := range t.roots {
		if t.roots[i].count*100 < total*minorRoot {
			t.roots = t.roots[:i]
			break
		}
	}
	return t
}

// level returns the level of an egress; 0 if nobody stopped it on account of a
// root.
func (t *tree) level(node, port int32) int { return t.levels[result.Hop{Node: node, Port: port}] }
