package scenario

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo"
)

// maxCycleWork bounds the search for cycles: leaves times switches.
const maxCycleWork = 1 << 16

// cycles finds routes whose links wait for each other in a circle: with PFC on
// all of them the fabric can deadlock (SIGCOMM'16 RDMA over commodity Ethernet
// §4.2; CoNEXT'17 Tagger §2).
func (l *linter) cycles() {
	r, err := l.g.Routes()
	if err != nil {
		return // a run says so
	}
	d := dependencies{g: l.g, id: map[[2]int32]int32{}, known: map[[2]int32]bool{}}
	leaves := map[int32]int32{} // one endpoint of each leaf
	var order []int32
	for i := range l.g.Endpoints {
		if leaf := l.g.Endpoints[i].Leaf; leaf >= 0 {
			if _, ok := leaves[leaf]; !ok {
				leaves[leaf] = int32(i)
				order = append(order, int32(i))
			}
		}
	}
	// Routes to single endpoints may differ from those of their leaf.
	for _, s := range l.g.Static {
		if s.Leaf < 0 && !slices.Contains(order, s.Endpoint) {
			order = append(order, s.Endpoint)
		}
	}
	if len(order)*len(l.g.Nodes) > maxCycleWork {
		return
	}
	for _, dst := range order {
		d.add(dst, r)
	}
	cycle := d.cycle()
	if cycle == nil || !l.losslessAll(cycle) {
		return
	}
	names := make([]string, 0, len(cycle)+1)
	for _, n := range cycle {
		names = append(names, l.g.Nodes[n].Name)
	}
	names = append(names, names[0])
	if len(names) > 12 {
		names = append(names[:6], append([]string{"..."}, names[len(names)-5:]...)...)
	}
	l.say("cycle", []string{"topology"}, "kind",
		"routes make a circle, %s: with PFC its links can wait for each other, a deadlock", strings.Join(names, " → "))
}

// losslessAll reports whether switches have a lossless priority in common.
func (l *linter) losslessAll(nodes []int32) bool {
	common := Prios(l.used())
	for _, g := range l.switches {
		for _, n := range g.nodes {
			if slices.Contains(nodes, n) {
				common &= g.set.PFC.Priorities
			}
		}
	}
	return common != 0
}

// dependencies is the graph of what waits for what: a link between switches
// waits for the links by which its far end sends on.
type dependencies struct {
	g     *topo.Graph
	id    map[[2]int32]int32 // of the link from a node to another
	links [][2]int32
	next  [][]int32
	known map[[2]int32]bool
}

func (d *dependencies) link(from, to int32) int32 {
	k := [2]int32{from, to}
	i, ok := d.id[k]
	if !ok {
		i = int32(len(d.links))
		d.id[k] = i
		d.links = append(d.links, k)
		d.next = append(d.next, nil)
	}
	return i
}

// add follows the routes to an endpoint.
func (d *dependencies) add(dst int32, r *topo.Routes) {
	hops := func(sw int32) []int32 {
		var out []int32
		for _, p := range r.Ports(sw, dst) {
			if peer := d.g.Nodes[sw].Ports[p].Peer; d.g.Nodes[peer].Kind == topo.Switch && !slices.Contains(out, peer) {
				out = append(out, peer)
			}
		}
		return out
	}
	next := make([][]int32, len(d.g.Nodes))
	for i := range d.g.Nodes {
		if d.g.Nodes[i].Kind == topo.Switch {
			next[i] = hops(int32(i))
		}
	}
	for i := range next {
		for _, via := range next[i] {
			in := d.link(int32(i), via)
			for _, to := range next[via] {
				out := d.link(via, to)
				if k := [2]int32{in, out}; !d.known[k] {
					d.known[k] = true
					d.next[in] = append(d.next[in], out)
				}
			}
		}
	}
}

// cycle returns the switches of a circle of links, in order, or nil.
func (d *dependencies) cycle() []int32 {
	const unseen, onPath, done = 0, 1, 2
	state := make([]uint8, len(d.links))
	at := make([]int, len(d.links))
	for start := range d.links {
		if state[start] != unseen {
			continue
		}
		path := []int32{int32(start)}
		state[start] = onPath
		for len(path) > 0 {
			i := path[len(path)-1]
			if at[i] == len(d.next[i]) {
				state[i] = done
				path = path[:len(path)-1]
				continue
			}
			j := d.next[i][at[i]]
			at[i]++
			switch state[j] {
			case unseen:
				state[j] = onPath
				path = append(path, j)
			case onPath:
				var nodes []int32
				for _, k := range path[slices.Index(path, j):] {
					nodes = append(nodes, d.links[k][0])
				}
				first := slices.Index(nodes, slices.Min(nodes))
				return append(nodes[first:], nodes[:first]...)
			}
		}
	}
	return nil
}
