package scenario

import "github.com/verbena-rdma/verbena/fabric/topo"

// Endpoints finds the NICs that a selection names, in its order. Where no NIC is
// named it is a host's first or, with every, each of them.
func (s Select) Endpoints(g *topo.Graph, every bool) ([]int32, error) {
	return newNames(g).endpoints(s, every)
}
