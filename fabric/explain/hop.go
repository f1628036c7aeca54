package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// Misfit is RDMA in a class without PFC.
type Misfit struct {
	At    Place // the switch that put it there; Port -1
	Want  uint8 // the flows' priority
	Got   uint8 // what the switch made of it
	Drops uint64
	Flows int
	// Everywhere: the flows' own priority has no PFC; no switch is to blame.
	Everywhere bool
}

// Deaf is a neighbour that was told to stop and did not.
type Deaf struct {
	At     Place // sent the PFC frames
	Peer   Place // did not obey
	Prio   uint8
	Stops  uint64
	Heard  uint64 // frames that it counted
	Drops  uint64 // at At, for lack of headroom or buffer
	IsHost bool
}

// Mute is an ingress that dropped packets of a lossless class and never said
// stop: PFC is off there.
type Mute struct {
	At    Place
	Prio  uint8
	Drops uint64
}

// misfits finds RDMA that travels where PFC does not protect it, by what was
// dropped there: a packet of a lossless flow in another priority means that
// the switch's map of DSCP (or PCP) to priority is not the others'.
func (n *net) misfits() []Misfit {
	if n.r.Shape.Lossless == 0 {
		return nil // meant to be lossy
	}
	var out []Misfit
	var flows [][]int32
	for i := range n.r.Drops {
		d := &n.r.Drops[i]
		if d.Flow < 0 || int(d.Flow) >= len(n.flows) || !n.hasNode(d.Node) || d.Prio > 7 || n.isTCP(d.Flow) {
			continue
		}
		want := n.flows[d.Flow].f.Prio & 7
		if d.Reason != result.DropNoBuffer && d.Reason != result.DropWRED || n.r.Shape.Lossless&(1<<d.Prio) != 0 {
			continue
		}
		m := Misfit{At: n.nodePlace(d.Node), Want: want, Got: d.Prio, Everywhere: want == d.Prio}
		if m.Everywhere {
			m.At = Place{-1, -1, "every switch"}
		}
		j := slices.IndexFunc(out, func(x Misfit) bool { return x.At == m.At && x.Want == m.Want && x.Got == m.Got })
		if j < 0 {
			j = len(out)
			out = append(out, m)
			flows = append(flows, nil)
		}
		out[j].Drops++
		if !slices.Contains(flows[j], d.Flow) {
			flows[j] = append(flows[j], d.Flow)
			out[j].Flows++
		}
	}
	slices.SortStableFunc(out, func(a, b Misfit) int { return cmp.Compare(b.Drops, a.Drops) })
	return out
}

// unheard finds neighbours that send what is lossless here in another priority,
// and so cannot be stopped: a port says stop in a priority in which the other
// end has sent nothing. (A port counts what comes in by the sender's priority.)
func (n *net) unheard(places []LossPlace) []Misfit {
	var out []Misfit
	for e := range n.node {
		p := n.port(int32(e))
		peer := n.peer(int32(e))
		if peer == none {
			continue
		}
		got := 0
		for prio := range p.Prio {
			if p.Prio[prio].RxPackets > p.Prio[got].RxPackets {
				got = prio
			}
		}
		for prio := range p.Prio {
			if p.Prio[prio].PauseTx < deafStops || p.Prio[prio].RxPackets > 0 || p.Prio[got].RxPackets == 0 {
				continue
			}
			m := Misfit{At: n.nodePlace(n.node[peer]), Want: uint8(prio), Got: uint8(got)}
			m.Drops = dropsAt(places, n.place(int32(e)), uint8(prio))
			for _, i := range n.through(peer) {
				if n.flows[i].f.Prio == uint8(prio) {
					m.Flows++
				}
			}
			if j := slices.IndexFunc(out, func(x Misfit) bool { return x.At == m.At && x.Want == m.Want && x.Got == m.Got }); j >= 0 {
				out[j].Drops += m.Drops
				out[j].Flows += m.Flows
				continue
			}
			out = append(out, m)
		}
	}
	return out
}

// dropsAt counts what was dropped at an ingress for lack of room.
func dropsAt(places []LossPlace, at Place, prio uint8) uint64 {
	var sum uint64
	for i := range places {
		p := &places[i]
		if p.At == at && p.Prio == prio && (p.Reason == result.DropNoBuffer || p.Reason == result.DropHeadroom) {
			sum += p.Count
		}
	}
	return sum
}

// deaf finds ports whose PFC frames the other end did not obey.
func (n *net) deaf(places []LossPlace) []Deaf {
	var out []Deaf
	for e := range n.node {
		p := n.port(int32(e))
		peer := n.peer(int32(e))
		if peer == none {
			continue
		}
		for prio := range p.Prio {
			if !n.isDeaf(peer, uint8(prio)) {
				continue
			}
			there := &n.port(peer).Prio[prio]
			d := Deaf{
				At: n.place(int32(e)), Peer: n.place(peer), Prio: uint8(prio), Stops: p.Prio[prio].PauseTx, Heard: there.PauseRx,
				IsHost: !n.r.Nodes[n.node[peer]].Switch,
			}
			d.Drops = dropsAt(places, d.At, d.Prio)
			out = append(out, d)
		}
	}
	return out
}

// isDeaf reports whether an egress was told to stop and never did, though it had
// something to send.
func (n *net) isDeaf(e int32, prio uint8) bool {
	by := n.peer(e)
	if by == none {
		return false
	}
	told := &n.port(by).Prio[prio&7]
	return told.PauseTx >= deafStops && told.RxPackets > 0 && n.port(e).Prio[prio&7].PausedFor == 0
}

// mute finds ingresses that dropped instead of stopping their neighbour.
func (n *net) mute(places []LossPlace) []Mute {
	var out []Mute
	for i := range places {
		p := &places[i]
		e := n.egress(p.At.Node, p.At.Port)
		if !p.Lossless || e == none || p.Reason != result.DropNoBuffer && p.Reason != result.DropHeadroom {
			continue
		}
		if port := n.port(e); port.Prio[p.Prio].PauseTx == 0 && port.GlobalPauses == 0 {
			out = append(out, Mute{p.At, p.Prio, p.Count})
		}
	}
	return out
}
