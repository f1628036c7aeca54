package explain

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Held is how DCQCN treated one flow.
type Held struct {
	Flow    FlowRef
	Line    sim.Rate // of its NIC's port
	Goodput sim.Rate
	Fair    sim.Rate // user data at its max-min share
	// R_C of the first of QPs queue pairs as recorded, or the flow's own minimum
	// and last; Mean 0: not known.
	QPs               int
	Min, Mean, Final  sim.Rate
	Marks             uint64
	CNPs, Handled     uint64
	Cuts, Clamps      uint64
	Additive, Hyper   uint64
	At                MarkPort // the port of its path that marked most
	Burst             *Burst   // what crosses its way there
	Target            sim.Rate // Line if the bursts are benign, else Fair
	From              sim.Rate // of all its queue pairs: R_C on average, or Goodput
	Recovery          sim.Time // from From to Target by additive increase; 0: not known
	RecoveryByHyper   sim.Time
	AI, HAI           sim.Rate
	IncreaseEvery     sim.Time
	MessageTime       sim.Time // of MessageBytes at Goodput
	MessageTimeAtLine sim.Time
}

// MessageBytes is the message that Held.MessageTime is about.
const MessageBytes = 256 << 10

// held decides whether DCQCN, and nothing else, keeps a flow below its share.
func (s *stops) held(f *fluid, i int32) bool {
	d := &s.n.flows[i]
	if d.f.CNPsHandled < heldCNPs || d.life() <= 0 || len(d.path) == 0 {
		return false
	}
	fair := f.share(i)
	if fair <= 0 || float64(d.goodput()) >= float64(fair)*heldShare {
		return false
	}
	var stopped sim.Time
	for _, e := range d.path {
		w := &s.when[s.key(e, d.f.Prio)]
		stopped = max(stopped, w.within(d.start, d.end))
	}
	if permille(stopped, d.life()) >= heldStopPermille {
		return false
	}
	return d.f.Retransmitted == 0 || d.f.Retransmitted*1000 < d.f.Packets*heldLossPermille
}

func (s *stops) told(f *fluid, ports []MarkPort, i int32) Held {
	n := s.n
	d := &n.flows[i]
	sh := &n.r.Shape
	h := Held{
		Flow: n.ref(i), Goodput: d.goodput(), Fair: f.share(i), Min: d.f.MinRate, Final: d.f.LastRate, Marks: d.f.Marks,
		CNPs: d.f.CNPs, Handled: d.f.CNPsHandled, Cuts: d.f.Cuts, Clamps: d.f.Clamps, Additive: d.f.Additive, Hyper: d.f.Hyper,
		AI: sh.AI, HAI: sh.HAI, IncreaseEvery: sh.IncreaseEvery, At: MarkPort{egress: none},
	}
	if len(d.path) > 0 {
		h.Line = n.port(d.path[0]).Rate
	}
	h.curve(n, d)
	for k := range ports {
		if p := &ports[k]; p.Prio == d.f.Prio && d.crosses(p.egress) {
			h.At = *p // ports are sorted: the first is the one with most marks
			h.Burst = n.burst(i, p.egress, p.KMin, h.Fair)
			break
		}
	}
	// Queue pairs climb side by side, each to its part; R_C is the first one's.
	qps := sim.Rate(max(1, d.f.QPs))
	from := h.Mean
	if from == 0 {
		from = h.Goodput / qps
	}
	h.QPs, h.From = int(qps), from*qps
	// Where nobody else is short of anything it is the line that it climbs to.
	h.Target = h.Fair
	if h.Burst != nil && h.Burst.Benign {
		h.Target = h.Line
	}
	h.Recovery = climb(from, h.Target/qps, sh.AI, sh.IncreaseEvery)
	h.RecoveryByHyper = climb(from, h.Target/qps, sh.HAI, sh.IncreaseEvery)
	h.MessageTime = h.Goodput.For(MessageBytes)
	h.MessageTimeAtLine = h.Line.For(MessageBytes)
	return h
}

// curve reads R_C from the recorded series, while the flow lived.
func (h *Held) curve(n *net, d *flow) {
	s := n.series(result.FlowRC, -1, -1, 0, d.f.ID)
	if s == nil {
		return
	}
	var sum, count int64
	for i, v := range s.Values {
		at := s.Start.Add(sim.Time(i) * s.Step)
		if at < d.start || at > d.end || v <= 0 {
			continue
		}
		if count == 0 || sim.Rate(v) < h.Min || h.Min == 0 {
			h.Min = sim.Rate(v)
		}
		h.Final = sim.Rate(v)
		sum += v
		count++
	}
	if count > 0 {
		h.Mean = sim.Rate(sum / count)
	}
}

// climb is how long additive increase takes from one rate to another: a step
// of the target each period, which R_C follows half a step behind.
func climb(from, to, step sim.Rate, every sim.Time) sim.Time {
	if step <= 0 || every <= 0 || to <= from {
		return 0
	}
	return sim.Time(muldiv(int64(to-from), int64(every), int64(step)))
}
