package topo

import (
	"fmt"
	"slices"
)

// maxTable limits switches × destinations: 256 MB.
const maxTable = 1 << 26

// The first two sets mean something else than a list of ports.
const (
	setNone  = 0 // no way
	setLocal = 1 // the endpoint hangs on this switch
)

// Routes says by which ports of a switch an endpoint is reached: every shortest
// path by number of links, unless Static or Set says otherwise. Hosts do not forward.
//
// Endpoints of one leaf share a column of the table, and equal sets of ports
// are kept once.
type Routes struct {
	g      *Graph
	row    []int32  // by node: its row of the table; -1 of hosts
	nodes  []int32  // by row: the node
	column []int32  // by endpoint; -1: has no leaf
	leaves []int32  // by column: node of the leaf
	owner  []int32  // by column: its only endpoint, -1 if it is a leaf's
	local  []int32  // by endpoint: port of its leaf; -1 while that link is down
	table  []uint32 // row × stride + column: set
	stride int
	sets   []span
	arena  []uint16
	hash   []uint32 // open addressing over sets; 0 is free
	single []uint16 // 0, 1, 2, ...
	static []static
	// Scratch of rebuild.
	dist  []int32
	queue []int32
	ports []uint16
	up    []bool // by link
}

type span struct{ off, n uint32 }

// static is a route that was Set, by row and column.
type static struct {
	row, column int32
	ports       []uint16
	leaf        bool // laid for the whole leaf
}

// Routes computes the routes of a graph with every link up. It fails if the
// graph is too large for a table, or a static route is impossible.
func (g *Graph) Routes() (*Routes, error) {
	r := &Routes{
		g:      g,
		row:    make([]int32, len(g.Nodes)),
		column: make([]int32, len(g.Endpoints)),
		local:  make([]int32, len(g.Endpoints)),
		up:     make([]bool, len(g.Links)),
	}
	most := 0
	for i := range g.Nodes {
		r.row[i] = -1
		if g.Nodes[i].Kind == Switch {
			r.row[i] = int32(len(r.nodes))
			r.nodes = append(r.nodes, int32(i))
			most = max(most, len(g.Nodes[i].Ports))
		}
	}
	columnOf := make([]int32, len(g.Nodes))
	for i := range columnOf {
		columnOf[i] = -1
	}
	for i := range g.Endpoints {
		leaf := g.Endpoints[i].Leaf
		if leaf < 0 {
			r.column[i] = -1
			continue
		}
		if columnOf[leaf] < 0 {
			columnOf[leaf] = int32(len(r.leaves))
			r.leaves = append(r.leaves, leaf)
			r.owner = append(r.owner, -1)
		}
		r.column[i] = columnOf[leaf]
	}
	r.stride = len(r.leaves)
	if uint64(len(r.nodes))*uint64(r.stride) > maxTable {
		return nil, fmt.Errorf("%d switches and %d leaves need %d routes, over the limit of %d",
			len(r.nodes), r.stride, len(r.nodes)*r.stride, maxTable)
	}
	r.table = make([]uint32, len(r.nodes)*r.stride)
	r.dist = make([]int32, len(r.nodes))
	r.single = make([]uint16, most)
	for i := range r.single {
		r.single[i] = uint16(i)
	}
	r.Rebuild(nil)
	for _, s := range g.Static {
		var err error
		if s.Leaf >= 0 {
			err = r.SetLeaf(s.Switch, s.Leaf, s.Ports...)
		} else {
			err = r.Set(s.Switch, s.Endpoint, s.Ports...)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Ports returns the ports of switch sw (a node) towards endpoint dst, in order;
// nil if there is no way. The slice is borrowed until the next Set or Rebuild.
// An endpoint whose own link is down is unreachable at its leaf only: the
// others route to the leaf.
func (r *Routes) Ports(sw, dst int32) []uint16 {
	c := r.column[dst]
	row := r.row[sw]
	if c < 0 || row < 0 {
		return nil
	}
	s := r.table[int(row)*r.stride+int(c)]
	switch s {
	case setNone:
		return nil
	case setLocal:
		p := r.local[dst]
		if p < 0 {
			return nil
		}
		return r.single[p : p+1 : p+1]
	}
	at := r.sets[s]
	return r.arena[at.off : at.off+at.n : at.off+at.n]
}

// Up reports whether the (first) way from switch sw towards endpoint dst leads
// to a higher tier.
func (r *Routes) Up(sw, dst int32) bool {
	ports := r.Ports(sw, dst)
	if len(ports) == 0 {
		return false
	}
	n := &r.g.Nodes[sw]
	return r.g.Nodes[n.Ports[ports[0]].Peer].Tier > n.Tier
}

// Rebuild computes the routes anew for the links that are up: those of which
// down reports false. A nil down means all are up. Routes that were Set stay,
// without their ports that are down; if none of those is up, the shortest paths
// hold.
func (r *Routes) Rebuild(down func(link int32) bool) {
	for i := range r.up {
		r.up[i] = down == nil || !down(int32(i))
	}
	for i := range r.g.Endpoints {
		e := &r.g.Endpoints[i]
		p := r.g.Nodes[e.Node].Ports[e.Port]
		r.local[i] = -1
		if e.Leaf >= 0 && r.up[p.Link] {
			r.local[i] = p.PeerPort
		}
	}
	r.sets = append(r.sets[:0], span{}, span{})
	r.arena = r.arena[:0]
	clear(r.hash)
	for c, leaf := range r.leaves {
		r.search(leaf)
		r.fill(c, leaf)
	}
	for i := range r.static {
		r.apply(&r.static[i])
	}
}

// search sets dist to the number of links from every switch to leaf; -1 where
// there is no way.
func (r *Routes) search(leaf int32) {
	for i := range r.dist {
		r.dist[i] = -1
	}
	r.dist[r.row[leaf]] = 0
	r.queue = append(r.queue[:0], leaf)
	for head := 0; head < len(r.queue); head++ {
		at := r.queue[head]
		d := r.dist[r.row[at]] + 1
		for _, p := range r.g.Nodes[at].Ports {
			row := r.row[p.Peer]
			if row >= 0 && r.dist[row] < 0 && r.up[p.Link] {
				r.dist[row] = d
				r.queue = append(r.queue, p.Peer)
			}
		}
	}
}

// fill writes the column of a leaf from dist.
func (r *Routes) fill(column int, leaf int32) {
	for row, node := range r.nodes {
		s := uint32(setNone)
		switch d := r.dist[row]; {
		case node == leaf:
			s = setLocal
		case d > 0:
			r.ports = r.ports[:0]
			for i, p := range r.g.Nodes[node].Ports {
				peer := r.row[p.Peer]
				if peer >= 0 && r.dist[peer] == d-1 && r.up[p.Link] {
					r.ports = append(r.ports, uint16(i))
				}
			}
			s = r.intern(r.ports)
		}
		r.table[row*r.stride+column] = s
	}
}

// intern returns the number of a set of ports.
func (r *Routes) intern(ports []uint16) uint32 {
	if 2*len(r.sets) >= len(r.hash) {
		r.rehash()
	}
	mask := uint32(len(r.hash) - 1)
	i := hashPorts(ports) & mask
	for ; r.hash[i] != 0; i = (i + 1) & mask {
		at := r.sets[r.hash[i]]
		if slices.Equal(r.arena[at.off:at.off+at.n], ports) {
			return r.hash[i]
		}
	}
	s := uint32(len(r.sets))
	r.sets = append(r.sets, span{uint32(len(r.arena)), uint32(len(ports))})
	r.arena = append(r.arena, ports...)
	r.hash[i] = s
	return s
}

func (r *Routes) rehash() {
	r.hash = make([]uint32, max(1024, 2*len(r.hash)))
	mask := uint32(len(r.hash) - 1)
	for s := setLocal + 1; s < len(r.sets); s++ {
		at := r.sets[s]
		i := hashPorts(r.arena[at.off:at.off+at.n]) & mask
		for r.hash[i] != 0 {
			i = (i + 1) & mask
		}
		r.hash[i] = uint32(s)
	}
}

func hashPorts(ports []uint16) uint32 {
	h := uint32(2166136261) // FNV-1a
	for _, p := range ports {
		h = (h ^ uint32(p)) * 16777619
	}
	return h ^ h>>15
}
