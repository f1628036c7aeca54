package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// EndpointName returns "host3", or "host3/eth1" where the host has several.
func (g *Graph) EndpointName(endpoint int32) string {
	e := &g.Endpoints[endpoint]
	n := &g.Nodes[e.Node]
	if len(n.Ports) == 1 {
		return n.Name
	}
	return n.Name + "/" + g.PortName(e.Node, e.Port)
}

// Resolver finds endpoints for what workload files call hosts. Its methods
// By... have the form that the readers of fabric/work want; each takes a source
// and a destination, so that hosts with several NICs meet where they are
// nearest to each other.
type Resolver struct {
	r     *Routes
	hosts []int32 // nodes
	names map[string]int32
	near  map[[2]int32][2]int32 // known pairs of hosts with several NICs
}

// NewResolver returns a resolver for routes as they are now.
func NewResolver(r *Routes) *Resolver {
	v := &Resolver{r: r, names: make(map[string]int32, len(r.g.Nodes)), near: make(map[[2]int32][2]int32)}
	for i := range r.g.Nodes {
		if r.g.Nodes[i].Kind == Host {
			v.hosts = append(v.hosts, int32(i))
		}
		v.names[r.g.Nodes[i].Name] = int32(i)
	}
	return v
}

// ByNode takes numbers of nodes, as in HPCC's flow.txt.
func (v *Resolver) ByNode(src, dst string) (from, to int32, err error) {
	node := func(text string) (int32, error) {
		n, err := strconv.ParseUint(text, 10, 31)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is no node's number", text)
		case int(n) >= len(v.r.g.Nodes):
			return 0, fmt.Errorf("node %d does not exist: there are %d", n, len(v.r.g.Nodes))
		case v.r.g.Nodes[n].Kind != Host:
			return 0, fmt.Errorf("node %d is a switch", n)
		}
		return int32(n), nil
	}
	return v.resolve(src, dst, node)
}

// ByHost takes numbers of hosts, as in htsim's connection matrices.
func (v *Resolver) ByHost(src, dst string) (from, to int32, err error) {
	return v.resolve(src, dst, v.host)
}

// ByName takes names of hosts, of endpoints ("host3/eth1") or numbers of hosts.
func (v *Resolver) ByName(src, dst string) (from, to int32, err error) {
	a, aPort, err := v.named(src)
	if err != nil {
		return 0, 0, err
	}
	b, bPort, err := v.named(dst)
	if err != nil {
		return 0, 0, err
	}
	if aPort < 0 && bPort < 0 {
		return v.pair(a, b)
	}
	na, nb := &v.r.g.Nodes[a], &v.r.g.Nodes[b]
	// One or both are fixed: the other is the nearest that is left.
	best := 0
	for i := range na.Ports {
		for j := range nb.Ports {
			if aPort >= 0 && i != aPort || bPort >= 0 && j != bPort {
				continue
			}
			s, d := na.Endpoint+int32(i), nb.Endpoint+int32(j)
			if n := v.r.Hops(s, d); n > 0 && (best == 0 || n < best) {
				best, from, to = n, s, d
			}
		}
	}
	if best == 0 {
		_, err := v.r.Path(na.Endpoint+int32(max(aPort, 0)), nb.Endpoint+int32(max(bPort, 0)), nil, nil)
		return 0, 0, err
	}
	return from, to, nil
}

func (v *Resolver) host(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no host's number", text)
	case int(n) >= len(v.hosts):
		return 0, fmt.Errorf("host %d does not exist: there are %d", n, len(v.hosts))
	}
	return v.hosts[n], nil
}

// named returns a host and its port, -1 for any.
func (v *Resolver) named(text string) (node int32, port int, err error) {
	name, nic, found := strings.Cut(text, "/")
	node, ok := v.names[name]
	if !ok && !found {
		if node, err := v.host(text); err == nil {
			return node, -1, nil
		}
	}
	if !ok {
		return 0, 0, fmt.Errorf("%q does not exist", name)
	}
	n := &v.r.g.Nodes[node]
	if n.Kind != Host {
		return 0, 0, fmt.Errorf("%q is a switch", name)
	}
	if !found {
		return node, -1, nil
	}
	for i := range n.Ports {
		if v.r.g.PortName(node, int32(i)) == nic {
			return node, i, nil
		}
	}
	return 0, 0, fmt.Errorf("%s has no %q: it has %d ports", name, nic, len(n.Ports))
}

func (v *Resolver) resolve(src, dst string, node func(string) (int32, error)) (from, to int32, err error) {
	a, err := node(src)
	if err != nil {
		return 0, 0, err
	}
	b, err := node(dst)
	if err != nil {
		return 0, 0, err
	}
	return v.pair(a, b)
}

func (v *Resolver) pair(a, b int32) (from, to int32, err error) {
	if len(v.r.g.Nodes[a].Ports) == 1 && len(v.r.g.Nodes[b].Ports) == 1 {
		return v.r.Pair(a, b) // as quick as to look it up
	}
	key := [2]int32{a, b}
	if p, ok := v.near[key]; ok {
		return p[0], p[1], nil
	}
	if from, to, err = v.r.Pair(a, b); err != nil {
		return 0, 0, err
	}
	if len(v.near) < maxNear {
		v.near[key] = [2]int32{from, to}
	}
	return from, to, nil
}

// maxNear limits what a resolver remembers: some 60 MB.
const maxNear = 1 << 20
