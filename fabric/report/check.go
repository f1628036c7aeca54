package report

import (
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// check says what a file calls a node, port or flow that it does not have.
// Readers of a result may then index without asking.
func (d *decoder) check(r *result.Run) error {
	c := checker{d: d, r: r}
	for i := range r.Nodes {
		c.at("nodes", i)
		for _, p := range r.Nodes[i].Ports {
			if p.Peer >= 0 {
				c.hop("peer", p.Peer, p.PeerPort)
			}
		}
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		c.at("flows", i)
		c.node("src_node", f.SrcNode)
		c.node("dst_node", f.DstNode)
		for _, h := range f.Path {
			c.hop("path", h.Node, h.Port)
		}
	}
	for i, p := range r.Pauses {
		c.at("pauses", i)
		c.hop("port", p.Node, p.Port)
		if p.Egress >= 0 {
			c.hop("egress", p.Node, p.Egress)
		}
	}
	for i, x := range r.Drops {
		c.at("drops", i)
		c.node("node", x.Node)
		if x.Port >= 0 {
			c.hop("port", x.Node, x.Port)
		}
		c.flow(x.Flow)
	}
	for i := range r.Deadlocks {
		c.at("deadlocks", i)
		for _, h := range r.Deadlocks[i].Cycle {
			c.hop("cycle", h.Node, h.Port)
		}
	}
	for i, s := range r.Storms {
		c.at("storms", i)
		c.hop("port", s.Node, s.Port)
	}
	for i := range r.Series {
		c.at("series", i)
		c.series(&r.Series[i])
	}
	for i, b := range r.Breaches {
		c.at("breaches", i)
		if b.Node >= 0 {
			c.node("node", b.Node)
		}
	}
	for i, l := range r.Lossless {
		c.at("lossless", i)
		c.hop("port", l.Node, l.Port)
	}
	for i, l := range r.Links {
		c.at("links", i)
		c.hop("port", l.Node, l.Port)
	}
	return c.err
}

// checker keeps the first complaint.
type checker struct {
	d    *decoder
	r    *result.Run
	list string
	i    int
	err  error
}

func (c *checker) at(list string, i int) { c.list, c.i = list, i }

func (c *checker) fault(name string, n, have int, of string) {
	if c.err != nil {
		return
	}
	off := int64(0)
	if ps := c.d.places[c.list]; c.i < len(ps) {
		off = ps[c.i]
	}
	c.err = c.d.fault(off, c.list+"["+strconv.Itoa(c.i)+"]."+name, "%d: there are %d %s", n, have, of)
}

func (c *checker) node(name string, n int32) {
	if n < 0 || int(n) >= len(c.r.Nodes) {
		c.fault(name, int(n), len(c.r.Nodes), "nodes")
	}
}

func (c *checker) hop(name string, node, port int32) {
	if node < 0 || int(node) >= len(c.r.Nodes) {
		c.fault(name, int(node), len(c.r.Nodes), "nodes")
		return
	}
	if ports := len(c.r.Nodes[node].Ports); port < 0 || int(port) >= ports {
		c.fault(name, int(port), ports, "ports of "+(names{c.r}).node(node))
	}
}

func (c *checker) flow(n int32) {
	if n < -1 || int(n) >= len(c.r.Flows) {
		c.fault("flow", int(n), len(c.r.Flows), "flows")
	}
}

func (c *checker) series(s *result.Series) {
	if s.Step < 0 {
		c.fault("step_ps", int(s.Step), 0, "such steps: it must not be negative")
	}
	switch s.Kind {
	case result.FlowRate, result.FlowRC, result.FlowAlpha:
		if s.Flow < 0 {
			c.fault("flow", int(s.Flow), len(c.r.Flows), "flows")
		}
	case result.QueueBytes, result.PortRate, result.PausedShare:
		c.hop("port", s.Node, s.Port)
	case result.BufferShared, result.HostQueue:
		c.node("node", s.Node)
	case result.MarkRate, result.CNPRate: // of a port or of a flow
		if s.Node >= 0 {
			c.hop("port", s.Node, s.Port)
		}
	default: // of a later version
	}
	c.flow(s.Flow)
}
