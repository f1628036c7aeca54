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
