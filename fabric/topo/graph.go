package topo

import (
	"net/netip"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Kind says what a node is.
type Kind uint8

// The kinds.
const (
	Host   Kind = iota // sends and receives, never forwards
	Switch             // forwards
)

// String returns "host" or "switch".
func (k Kind) String() string {
	if k == Switch {
		return "switch"
	}
	return "host"
}

// Graph is a fabric at rest. Who holds it does not change it; a link that goes
// down is told to Routes, not to the graph.
type Graph struct {
	Name      string // the shape: "spine-leaf 4x8, 32 hosts"
	Nodes     []Node
	Links     []Link
	Endpoints []Endpoint // by host in the order of nodes, then by port
	// Static routes replace shortest paths: Routes has them from the start.
	Static []Static
}

// Static is a route that somebody has laid: a switch, where to, by which ports.
type Static struct {
	Switch   int32
	Leaf     int32 // a switch: all endpoints that hang on it; -1: Endpoint
	Endpoint int32
	Ports    []uint16 // of Switch, ascending
}

// Node is a host or a switch.
type Node struct {
	Name string // "host0", "leaf0", "spine0", "core0", "sw0"
	Kind Kind
	// Tier is 0 for hosts, 1 for leaves and single switches, then upwards.
	Tier int
	// Pod is the unit of the shape in which it stands (fat tree, rail); else 0.
	// Cores and spines above all pods have -1.
	Pod int
	// Ports of a leaf: those to hosts first, in their order, then those upwards.
	Ports []Port
	// Endpoint is the host's first one: it has len(Ports) of them. -1 of a switch.
	Endpoint int32
	// Latency of a switch that a file gives: from the arrival of a packet to its
	// place in the queue. 0: the scenario's.
	Latency sim.Time
}

// Port is one end of a link.
type Port struct {
	Link     int32 // index into Links
	Peer     int32 // node at the other end
	PeerPort int32 // and its port
}

// Link is a cable: full duplex, the same both ways.
type Link struct {
	A, B         int32 // nodes
	APort, BPort int32 // and their ports
	Rate         sim.Rate
	Delay        sim.Time // one way
	ErrorRate    uint64   // share of packets that arrive broken, in units of 2^-32
}

// Endpoint is one port of a host: what has an address.
type Endpoint struct {
	Node int32      // the host
	Port int32      // its port
	Leaf int32      // node of the switch it hangs on; -1 if another host is there
	Addr netip.Addr // in 10.0.0.0/8
	// Subnet numbers the subnets from 0: one for each leaf, in the order of
	// their first endpoints.
	Subnet int
}

// Hosts returns the number of hosts.
func (g *Graph) Hosts() int {
	n := 0
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Host {
			n++
		}
	}
	return n
}

// Node returns the index of the node of a name, or -1. It searches: not for
// every packet.
func (g *Graph) Node(name string) int32 {
	for i := range g.Nodes {
		if g.Nodes[i].Name == name {
			return int32(i)
		}
	}
	return -1
}

// PortName returns the interface's name: "Ethernet3" of a switch, "eth0" of a
// host.
func (g *Graph) PortName(node, port int32) string {
	if g.Nodes[node].Kind == Switch {
		return "Ethernet" + strconv.Itoa(int(port))
	}
	return "eth" + strconv.Itoa(int(port))
}

// Link returns the link at a port.
func (g *Graph) Link(node, port int32) *Link {
	return &g.Links[g.Nodes[node].Ports[port].Link]
}
