package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Loss is what was dropped, and what that cost.
type Loss struct {
	// Drops were recorded; Cut more were not, so places and reasons are those
	// of the recorded ones.
	Drops, Cut uint64
	TCP        uint64      // of them, of flows that expect loss
	Places     []LossPlace // most first, at most maxLossPlaces of PlaceCount
	PlaceCount int

	// Go-back-N: all data packets, those sent again, and how many for each drop.
	Packets, Again uint64
	PerDrop        float64
	Timeouts, NAKs uint64
	Worst          *LossFlow
	Failed         []FailedFlow // at most maxVictims of FailedCount
	FailedCount    int

	Misfits []Misfit
	Deaf    []Deaf
	Mute    []Mute
}

// LossPlace is one place, priority and reason.
type LossPlace struct {
	At       Place // ingress
	Prio     uint8
	Reason   result.DropReason
	Count    uint64
	Bytes    uint64
	First    sim.Time
	Lossless bool // the class is one with PFC
	TCP      uint64
}

// LossFlow is the flow that sent most of its packets again.
type LossFlow struct {
	Flow     FlowRef
	Packets  uint64
	Again    uint64
	Goodput  sim.Rate
	Timeouts uint64
}

// FailedFlow has given up.
type FailedFlow struct {
	Flow   FlowRef
	Status string
}

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

func (s *stops) loss() *Loss {
	n := s.n
	out := &Loss{Drops: uint64(len(n.r.Drops)), Cut: n.r.DropsCut}
	places := s.lossPlaces(out)
	for i := range n.flows {
		f := n.flows[i].f
		out.Packets += f.Packets
		out.Again += f.Retransmitted
		out.Timeouts += f.Timeouts
		out.NAKs += f.NAKs
		if f.State == result.Failed {
			out.FailedCount++
			if len(out.Failed) < maxVictims {
				out.Failed = append(out.Failed, FailedFlow{n.ref(int32(i)), clean(f.Status)})
			}
		}
	}
	out.Misfits = append(n.misfits(), n.unheard(places)...)
	out.Deaf = n.deaf(places)
	out.Mute = n.mute(places)
	if out.Drops+out.Cut+out.Again+out.Timeouts == 0 && out.FailedCount+len(out.Misfits)+len(out.Deaf) == 0 {
		return nil
	}
	if rdma := out.Drops + out.Cut - out.TCP; rdma > 0 {
		out.PerDrop = ratio(float64(out.Again), float64(rdma))
	}
	out.Worst = n.worstLoss()
	out.PlaceCount = len(places)
	out.Places = places[:min(maxLossPlaces, len(places))]
	return out
}

// costs reports whether loss that no rule forbids cost enough to be the main
// cause.
func (l *Loss) costs() bool {
	return l.FailedCount > 0 || l.Timeouts > 0 || l.Again > 0 && l.Again*1000 >= l.Packets*lossCostPermille
}

// lossPlaces sums drops up by place, priority and reason.
func (s *stops) lossPlaces(out *Loss) []LossPlace {
	n := s.n
	type key struct {
		node, port int32
		prio       uint8
		reason     result.DropReason
	}
	at := map[key]int{} // looked up only
	var places []LossPlace
	for i := range n.r.Drops {
		d := &n.r.Drops[i]
		if !n.hasNode(d.Node) {
			continue
		}
		k := key{d.Node, d.Port, d.Prio, d.Reason}
		j, ok := at[k]
		if !ok {
			j = len(places)
			at[k] = j
			p := LossPlace{At: n.nodePlace(d.Node), Prio: d.Prio, Reason: d.Reason, First: d.At}
			if e := n.egress(d.Node, d.Port); e != none {
				p.At = n.place(e)
			}
			p.Lossless = d.Prio < 8 && n.r.Shape.Lossless&(1<<d.Prio) != 0
			places = append(places, p)
		}
		places[j].Count++
		places[j].Bytes += uint64(max(0, d.Bytes))
		if n.isTCP(d.Flow) {
			places[j].TCP++
			out.TCP++
		}
	}
	slices.SortStableFunc(places, func(a, b LossPlace) int { return cmp.Compare(b.Count, a.Count) })
	return places
}

func (n *net) isTCP(flow int32) bool {
	return flow >= 0 && int(flow) < len(n.r.Flows) && tcp(&n.r.Flows[flow])
}

func tcp(f *result.Flow) bool {
	return strings.EqualFold(f.Op, "tcp") || strings.EqualFold(f.Service, "tcp")
}

// worstLoss returns the flow with the greatest part of its packets sent again.
func (n *net) worstLoss() *LossFlow {
	best := none
	share := func(i int32) float64 {
		return ratio(float64(n.flows[i].f.Retransmitted), float64(n.flows[i].f.Packets))
	}
	for i := range n.flows {
		if n.flows[i].f.Retransmitted > 0 && !tcp(n.flows[i].f) && (best == none || share(int32(i)) > share(best)) {
			best = int32(i)
		}
	}
	if best == none {
		return nil
	}
	f := n.flows[best].f
	return &LossFlow{n.ref(best), f.Packets, f.Retransmitted, n.flows[best].goodput(), f.Timeouts}
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
			there := &n.port(peer).Prio[prio]
			if p.Prio[prio].PauseTx < deafStops || there.PausedFor > 0 || p.Prio[prio].RxPackets == 0 {
				continue
			}
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
