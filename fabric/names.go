package fabric

import (
	"fmt"
	"path"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// portOf finds the port of a name: "leaf0/Ethernet3", "host3/eth1", or "host3"
// for its first.
func (r *Run) portOf(name string) (node, port int32, err error) {
	n, p, _ := strings.Cut(name, "/")
	node = r.Graph.Node(n)
	if node < 0 {
		return 0, 0, fmt.Errorf("there is no node %q", n)
	}
	if p == "" {
		return node, 0, nil
	}
	for i := range r.Graph.Nodes[node].Ports {
		if r.Graph.PortName(node, int32(i)) == p {
			return node, int32(i), nil
		}
	}
	return 0, 0, fmt.Errorf("%s has no port %q, it has %s to %s", n, p,
		r.Graph.PortName(node, 0), r.Graph.PortName(node, int32(len(r.Graph.Nodes[node].Ports)-1)))
}

// endpoint finds the NIC of a name.
func (r *Run) endpoint(name string) (int32, error) {
	node, port, err := r.portOf(name)
	if err != nil {
		return 0, err
	}
	if r.Graph.Nodes[node].Kind != topo.Host {
		return 0, fmt.Errorf("%s is a switch, not a host", name)
	}
	return r.Graph.Nodes[node].Endpoint + port, nil
}

// endpoints finds the NICs that a selection names, in its order: names, ranges
// host8..host23, patterns, all. Where no NIC is named, a host's first is meant.
func (r *Run) endpoints(sel scenario.Select) ([]int32, error) {
	var list []int32
	for _, s := range sel {
		found, err := r.expand(s)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

func (r *Run) expand(s string) ([]int32, error) {
	if lo, hi, prefix, ok := scenario.Span(s); ok {
		var list []int32
		for i := lo; i <= hi; i++ {
			e, err := r.endpoint(fmt.Sprintf("%s%d", prefix, i))
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		return list, nil
	}
	if s == "all" {
		s = "*"
	}
	if !strings.ContainsAny(s, "*?[") {
		e, err := r.endpoint(s)
		return []int32{e}, err
	}
	var list []int32
	for i := range r.Graph.Endpoints {
		e := &r.Graph.Endpoints[i]
		name := r.Graph.Nodes[e.Node].Name
		if strings.Contains(s, "/") {
			name += "/" + r.Graph.PortName(e.Node, e.Port)
		} else if e.Port != 0 {
			continue
		}
		ok, err := path.Match(s, name)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", s, err)
		}
		if ok {
			list = append(list, int32(i))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no host is named like %q", s)
	}
	return list, nil
}

// portNamed reports whether a selection of ports names one.
func (r *Run) portNamed(sel scenario.Select, node, port int32) bool {
	name := r.Graph.Nodes[node].Name + "/" + r.Graph.PortName(node, port)
	for _, s := range sel {
		if s == "all" || s == r.Graph.Nodes[node].Name {
			return true
		}
		if ok, err := path.Match(s, name); ok && err == nil {
			return true
		}
	}
	return false
}
