package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// portFair compares what happened with two models of the one bottleneck: every
// flow gets an equal part, or every ingress port does and its flows share that.
func (n *net) portFair(e int32, ids []int32) bool {
	var m model
	m.rate = n.port(e).Rate
	for _, i := range n.through(e) {
		d := &n.flows[i]
		if d.f.State == result.Waiting || d.wire <= 0 {
			continue
		}
		in := d.before(e)
		j := slices.Index(m.ports, in)
		if j < 0 {
			j = len(m.ports)
			m.ports = append(m.ports, in)
			m.count = append(m.count, 0)
		}
		m.count[j]++
		m.flows = append(m.flows, modelFlow{id: i, port: j, start: d.start, left: d.wire, until: n.r.End})
		if d.f.State == result.Finished {
			m.flows[len(m.flows)-1].until = sim.Never
		}
	}
	if m.rate <= 0 || len(m.ports) < 2 || len(m.flows) > modelFlows || slices.Max(m.count) == slices.Min(m.count) {
		return false // both models say the same, or nothing
	}
	byFlow := m.misfit(n, ids, false)
	byPort := m.misfit(n, ids, true)
	return byPort <= portFairFit && float64(byPort*portFairGain) <= byFlow
}

// model is one egress and its flows.
type model struct {
	rate  sim.Rate
	ports []int32
	count []int
	flows []modelFlow
}

type modelFlow struct {
	id    int32
	port  int
	start sim.Time
	until sim.Time // the run ends for it
	left  int64
	took  sim.Time // until it was done, or the run was
	share int64
}

// misfit runs the model and returns the mean relative error of the rates of
// the given flows.
func (m *model) misfit(n *net, ids []int32, byPort bool) float64 {
	flows := slices.Clone(m.flows)
	slices.SortStableFunc(flows, func(a, b modelFlow) int { return cmp.Compare(a.start, b.start) })
	m.serve(flows, byPort)
	var sum float64
	count := 0
	for k := range flows {
		x := &flows[k]
		if !slices.Contains(ids, x.id) || x.took <= 0 {
			continue
		}
		d := &n.flows[x.id]
		model := sim.RateOf(d.wire-x.left, x.took)
		real := sim.RateOf(d.sent, d.life())
		if model <= 0 || real <= 0 {
			return math.MaxFloat64
		}
		a, b := float64(model), float64(real)
		sum += max(a, b)/min(a, b) - 1
		count++
	}
	if count == 0 {
		return math.MaxFloat64
	}
	return sum / float64(count)
}

func (m *model) serve(flows []modelFlow, byPort bool) {
	now := flows[0].start
	in := make([]int64, len(m.ports))
	for {
		clear(in)
		var ports, all int64
		next := sim.Never
		for k := range flows {
			x := &flows[k]
			switch {
			case x.took > 0: // over
			case x.start > now:
				next = min(next, x.start)
			default:
				if in[x.port] == 0 {
					ports++
				}
				in[x.port]++
				all++
			}
		}
		if all == 0 && next == sim.Never {
			return
		}
		for k := range flows {
			x := &flows[k]
			if x.took > 0 || x.start > now {
				continue
			}
			x.share = int64(m.rate) / all
			if byPort {
				x.share = int64(m.rate) / (ports * in[x.port])
			}
			next = min(next, now.Add(sim.Rate(x.share).For(int(x.left))), max(x.until, now+1))
		}
		if next == sim.Never {
			return
		}
		for k := range flows {
			x := &flows[k]
			if x.took > 0 || x.start > now {
				continue
			}
			x.left -= min(x.left, sim.Rate(x.share).Bytes(next-now))
			if x.left == 0 || next >= x.until {
				x.took = max(1, next-x.start)
			}
		}
		now = next
	}
}
