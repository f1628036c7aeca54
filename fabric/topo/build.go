package topo

import (
	"fmt"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// What a graph may hold at most. A shape or file that wants more is refused
// before memory is taken for it.
const (
	MaxNodes      = 1 << 18
	MaxLinks      = 1 << 20
	MaxPorts      = 1 << 12 // of one switch
	MaxHostPorts  = 64      // of one host
	MaxRate       = 100_000 * sim.Gbps
	MaxDelay      = sim.Second
	addrBits      = 24 // 10.0.0.0/8
	usualHostBits = 8  // a /24 for each leaf, if they fit
	reservedHosts = 2  // network and broadcast address
)

// builder puts a graph together. Ports are numbered in the order in which the
// links of a node are made.
type builder struct {
	g Graph
}

func newBuilder(name string, nodes, links int) *builder {
	return &builder{Graph{
		Name:  name,
		Nodes: make([]Node, 0, nodes),
		Links: make([]Link, 0, links),
	}}
}

// add makes a node. ports is how many it will have, a hint.
func (b *builder) add(k Kind, name string, tier, pod, ports int) int32 {
	b.g.Nodes = append(b.g.Nodes, Node{
		Name: name, Kind: k, Tier: tier, Pod: pod, Endpoint: -1,
		Ports: make([]Port, 0, ports),
	})
	return int32(len(b.g.Nodes) - 1)
}

// host makes host number i.
func (b *builder) host(i, pod, ports int) {
	b.add(Host, "host"+strconv.Itoa(i), 0, pod, ports)
}

// sw makes a switch called kind and number.
func (b *builder) sw(kind string, i, tier, pod, ports int) int32 {
	return b.add(Switch, kind+strconv.Itoa(i), tier, pod, ports)
}

// link joins the next free ports of two nodes.
func (b *builder) link(x, y int32, rate sim.Rate, delay sim.Time) *Link {
	l := int32(len(b.g.Links))
	nx, ny := &b.g.Nodes[x], &b.g.Nodes[y]
	px, py := int32(len(nx.Ports)), int32(len(ny.Ports))
	nx.Ports = append(nx.Ports, Port{Link: l, Peer: y, PeerPort: py})
	ny.Ports = append(ny.Ports, Port{Link: l, Peer: x, PeerPort: px})
	b.g.Links = append(b.g.Links, Link{A: x, B: y, APort: px, BPort: py, Rate: rate, Delay: delay})
	return &b.g.Links[l]
}

// finish checks the graph and numbers and addresses its endpoints. The builder
// is not used after it.
func (b *builder) finish() (*Graph, error) {
	g := &b.g
	n := 0
	for i := range g.Nodes {
		node := &g.Nodes[i]
		switch {
		case len(node.Ports) == 0:
			return nil, fmt.Errorf("%s %s has no link", node.Kind, node.Name)
		case node.Kind == Switch && len(node.Ports) > MaxPorts:
			return nil, fmt.Errorf("switch %s has %d ports, over the limit of %d", node.Name, len(node.Ports), MaxPorts)
		case node.Kind == Host && len(node.Ports) > MaxHostPorts:
			return nil, fmt.Errorf("host %s has %d ports, over the limit of %d", node.Name, len(node.Ports), MaxHostPorts)
		case node.Kind == Host:
			n += len(node.Ports)
		}
	}
	g.Endpoints = make([]Endpoint, 0, n)
	for i := range g.Nodes {
		node := &g.Nodes[i]
		if node.Kind != Host {
			continue
		}
		node.Endpoint = int32(len(g.Endpoints))
		for p, port := range node.Ports {
			leaf := port.Peer
			if g.Nodes[leaf].Kind != Switch {
				leaf = -1
			}
			g.Endpoints = append(g.Endpoints, Endpoint{Node: int32(i), Port: int32(p), Leaf: leaf})
		}
	}
	return g, g.subnetPerLeaf()
}
