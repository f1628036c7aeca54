package topo

import "fmt"

// Hop is an egress on a path.
type Hop struct{ Node, Port int32 }

// Path appends to buf the egresses by which packets go from endpoint src to
// endpoint dst, the host's first. pick chooses among the ports of a switch,
// which are never empty; nil takes the first. It fails where there is no way
// and where static routes lead in a circle.
func (r *Routes) Path(src, dst int32, pick func(sw int32, ports []uint16) uint16, buf []Hop) ([]Hop, error) {
	g := r.g
	from, to := &g.Endpoints[src], &g.Endpoints[dst]
	if from.Node == to.Node {
		return buf, fmt.Errorf("%s sends to itself", g.Nodes[from.Node].Name)
	}
	port := g.Nodes[from.Node].Ports[from.Port]
	buf = append(buf, Hop{from.Node, from.Port})
	if !r.up[port.Link] {
		return buf, fmt.Errorf("no way from %s to %s: %s of %s is down", g.EndpointName(src), g.EndpointName(dst),
			g.PortName(from.Node, from.Port), g.Nodes[from.Node].Name)
	}
	for limit := len(r.nodes); ; limit-- {
		at := port.Peer
		if at == to.Node && port.PeerPort == to.Port {
			return buf, nil
		}
		var ports []uint16
		if g.Nodes[at].Kind == Switch {
			ports = r.Ports(at, dst)
		}
		if len(ports) == 0 {
			return buf, fmt.Errorf("no way from %s to %s: %s has no route", g.EndpointName(src), g.EndpointName(dst), g.Nodes[at].Name)
		}
		if limit == 0 {
			return buf, fmt.Errorf("no way from %s to %s: routes lead in a circle at %s", g.EndpointName(src), g.EndpointName(dst), g.Nodes[at].Name)
		}
		p := ports[0]
		if pick != nil {
			p = pick(at, ports)
		}
		buf = append(buf, Hop{at, int32(p)})
		port = g.Nodes[at].Ports[p]
	}
}

// Hops returns the number of links from endpoint src to endpoint dst by first
// ports; 0 if there is no way.
func (r *Routes) Hops(src, dst int32) int {
	var buf [16]Hop
	p, err := r.Path(src, dst, nil, buf[:0])
	if err != nil {
		return 0
	}
	return len(p)
}

// Pair returns the endpoints by which two hosts (nodes) reach each other over
// the fewest links, the lowest of equals. It fails if there is no way.
func (r *Routes) Pair(a, b int32) (src, dst int32, err error) {
	best := 0
	for i := range r.g.Nodes[a].Ports {
		for j := range r.g.Nodes[b].Ports {
			s, d := r.g.Nodes[a].Endpoint+int32(i), r.g.Nodes[b].Endpoint+int32(j)
			if n := r.Hops(s, d); n > 0 && (best == 0 || n < best) {
				best, src, dst = n, s, d
			}
		}
	}
	if best == 0 {
		_, err := r.Path(r.g.Nodes[a].Endpoint, r.g.Nodes[b].Endpoint, nil, nil)
		return 0, 0, err
	}
	return src, dst, nil
}
