package explain

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Reading is a counter that an operator would see move, under the name that a
// NIC (mlx5's ethtool -S and hw_counters) or a switch (SONiC's show pfc
// counters) gives it.
type Reading struct {
	At    Place
	Name  string
	Value uint64
	Says  string // what it means here
}

// readings picks the counters that belong to the findings.
func (s *Story) readings(n *net) []Reading {
	c := &collector{n: n}
	if len(s.Trees) > 0 {
		c.tree(&s.Trees[0])
	}
	for i := range s.Storms {
		if i == maxStorms {
			break
		}
		w := &s.Storms[i]
		if w.Watchdog {
			c.add(w.Egress, fmt.Sprintf("show pfcwd stats %d: STORM DETECTED", w.Prio), n.prio(w.Egress, w.Prio).WatchdogDetected,
				"the watchdog gave the queue up")
		}
	}
	if s.Rates != nil && s.Rates.Marks > 0 {
		c.marks(s.Rates)
	}
	if s.Loss != nil {
		c.loss(s.Loss)
	}
	return c.out
}

type collector struct {
	n   *net
	out []Reading
}

func (c *collector) add(at Place, name string, v uint64, says string) {
	if v == 0 {
		return
	}
	for i := range c.out {
		if c.out[i].At == at && c.out[i].Name == name {
			return
		}
	}
	c.out = append(c.out, Reading{at, name, v, says})
}

// nic adds a counter of a host if the run has it.
func (c *collector) nic(host int32, name, says string) {
	if !c.n.hasNode(host) {
		return
	}
	for _, k := range c.n.r.Nodes[host].NIC {
		if k.Name == name {
			c.add(c.n.nodePlace(host), name, k.Value, says)
			return
		}
	}
}

func (n *net) prio(at Place, prio uint8) *result.PortPrio {
	if e := n.egress(at.Node, at.Port); e != none {
		return &n.port(e).Prio[prio&7]
	}
	return &result.PortPrio{}
}

// tree adds who sent the stops next to the root, and what the host feels that
// was stopped longest. The direction matters: rx at a host is the network
// saying stop, tx is the host saying it.
func (c *collector) tree(t *Tree) {
	n := c.n
	if len(t.Branches) == 0 {
		return
	}
	top := &t.Branches[0]
	if by := top.By; !n.hasNode(by.Node) || n.r.Nodes[by.Node].Switch {
		c.add(by, fmt.Sprintf("PFC%d Tx", t.Prio), n.prio(by, t.Prio).PauseTx, "the root's switch stops its neighbours")
	} else {
		c.add(by, fmt.Sprintf("tx_prio%d_pause", t.Prio), n.prio(by, t.Prio).PauseTx, "the host stops the network: it cannot take in what arrives")
		us := n.prio(top.Egress, t.Prio).PausedFor / sim.Microsecond
		c.add(by, fmt.Sprintf("tx_prio%d_pause_duration", t.Prio), uint64(us), "us")
		c.add(top.Egress, fmt.Sprintf("PFC%d Rx", t.Prio), n.prio(top.Egress, t.Prio).PauseRx, "a host's, not the fabric's")
	}
	var host *Branch
	for i := range t.Branches {
		if b := &t.Branches[i]; b.Host && (host == nil || b.Stopped > host.Stopped) {
			host = b
		}
	}
	if host == nil {
		return
	}
	p := n.prio(host.Egress, t.Prio)
	c.add(host.Egress, fmt.Sprintf("rx_prio%d_pause", t.Prio), p.PauseRx, "the network stops this sender")
	c.add(host.Egress, fmt.Sprintf("rx_prio%d_pause_duration", t.Prio), uint64(p.PausedFor/sim.Microsecond), "us")
}

func (c *collector) marks(r *Rates) {
	if len(r.Ports) > 0 {
		p := &r.Ports[0]
		c.add(p.Port, fmt.Sprintf("ECN marked, queue %d", p.Prio), p.Marked, "CE set on the way out")
	}
	var h *Held
	switch {
	case len(r.Held) > 0:
		h = &r.Held[0]
	case r.Typical != nil:
		h = r.Typical
	default:
		return
	}
	for i := range c.n.flows {
		d := &c.n.flows[i]
		if c.n.ref(int32(i)) != h.Flow {
			continue
		}
		c.nic(d.to, "np_ecn_marked_roce_packets", "marked packets arrived")
		c.nic(d.to, "np_cnp_sent", "the receiver told the sender")
		c.nic(d.from, "rp_cnp_handled", "the sender cut its rate")
		c.nic(d.from, "rp_cnp_ignored", "the sender did not")
		return
	}
}

func (c *collector) loss(l *Loss) {
	if len(l.Places) > 0 {
		p := &l.Places[0]
		name := fmt.Sprintf("drops, priority %d (%s)", p.Prio, p.Reason)
		c.add(p.At, name, p.Count, "where it was lost")
	}
	if l.Worst == nil {
		return
	}
	for i := range c.n.flows {
		d := &c.n.flows[i]
		if c.n.ref(int32(i)) != l.Worst.Flow {
			continue
		}
		c.nic(d.to, "out_of_sequence", "the receiver saw gaps")
		c.nic(d.from, "packet_seq_err", "the sender was told, and went back")
		c.nic(d.from, "local_ack_timeout_err", "nobody answered: the tail was lost")
		c.nic(d.to, fmt.Sprintf("rx_prio%d_discards", d.f.Prio), "the NIC had no room")
		return
	}
}
