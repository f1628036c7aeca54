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
