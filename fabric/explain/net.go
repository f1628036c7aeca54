package explain

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Place is an egress (a port of a node), or a whole node if Port is -1.
type Place struct {
	Node, Port int32
	Name       string // "leaf0:Ethernet3", "host5"
}

// FlowRef names a flow.
type FlowRef struct {
	ID       int32
	Group    string
	Src, Dst string // names of the nodes between which its data moves
}

// none is an egress that does not exist.
const none = int32(-1)

// net is an index over a run: egresses numbered through, and who uses them.
// Nothing in a run is believed: one that was read from a file may point
// anywhere.
type net struct {
	r     *result.Run
	base  []int32 // first egress of each node; one more at the end
	node  []int32 // of each egress
	flows []flow
	// users are the flows that cross each egress, in order of their numbers:
	// users[first[e]:first[e+1]].
	users []int32
	first []int32
}

// flow is what the index knows of a flow.
type flow struct {
	f        *result.Flow
	path     []int32 // egresses, the sending NIC's first; empty: not known
	from, to int32   // nodes between which data moves
	start    sim.Time
	end      sim.Time // of its life: finished, failed, or the end of the run
	data     int64    // bytes of user data, for all of it; of an endless one so many that it never ends
	wire     int64    // ... and what they take of a link
	sent     int64    // ... for what was delivered
	spread   bool     // several paths; only its ends are sure
}

func index(r *result.Run) *net {
	n := &net{r: r, base: make([]int32, len(r.Nodes)+1)}
	for i := range r.Nodes {
		n.base[i+1] = n.base[i] + int32(len(r.Nodes[i].Ports))
		for range r.Nodes[i].Ports {
			n.node = append(n.node, int32(i))
		}
	}
	n.flows = make([]flow, len(r.Flows))
	n.first = make([]int32, len(n.node)+1)
	for i := range r.Flows {
		n.flows[i] = n.flow(&r.Flows[i])
		for _, e := range n.flows[i].path {
			n.first[e+1]++
		}
	}
	for e := range n.node {
		n.first[e+1] += n.first[e]
	}
	n.users = make([]int32, n.first[len(n.node)])
	next := slices.Clone(n.first)
	for i := range n.flows {
		for _, e := range n.flows[i].path {
			n.users[next[e]] = int32(i)
			next[e]++
		}
	}
	return n
}

func (n *net) flow(f *result.Flow) flow {
	d := flow{f: f, from: f.SrcNode, to: f.DstNode, start: f.Start, end: n.r.End}
	if f.State == result.Finished && f.Finish != sim.Never {
		d.end = f.Finish
	}
	d.end = max(d.end, d.start)
	d.path = n.path(f)
	if k := len(d.path); k > 0 {
		if first := n.node[d.path[0]]; !n.r.Nodes[first].Switch {
			d.from = first
		}
		if last := n.peerNode(d.path[k-1]); last != none && !n.r.Nodes[last].Switch {
			d.to = last
		}
	}
	d.data = f.Bytes
	if f.Bytes <= 0 && f.State != result.Finished {
		d.data = endless // it takes its share of links like any other
	}
	d.wire = n.onWire(d.data)
	d.sent = n.onWire(f.Delivered)
	if f.State == result.Finished {
		d.sent = d.wire
	}
	d.spread = f.Paths > 1
	return d
}

// path returns a flow's egresses, with the NIC's in front; nil if there is one
// that does not exist, or that is crossed twice (a routing loop).
func (n *net) path(f *result.Flow) []int32 {
	if len(f.Path) == 0 || len(f.Path) > maxDepth {
		return nil
	}
	out := make([]int32, 0, len(f.Path)+1)
	for _, h := range f.Path {
		e := n.egress(h.Node, h.Port)
		if e == none || slices.Contains(out, e) {
			return nil
		}
		out = append(out, e)
	}
	sw := f.Path[0].Node
	if !n.r.Nodes[sw].Switch || !n.hasNode(f.SrcNode) {
		return out
	}
	for p := range n.r.Nodes[f.SrcNode].Ports {
		if n.r.Nodes[f.SrcNode].Ports[p].Peer == sw {
			return slices.Insert(out, 0, n.base[f.SrcNode]+int32(p))
		}
	}
	return out
}

func (n *net) hasNode(i int32) bool { return i >= 0 && int(i) < len(n.r.Nodes) }

// egress returns the number of a node's port, none if there is no such port.
func (n *net) egress(node, port int32) int32 {
	if !n.hasNode(node) || port < 0 || int(port) >= len(n.r.Nodes[node].Ports) {
		return none
	}
	return n.base[node] + port
}

func (n *net) port(e int32) *result.Port {
	i := n.node[e]
	return &n.r.Nodes[i].Ports[e-n.base[i]]
}

// peer returns the egress at the other end of a link, none if there is none.
func (n *net) peer(e int32) int32 {
	p := n.port(e)
	return n.egress(p.Peer, p.PeerPort)
}

func (n *net) peerNode(e int32) int32 {
	if p := n.port(e).Peer; n.hasNode(p) {
		return p
	}
	return none
}

// through returns the flows that cross an egress.
func (n *net) through(e int32) []int32 { return n.users[n.first[e]:n.first[e+1]] }

// before returns the egress by which a flow came to the node of e; none at its
// own NIC.
func (d *flow) before(e int32) int32 {
	if i := slices.Index(d.path, e); i > 0 {
		return d.path[i-1]
	}
	return none
}

func (d *flow) crosses(e int32) bool { return slices.Contains(d.path, e) }

func (d *flow) last() int32 {
	if len(d.path) == 0 {
		return none
	}
	return d.path[len(d.path)-1]
}

// life is how long it took or has taken so far.
func (d *flow) life() sim.Time { return d.end - d.start }

// goodput is user data over time.
func (d *flow) goodput() sim.Rate {
	if d.f.State == result.Finished {
		return sim.RateOf(d.f.Bytes, d.life())
	}
	return sim.RateOf(d.f.Delivered, d.life())
}

// onWire returns what n bytes of user data take of a link.
func (n *net) onWire(bytes int64) int64 {
	s := &n.r.Shape
	if bytes <= 0 {
		return 0
	}
	if s.Payload <= 0 {
		return bytes
	}
	bytes = min(bytes, mostBytes)
	packets := (bytes + int64(s.Payload) - 1) / int64(s.Payload)
	return min(mostBytes, bytes+min(mostBytes, muldiv(packets, int64(s.Header)+int64(s.Gap), 1)))
}

// mostBytes keeps sums of what a file may say within an int64.
const mostBytes = 1 << 60

// endless is the user data of a flow without an end: more than any run moves,
// and its frames are below mostBytes whatever their headers are.
const endless = 1 << 48

func (n *net) place(e int32) Place {
	if e == none {
		return Place{-1, -1, "?"}
	}
	i := n.node[e]
	p := e - n.base[i]
	return Place{i, p, n.nodeName(i) + ":" + clean(n.r.Nodes[i].Ports[p].Name)}
}

func (n *net) nodePlace(i int32) Place { return Place{i, -1, n.nodeName(i)} }

func (n *net) nodeName(i int32) string {
	if !n.hasNode(i) {
		return "?"
	}
	return clean(n.r.Nodes[i].Name)
}

func (n *net) ref(i int32) FlowRef {
	d := &n.flows[i]
	return FlowRef{d.f.ID, clean(d.f.Group), n.nodeName(d.from), n.nodeName(d.to)}
}

// clean takes out what would move a terminal's cursor.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return -1
		}
		return c
	}, s)
}
