package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Explicit is a graph given node by node and link by link.
type Explicit struct {
	Name  string
	Nodes []NodeSpec
	Links []LinkSpec
}

// NodeSpec is a node of an Explicit graph.
type NodeSpec struct {
	Name string // unique, up to 64 letters, digits, "-", "_" and "."
	Kind Kind
	// Tier of a switch; 0: one more than the number of links to the nearest
	// switch that has hosts.
	Tier int
	Pod  int
}

// LinkSpec is a link of an Explicit graph. Ports are numbered at each node in
// the order of the links.
type LinkSpec struct {
	A, B      string // names
	Rate      sim.Rate
	Delay     sim.Time // one way
	ErrorRate uint64   // in units of 2^-32
	Count     int      // parallel links; 0: 1
}

const maxName = 64

// Validate implements Shape.
func (e Explicit) Validate() error {
	_, err := e.index()
	return err
}

// index validates and returns the nodes by name.
func (e Explicit) index() (map[string]int32, error) {
	c := checks{shape: "explicit"}
	at := func(field string, i int, format string, args ...any) error {
		return &Invalid{Shape: c.shape, Field: field, Index: i, What: fmt.Sprintf(format, args...)}
	}
	c.total(len(e.Nodes), len(e.Links))
	if len(e.Nodes) == 0 {
		c.fail("Nodes", "are missing")
	}
	if c.err != nil {
		return nil, c.err
	}
	index := make(map[string]int32, len(e.Nodes))
	for i := range e.Nodes {
		n := &e.Nodes[i]
		switch first, known := index[n.Name]; {
		case !goodName(n.Name):
			return nil, at("Nodes", i, "name %.80q is not 1 to %d letters, digits, - _ .", n.Name, maxName)
		case known:
			return nil, at("Nodes", i, "name %q is taken by node %d", n.Name, first)
		case n.Kind > Switch:
			return nil, at("Nodes", i, "kind %d is neither host nor switch", n.Kind)
		case n.Tier < 0 || n.Tier > 255:
			return nil, at("Nodes", i, "tier %d is not in 0 to 255", n.Tier)
		}
		index[n.Name] = int32(i)
	}
	links := 0
	for i := range e.Links {
		l := &e.Links[i]
		a, okA := index[l.A]
		b, okB := index[l.B]
		c.err = nil
		c.rate("Rate", l.Rate)
		c.delay("Delay", l.Delay)
		c.count("Count", or(l.Count, 1), 1, MaxPorts)
		switch {
		case !okA:
			return nil, at("Links", i, "node %.80q does not exist", l.A)
		case !okB:
			return nil, at("Links", i, "node %.80q does not exist", l.B)
		case a == b:
			return nil, at("Links", i, "%s is joined to itself", l.A)
		case l.ErrorRate > 1<<32:
			return nil, at("Links", i, "error rate %d is over the limit of 2^32", l.ErrorRate)
		case c.err != nil:
			bad := c.err.(*Invalid) //nolint:errorlint // made by c
			return nil, at("Links", i, "%s to %s: %s %s", l.A, l.B, words(bad.Field), bad.What)
		}
		if links += or(l.Count, 1); links > MaxLinks {
			return nil, at("Links", i, "more than %d links in all", MaxLinks)
		}
	}
	return index, nil
}

func goodName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// Build implements Shape. Nodes keep their order.
func (e Explicit) Build() (*Graph, error) {
	index, err := e.index()
	if err != nil {
		return nil, err
	}
	b := newBuilder(e.Name, len(e.Nodes), len(e.Links))
	for i := range e.Nodes {
		n := &e.Nodes[i]
		tier := n.Tier
		if n.Kind == Host {
			tier = 0
		}
		b.add(n.Kind, n.Name, tier, n.Pod, 0)
	}
	for i := range e.Links {
		l := &e.Links[i]
		for range or(l.Count, 1) {
			b.link(index[l.A], index[l.B], l.Rate, l.Delay).ErrorRate = l.ErrorRate
		}
	}
	b.tiers()
	return b.finish()
}

// tiers gives switches without a tier theirs: 1 where hosts are, then one more
// for every link away from there.
func (b *builder) tiers() {
	g := &b.g
	dist := make([]int, len(g.Nodes))
	var queue []int32
	for i := range g.Nodes {
		for _, p := range g.Nodes[i].Ports {
			if g.Nodes[i].Kind == Switch && dist[i] == 0 && g.Nodes[p.Peer].Kind == Host {
				dist[i] = 1
				queue = append(queue, int32(i))
			}
		}
	}
	for head := 0; head < len(queue); head++ {
		at := queue[head]
		for _, p := range g.Nodes[at].Ports {
			if g.Nodes[p.Peer].Kind == Switch && dist[p.Peer] == 0 {
				dist[p.Peer] = dist[at] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == Switch && n.Tier == 0 {
			n.Tier = max(1, dist[i]) // 1: no host is near
		}
	}
}
