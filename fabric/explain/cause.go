package explain

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Kind is the kind of a root cause.
type Kind uint8

// The kinds.
const (
	// Unknown: nothing in the result explains it.
	Unknown Kind = iota
	// Incast: several senders at one host's port.
	Incast
	// Collision: several flows at one link between switches.
	Collision
	// StepDown: one sender, and a port slower than what feeds it.
	StepDown
	// Starved: higher or heavier priorities take the port.
	Starved
	// SlowReceiver: a host that cannot take in what arrives.
	SlowReceiver
	// StormHost: a host that says stop for ever.
	StormHost
	// GlobalPause: 802.3x, all priorities of a port.
	GlobalPause
	// LinkDown: the port had no link.
	LinkDown
	// Cycle: stops that wait for each other.
	Cycle
)

var kindNames = [...]string{
	"unknown", "incast", "collision on a link", "speed step-down", "starved by other priorities", "slow receiver",
	"pause storm", "global pause", "link down", "deadlock",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// Root is why a tree's root could not send what came in.
type Root struct {
	Kind    Kind
	Flows   int // that crossed it at once, at most
	Senders int // hosts that they came from
	InPorts int // by which they came in
	Rate    sim.Rate
	InRate  sim.Rate // fastest of those ports
	// Offered is what senders and ports can bring at once; Ratio is Offered
	// over Rate.
	Offered sim.Rate
	Ratio   float64
	// Before is set if they met before anybody was stopped: what they left in the
	// queue was still there, and later ones, who alone would have had room, made
	// it too long.
	Before bool
	// OtherPrio is the share of the port's bytes in other priorities.
	OtherPrio float64
	PeakQueue int64
	// Receiver is the host at the far end, if there is one.
	Receiver string
	// Down is how long the link was down, of a port of this node if DownAt
	// names another one: traffic moved from there to here.
	Down   sim.Time
	DownAt Place
}

// cause finds the reason of a tree's root.
func (s *stops) cause(t *Tree, group []int32) Root {
	if node, whole := rootOf(t.root); whole {
		return s.nodeCause(node, group)
	}
	n := s.n
	from, to := sim.Time(0), n.r.End
	if len(t.Windows) > 0 {
		from, to = t.Windows[0].From, t.Windows[len(t.Windows)-1].To
	}
	c := n.load(t.root, t.Prio, from, to)
	if !c.over() {
		if b := n.load(t.root, t.Prio, 0, to); b.over() {
			c, c.Before = b, true
		}
	}
	c.PeakQueue = n.port(t.root).Prio[t.Prio&7].PeakQueue
	c.OtherPrio = n.otherPrio(t.root, t.Prio)
	toHost := false
	if p := n.peerNode(t.root); p != none && !n.r.Nodes[p].Switch {
		c.Receiver, toHost = n.nodeName(p), true
	}
	c.Down = n.downTime(t.root, from, to)
	over := c.over()
	switch {
	case s.deadlockOf(t.root, t.Prio) != nil:
		c.Kind = Cycle
	case c.Down > 0 && permille(c.Down, to-from) >= interiorPermille:
		c.Kind, c.DownAt = LinkDown, n.place(t.root)
	case over && c.Before && c.OtherPrio*1000 >= starvedPermille:
		c.Kind = Starved // which explains the time of the stops itself
	case over && c.Senders == 1 && c.InRate > c.Rate:
		c.Kind = StepDown
	case over && toHost:
		c.Kind = Incast
	case over && c.Flows > 0:
		c.Kind = Collision
	case c.OtherPrio*1000 >= starvedPermille:
		c.Kind = Starved
	}
	if c.Kind != LinkDown {
		c.Down, c.DownAt = n.downNear(t.root, from)
	}
	return c
}

// over reports whether more can come in than goes out.
func (c *Root) over() bool { return int64(c.Offered) > muldiv(int64(c.Rate), overloadPermille, 1000) }

// nodeCause is of a tree whose root is a host, or a switch that told no egress.
func (s *stops) nodeCause(node int32, group []int32) Root {
	times := s.causes(group)
	c := Root{}
	if !s.n.r.Nodes[node].Switch {
		c.Kind = SlowReceiver
		c.Receiver = s.n.nodeName(node)
		c.Rate = s.n.r.Nodes[node].Host.DrainRate
	}
	best := times[result.CauseBuffer] + times[result.CauseSlowReceiver]
	if times[result.CauseGlobal] > best {
		c.Kind, best = GlobalPause, times[result.CauseGlobal]
	}
	if times[result.CauseStorm] > best {
		c.Kind = StormHost
	}
	return c
}

func (n *net) otherPrio(e int32, prio uint8) float64 {
	var all, own uint64
	for i := range n.port(e).Prio {
		all += n.port(e).Prio[i].TxBytes
	}
	own = n.port(e).Prio[prio&7].TxBytes
	return ratio(float64(all-own), float64(all))
}

// downTime returns how long the link of an egress was down in a span; without
// a record of its changes, how long in all.
func (n *net) downTime(e int32, from, to sim.Time) sim.Time {
	var sum, since sim.Time
	known, down := false, false
	for i := range n.r.Links {
		l := &n.r.Links[i]
		at := n.egress(l.Node, l.Port)
		if at == none || at != e && n.peer(at) != e {
			continue
		}
		known = true
		if down {
			sum += max(0, min(l.At, to)-max(since, from))
		}
		since, down = l.At, !l.Up
	}
	if down {
		sum += max(0, to-max(since, from))
	}
	if !known {
		return min(n.port(e).Down, max(0, to-from))
	}
	return sum
}

// downNear returns the last link of the same node that went down shortly before.
func (n *net) downNear(e int32, before sim.Time) (sim.Time, Place) {
	for i := len(n.r.Links) - 1; i >= 0; i-- {
		l := &n.r.Links[i]
		if l.Up || l.At > before || l.At.Add(rerouteTime) < before {
			continue
		}
		at := n.egress(l.Node, l.Port)
		if at == none || at == e || n.peer(at) == e {
			continue
		}
		for _, x := range [...]int32{at, n.peer(at)} {
			if x != none && n.node[x] == n.node[e] {
				return n.downTime(x, l.At, n.r.End), n.place(x)
			}
		}
	}
	return 0, Place{}
}
