package scenario

import (
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// thresholds compares ECN with PFC and with a packet.
func (l *linter) thresholds() {
	frame := l.s.Packet.FullFrame()
	for _, g := range l.switches {
		l.ports(g, func(node, port int32) {
			rate := l.g.Link(node, port).Rate
			for p := range uint8(8) {
				m, ok := g.set.ECN.For(p, rate)
				if !ok || l.used()&(1<<p) == 0 {
					continue
				}
				if int64(m.KMin) < frame && m.PMax > 0 && (m.KMin != 0 || m.KMax != 0) {
					l.say("small k", g.paths, "ecn.kmin",
						"%s is less than one packet (%d bytes): packets are marked as soon as one other waits, and %s's links stay below their rate",
						m.KMin, frame, l.name(g.nodes))
				}
				l.pausesFirst(g, node, port, p, m)
			}
		})
	}
}

// pausesFirst warns where one ingress reaches XOFF before the queue that it
// fills reaches Kmin: PFC then acts on what ECN never sees.
func (l *linter) pausesFirst(g *switchGroup, node, port int32, p uint8, m Mark) {
	if !g.set.PFC.Priorities.Has(p) {
		return
	}
	xoff := l.xoff(g, node, port, p)
	if xoff < 0 || int64(m.KMin) <= xoff {
		return
	}
	l.say("ecn above xoff", g.paths, "ecn.kmin",
		"%s is above XOFF, %s for one congested port of %s: PFC pauses the sender before its packets are marked, so DCQCN does not slow it",
		m.KMin, Bytes(xoff), l.name(g.nodes))
}

// xoff returns the bytes at which one ingress group alone is stopped; -1 if never.
func (l *linter) xoff(g *switchGroup, node, port int32, p uint8) int64 {
	b := &g.set.Buffer
	if b.XOFF > 0 {
		return int64(b.Reserved + b.XOFF)
	}
	if b.Total == 0 {
		return -1
	}
	_, _, shared := l.pools(g, node)
	if shared <= 0 {
		return int64(b.Reserved)
	}
	a := b.Alpha
	if own := b.AlphaBy[p]; own != 0 {
		a = own
	}
	alpha := a.Float()
	if b.ScaleAlpha {
		slowest := l.g.Link(node, 0).Rate
		for i := range l.g.Nodes[node].Ports {
			slowest = min(slowest, l.g.Link(node, int32(i)).Rate)
		}
		for r := slowest * 2; r <= l.g.Link(node, port).Rate; r *= 2 {
			alpha *= 2
		}
	}
	return int64(b.Reserved) + int64(theory.DynamicThreshold(alpha, float64(shared), 1))
}

// pools divides a switch's memory.
func (l *linter) pools(g *switchGroup, node int32) (reserved, headroom, shared int64) {
	b := &g.set.Buffer
	var groups, lossless [8]bool
	used := l.used()
	for p := range uint8(8) {
		if used&(1<<p) != 0 {
			groups[g.set.GroupMap[p]] = true
			if g.set.PFC.Priorities.Has(p) {
				lossless[g.set.GroupMap[p]] = true
			}
		}
	}
	for i := range l.g.Nodes[node].Ports {
		have := int64(-1)
		for k := range groups {
			if groups[k] {
				reserved += int64(b.Reserved)
			}
			if lossless[k] {
				if have < 0 {
					have = b.HaveHeadroom(l.link(node, int32(i)))
				}
				headroom += have
			}
		}
	}
	if b.HeadroomPool > 0 {
		headroom = int64(b.HeadroomPool)
	}
	return reserved, headroom, int64(b.Total) - reserved - headroom
}

// headroom compares what a lossless group has with what its cable needs.
func (l *linter) headroom() {
	for _, g := range l.switches {
		if uint8(g.set.PFC.Priorities)&l.used() == 0 {
			continue
		}
		l.ports(g, func(node, port int32) {
			link := l.link(node, port)
			have, need := g.set.Buffer.HaveHeadroom(link), g.set.Buffer.NeedHeadroom(link)
			if have >= need {
				return
			}
			l.say("headroom", g.paths, "buffer.headroom",
				"%s at %s; its link of %s and %s needs %s: up to %s of a lossless class are dropped when it is paused at full rate",
				Bytes(have), l.portName(node, port), RateText(link.Rate), TimeText(link.Delay), Bytes(need), Bytes(need-have))
		})
	}
}

// buffers adds up what is promised.
func (l *linter) buffers() {
	for _, g := range l.switches {
		b := &g.set.Buffer
		if b.Total == 0 {
			continue
		}
		node := g.nodes[0]
		reserved, headroom, shared := l.pools(g, node)
		switch frame := l.s.MaxFrame(); {
		case shared < 0:
			l.say("oversubscribed", g.paths, "buffer.total",
				"%s of %s is less than the reserved %s and the headroom %s of its %d ports: no switch can be made of that",
				b.Total, l.name(g.nodes), Bytes(reserved), Bytes(headroom), len(l.g.Nodes[node].Ports))
		case shared < frame:
			l.say("oversubscribed", g.paths, "buffer.total",
				"%s of %s leaves %s to share, less than one packet", b.Total, l.name(g.nodes), Bytes(shared))
		}
		if b.HeadroomPool == 0 {
			continue
		}
		need := int64(0)
		for i := range l.g.Nodes[node].Ports {
			need = max(need, g.set.Buffer.NeedHeadroom(l.link(node, int32(i))))
		}
		if n := int64(b.HeadroomPool) / max(need, 1); n < int64(len(l.g.Nodes[node].Ports)) {
			l.say("headroom pool", g.paths, "buffer.headroom_pool",
				"%s of %s is enough for %d of its %d ports at a time: more of them paused at once may drop",
				b.HeadroomPool, l.name(g.nodes), n, len(l.g.Nodes[node].Ports))
		}
	}
}

// packets finds frames that do not fit through a switch.
func (l *linter) packets() {
	for _, g := range l.switches {
		for _, h := range l.hosts {
			n := l.s.Packet.FullPayload()
			if h.set.MTU > 0 {
				n = min(n, h.set.MTU)
			}
			frame := int64(n) + l.s.Packet.FullFrame() - int64(l.s.Packet.FullPayload())
			if int64(g.set.MTU) < frame {
				l.say("mtu", g.paths, "mtu",
					"%s drops every frame of more than %d bytes; full packets of %s have %d: their messages are sent again until the queue pair fails",
					l.name(g.nodes), g.set.MTU, l.name(h.nodes), frame)
			}
		}
	}
}

// hashing finds tiers of switches that choose alike.
func (l *linter) hashing() {
	tier := map[int]bool{}
	same := 0
	for _, g := range l.switches {
		for _, n := range g.nodes {
			node := &l.g.Nodes[n]
			up := 0
			for _, p := range node.Ports {
				if peer := &l.g.Nodes[p.Peer]; peer.Kind == topo.Switch && peer.Tier > node.Tier {
					up++
				}
			}
			if up > 1 && !g.set.ECMP.Seed.PerSwitch && !tier[node.Tier] {
				tier[node.Tier] = true
				same++
			}
		}
	}
	if same > 1 {
		l.say("polarised", l.switches[0].paths, "ecmp.seed",
			"switches of %d tiers hash with one seed: what one tier has sorted, the next does not spread, and only some of its links are used", same)
	}
}

// watchdogs compares times with the run.
func (l *linter) watchdogs() {
	for _, g := range l.switches {
		w := &g.set.PFC.Watchdog
		if w.On && w.Detect >= l.s.Duration {
			l.say("watchdog", g.paths, "pfc.watchdog.detect",
				"%s is not less than the duration of the run, %s: the watchdog never acts", TimeText(w.Detect), TimeText(l.s.Duration))
		}
	}
}
