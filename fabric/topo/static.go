package topo

import (
	"fmt"
	"slices"
)

// Set replaces the ways from switch sw to endpoint dst by the given ports, as a
// static host route would: for detours that no shortest path makes, such as
// one that goes down and up again. The ports are copied; they are in ascending
// order and each is one of the switch's. A failed call changes nothing.
func (r *Routes) Set(sw, dst int32, ports ...uint16) error {
	if dst < 0 || int(dst) >= len(r.column) {
		return fmt.Errorf("route of node %d: endpoint %d does not exist: there are %d", sw, dst, len(r.column))
	}
	if r.column[dst] < 0 {
		return fmt.Errorf("route of node %d: endpoint %d hangs on no switch", sw, dst)
	}
	if err := r.check(sw, ports); err != nil {
		return err
	}
	if err := r.split(dst); err != nil {
		return err
	}
	r.remember(static{r.row[sw], r.column[dst], slices.Clone(ports), false})
	return nil
}

// Forget drops what Static and Set have laid. Shortest paths take their place at
// the next Rebuild.
func (r *Routes) Forget() { r.static = nil }

// SetLeaf is Set for every endpoint of a leaf, except those for which the
// switch has a route of their own.
func (r *Routes) SetLeaf(sw, leaf int32, ports ...uint16) error {
	if !slices.Contains(r.leaves, leaf) {
		return fmt.Errorf("route of node %d: node %d is no leaf: no endpoint hangs on it", sw, leaf)
	}
	if err := r.check(sw, ports); err != nil {
		return err
	}
	for c, l := range r.leaves {
		if l != leaf {
			continue
		}
		if i := r.find(r.row[sw], int32(c)); i < 0 || r.static[i].leaf {
			r.remember(static{r.row[sw], int32(c), slices.Clone(ports), true})
		}
	}
	return nil
}

func (r *Routes) check(sw int32, ports []uint16) error {
	if sw < 0 || int(sw) >= len(r.row) || r.row[sw] < 0 {
		return fmt.Errorf("route: node %d is no switch", sw)
	}
	n := &r.g.Nodes[sw]
	if len(ports) == 0 {
		return fmt.Errorf("route of %s: no port given", n.Name)
	}
	for i, p := range ports {
		if int(p) >= len(n.Ports) {
			return fmt.Errorf("route of %s: port %d does not exist: it has %d", n.Name, p, len(n.Ports))
		}
		if i > 0 && p <= ports[i-1] {
			return fmt.Errorf("route of %s: port %d follows port %d: ascending order is wanted", n.Name, p, ports[i-1])
		}
	}
	return nil
}

// split gives an endpoint a column of its own.
func (r *Routes) split(dst int32) error {
	old := r.column[dst]
	if r.owner[old] == dst {
		return nil
	}
	c := len(r.leaves)
	if c == r.stride {
		stride := r.stride + max(8, r.stride/4)
		if uint64(len(r.nodes))*uint64(stride) > maxTable {
			return fmt.Errorf("route to endpoint %d: the table of routes is full: %d", dst, maxTable)
		}
		table := make([]uint32, len(r.nodes)*stride)
		for row := range r.nodes {
			copy(table[row*stride:], r.table[row*r.stride:(row+1)*r.stride])
		}
		r.table, r.stride = table, stride
	}
	r.leaves = append(r.leaves, r.leaves[old])
	r.owner = append(r.owner, dst)
	r.column[dst] = int32(c)
	for row := range r.nodes {
		r.table[row*r.stride+c] = r.table[row*r.stride+int(old)]
	}
	for _, s := range r.static { // what holds for the leaf holds for it
		if s.column == old {
			r.static = append(r.static, static{s.row, int32(c), s.ports, true})
		}
	}
	return nil
}

func (r *Routes) find(row, column int32) int {
	return slices.IndexFunc(r.static, func(s static) bool { return s.row == row && s.column == column })
}

func (r *Routes) remember(s static) {
	if i := r.find(s.row, s.column); i >= 0 {
		r.static[i] = s
	} else {
		r.static = append(r.static, s)
	}
	if !r.apply(&s) { // none of its ports is up
		r.Rebuild(func(link int32) bool { return !r.up[link] })
	}
}

// apply puts the ports that are up into the table, and reports whether there
// are any.
func (r *Routes) apply(s *static) bool {
	node := &r.g.Nodes[r.nodes[s.row]]
	r.ports = r.ports[:0]
	for _, p := range s.ports {
		if r.up[node.Ports[p].Link] {
			r.ports = append(r.ports, p)
		}
	}
	if len(r.ports) == 0 {
		return false
	}
	r.table[int(s.row)*r.stride+int(s.column)] = r.intern(r.ports)
	return true
}
