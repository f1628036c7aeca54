package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Rates is the story of DCQCN: who marked, who was told, what it cost.
type Rates struct {
	Preset string
	// Ports marked something, most first; at most maxMarkPorts of PortCount.
	Ports     []MarkPort
	PortCount int
	Marks     uint64 // at all ports
	// CNPs of flows that have ended or run: sent by NPs, seen by RPs. Lost is
	// the difference; those still under way count as lost.
	CNPs, Handled, Lost uint64
	CNPPrio             uint8
	InData              bool // CNPs travel in the class of the port that marked most
	Cuts, Clamps        uint64
	FlowsCut            int
	// Held are flows kept far below their share by marks, the worst first; at
	// most maxHeld of HeldCount.
	Held      []Held
	HeldCount int
	// Typical is the flow with the most CNPs if none is held.
	Typical *Held
	// Silent is set if PFC acted and ECN did not.
	Silent *Silent
}

// MarkPort is an egress that marked.
type MarkPort struct {
	Port    Place
	Prio    uint8
	Marked  uint64
	Share   float64 // of the packets it sent
	KMin    int64   // bytes; 0: not known
	Peak    int64   // longest queue, bytes
	Mean    float64
	Sampled bool // the queue was recorded: the next four hold
	Step    sim.Time
	First   sim.Time
	Crossed int     // times it rose over Kmin, as far as samples see
	Above   float64 // share of samples above Kmin

	egress int32
}

// Silent is a network in which PFC stopped senders before ECN marked anything.
type Silent struct {
	Root  Place
	Prio  uint8
	KMin  int64 // of that egress, or of the class; 0: not known
	Limit int64 // lowest XOFF at which a stop was sent
	Peak  int64 // of the root's queue
	Stops int
}

func (s *stops) rates(f *fluid, trees []Tree) *Rates {
	n := s.n
	sh := &n.r.Shape
	if sh.Preset == "" || sh.Preset == "off" {
		return nil
	}
	out := &Rates{Preset: clean(sh.Preset), CNPPrio: sh.CNPPrio}
	ports := n.markPorts()
	for i := range ports {
		out.Marks += ports[i].Marked
	}
	var held []int32
	most := none
	for i := range n.flows {
		d := n.flows[i].f
		out.CNPs += d.CNPs
		out.Handled += d.CNPsHandled
		out.Cuts += d.Cuts
		out.Clamps += d.Clamps
		if d.CNPsHandled > 0 {
			out.FlowsCut++
			if most == none || d.CNPsHandled > n.flows[most].f.CNPsHandled {
				most = int32(i)
			}
		}
		if s.held(f, int32(i)) {
			held = append(held, int32(i))
		}
	}
	out.Lost = out.CNPs - min(out.CNPs, out.Handled)
	share := func(i int32) float64 { return ratio(float64(n.flows[i].goodput()), float64(f.share(i))) }
	slices.SortStableFunc(held, func(a, b int32) int { return cmp.Compare(share(a), share(b)) })
	out.HeldCount = len(held)
	for _, i := range held[:min(maxHeld, len(held))] {
		out.Held = append(out.Held, s.told(f, ports, i))
	}
	if len(held) == 0 && most != none {
		h := s.told(f, ports, most)
		out.Typical = &h
	}
	if out.Marks == 0 {
		out.Silent = s.silent(trees)
	}
	out.PortCount = len(ports)
	out.InData = out.CNPs > 0 && len(ports) > 0 && sh.CNPPrio == ports[0].Prio && sh.CNPPrio != 0
	out.Ports = ports[:min(maxMarkPorts, len(ports))]
	return out
}

// markPorts lists the egresses that marked, most first.
func (n *net) markPorts() []MarkPort {
	var out []MarkPort
	for e := range n.node {
		p := n.port(int32(e))
		for prio := range p.Prio {
			c := &p.Prio[prio]
			if c.Marked == 0 {
				continue
			}
			out = append(out, MarkPort{
				Port: n.place(int32(e)), Prio: uint8(prio), Marked: c.Marked, Peak: c.PeakQueue, Mean: c.MeanQueue,
				Share: ratio(float64(c.Marked), float64(c.TxPackets)), KMin: n.kmin(int32(e), uint8(prio)), egress: int32(e),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b MarkPort) int { return cmp.Compare(b.Marked, a.Marked) })
	for i := range out[:min(maxMarkPorts, len(out))] {
		out[i].crossings(n)
	}
	return out
}

// kmin returns the threshold of an egress; where it is not recorded that of
// the lossless class, which Shape has for ports to hosts.
func (n *net) kmin(e int32, prio uint8) int64 {
	if k := n.port(e).Prio[prio&7].KMin; k > 0 {
		return k
	}
	if n.r.Shape.Lossless&(1<<(prio&7)) != 0 {
		return n.r.Shape.KMin
	}
	return 0
}

func (p *MarkPort) crossings(n *net) {
	q := n.series(result.QueueBytes, p.Port.Node, p.Port.Port, p.Prio, -1)
	if q == nil || p.KMin <= 0 || len(q.Values) == 0 {
		return
	}
	p.Sampled, p.Step = true, q.Step
	above, was := 0, false
	for i, v := range q.Values {
		if v < p.KMin {
			was = false
			continue
		}
		above++
		if !was {
			p.Crossed++
			if p.Crossed == 1 {
				p.First = q.Start.Add(sim.Time(i) * q.Step)
			}
		}
		was = true
	}
	p.Above = ratio(float64(above), float64(len(q.Values)))
}

// series finds a recorded quantity; nil if there is none.
func (n *net) series(kind result.SeriesKind, node, port int32, prio uint8, flow int32) *result.Series {
	for i := range n.r.Series {
		s := &n.r.Series[i]
		if s.Kind != kind || s.Step <= 0 {
			continue
		}
		if flow >= 0 && s.Flow == flow || flow < 0 && s.Node == node && s.Port == port && s.Prio == prio {
			return s
		}
	}
	return nil
}

// silent looks for a root that overflowed without a mark.
func (s *stops) silent(trees []Tree) *Silent {
	for i := range trees {
		t := &trees[i]
		if t.root < 0 || permille(t.windowTime(), s.n.r.End) < silentStopPermille {
			continue
		}
		out := &Silent{Root: t.Root, Prio: t.Prio, KMin: s.n.kmin(t.root, t.Prio), Peak: t.Cause.PeakQueue, Stops: t.Stops}
		out.Limit = t.lowestLimit()
		return out
	}
	return nil
}
