package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Fairness says how alike flows fared that have their bottleneck in common.
type Fairness struct {
	Groups []Sharing // the unfair ones, worst first: Jain's index below jainFair, or shared by port
	Fair   int       // the other groups
	// Least is the lowest index of all groups, 1 if there is none.
	Least float64
}

// Sharing is one bottleneck and the flows of one priority and of like size and
// start that share it.
type Sharing struct {
	At       Place
	Rate     sim.Rate
	Flows    int
	Jain     float64 // (Σx)²/(n Σx²) over goodputs: 1 all equal, 1/n one has all
	Min, Max sim.Rate
	Slowest  FlowRef
	Fastest  FlowRef
	Inputs   []Input // by ingress port, in order of ports
	// PortFair: the ports got equal parts and not the flows (parking lot,
	// SIGCOMM'15 DCQCN §2.2): what PFC alone does.
	PortFair bool
}

// Input is one ingress port of a bottleneck's node.
type Input struct {
	Port  Place
	Flows int      // that came in by it for the bottleneck, of whatever size
	Each  sim.Rate // mean goodput of those that were compared
	Sum   sim.Rate
}

// fairness finds each flow's bottleneck, and compares those who share one.
func (s *stops) fairness() Fairness {
	n := s.n
	out := Fairness{Least: 1}
	groups := make([][]int32, len(n.node))
	demand := n.demand()
	for i := range n.flows {
		if e := n.narrowest(int32(i), demand); e != none {
			groups[e] = append(groups[e], int32(i))
		}
	}
	for e, all := range groups {
		for _, ids := range n.classes(all) {
			g, ok := n.sharing(int32(e), ids)
			if !ok {
				continue
			}
			out.Least = min(out.Least, g.Jain)
			if g.Jain >= jainFair && !g.PortFair {
				out.Fair++
				continue
			}
			out.Groups = append(out.Groups, g)
		}
	}
	slices.SortStableFunc(out.Groups, func(a, b Sharing) int { return cmp.Compare(a.Jain, b.Jain) })
	return out
}

// classes parts flows by what a scheduler and a transport treat alike: weights
// share between priorities, and TCP has its own idea of a fair share. They come
// in order of their first flow.
func (n *net) classes(ids []int32) [][]int32 {
	type class struct {
		prio uint8
		tcp  bool
	}
	var of []class
	var out [][]int32
	for _, i := range ids {
		c := class{n.flows[i].f.Prio, n.isTCP(i)}
		j := slices.Index(of, c)
		if j < 0 {
			j = len(of)
			of, out = append(of, c), append(out, nil)
		}
		out[j] = append(out[j], i)
	}
	return out
}

// demand is how long each egress needs for all its flows, in picoseconds.
func (n *net) demand() []sim.Time {
	out := make([]sim.Time, len(n.node))
	for e := range out {
		rate := n.port(int32(e)).Rate
		if rate <= 0 {
			continue
		}
		var bytes int64
		for _, i := range n.through(int32(e)) {
			bytes = min(mostBytes, bytes+n.flows[i].sent)
		}
		out[e] = rate.For(int(bytes))
	}
	return out
}

// narrowest returns the egress of a flow's path with the most to do; of equals
// the one nearest to the receiver.
func (n *net) narrowest(i int32, demand []sim.Time) int32 {
	d := &n.flows[i]
	best := none
	if d.spread || d.f.State == result.Waiting || d.life() <= 0 || d.sent <= 0 {
		return none
	}
	for _, e := range d.path {
		if best == none || demand[e] >= demand[best] {
			best = e
		}
	}
	return best
}

func (n *net) sharing(e int32, ids []int32) (Sharing, bool) {
	ids = n.alike(ids)
	if len(ids) < 2 {
		return Sharing{}, false
	}
	from, to := sim.Never, sim.Time(0)
	for _, i := range ids {
		from, to = min(from, n.flows[i].start), max(to, n.flows[i].end)
	}
	if n.usedBy(e, from, to) < busyPermille {
		return Sharing{}, false // nobody was short of anything here
	}
	g := Sharing{At: n.place(e), Rate: n.port(e).Rate, Flows: len(ids)}
	slow, fast := ids[0], ids[0]
	var sum, squares float64
	for _, i := range ids {
		x := n.flows[i].goodput()
		if x < n.flows[slow].goodput() {
			slow = i
		}
		if x > n.flows[fast].goodput() {
			fast = i
		}
		gbit := x.Gbit()
		sum += gbit
		squares += float64(gbit * gbit)
	}
	g.Min, g.Max = n.flows[slow].goodput(), n.flows[fast].goodput()
	g.Slowest, g.Fastest = n.ref(slow), n.ref(fast)
	g.Jain = ratio(float64(sum*sum), float64(float64(len(ids))*squares))
	if float64(g.Max) >= float64(g.Min)*unequal {
		g.PortFair = n.portFair(e, ids)
		g.inputs(n, e, ids)
	}
	return g, true
}

// alike keeps the flows whose size and start are near the median's.
func (n *net) alike(ids []int32) []int32 {
	if len(ids) < 2 {
		return nil
	}
	median := func(of func(*flow) int64) int64 {
		v := make([]int64, len(ids))
		for k, i := range ids {
			v[k] = of(&n.flows[i])
		}
		slices.Sort(v)
		return v[(len(v)-1)/2]
	}
	size := median(func(d *flow) int64 { return d.wire })
	start := median(func(d *flow) int64 { return int64(d.start) })
	life := median(func(d *flow) int64 { return int64(d.life()) })
	near := func(a, b, of int64) bool { return float64(max(a-b, b-a)) <= float64(of)*alike }
	var out []int32
	for _, i := range ids {
		d := &n.flows[i]
		if near(d.wire, size, size) && near(int64(d.start), start, life) {
			out = append(out, i)
		}
	}
	return out
}

// inputs sums up by ingress port. Flows that were not compared count too: they
// share the port.
func (g *Sharing) inputs(n *net, e int32, ids []int32) {
	for _, i := range n.through(e) {
		in := n.flows[i].before(e)
		if in == none || n.flows[i].f.State == result.Waiting {
			continue
		}
		port := n.place(n.peer(in))
		j := slices.IndexFunc(g.Inputs, func(x Input) bool { return x.Port == port })
		if j < 0 {
			j = len(g.Inputs)
			g.Inputs = append(g.Inputs, Input{Port: port})
		}
		g.Inputs[j].Flows++
	}
	counts := make([]int, len(g.Inputs))
	for _, i := range ids {
		in := n.flows[i].before(e)
		if in == none {
			continue
		}
		port := n.place(n.peer(in))
		j := slices.IndexFunc(g.Inputs, func(x Input) bool { return x.Port == port })
		g.Inputs[j].Sum += n.flows[i].goodput()
		counts[j]++
	}
	for j := range g.Inputs {
		g.Inputs[j].Each = g.Inputs[j].Sum / sim.Rate(max(1, counts[j]))
	}
	slices.SortFunc(g.Inputs, func(a, b Input) int { return cmp.Compare(a.Port.Port, b.Port.Port) })
}
