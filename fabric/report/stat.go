package report

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Percentile returns the value of which percent (0 … 100) of the values are not
// greater, by nearest rank: of n sorted values the one at rank
// ceil(percent·n/100), counted from 1; the first for percent 0. It is always
// one of the values. The zero value of none.
func Percentile[T cmp.Ordered](sorted []T, percent int) T {
	n := len(sorted)
	if n == 0 {
		var none T
		return none
	}
	rank := (percent*n + 99) / 100
	return sorted[min(max(rank, 1), n)-1]
}

// Group is what became of the flows of one name.
type Group struct {
	Name                                       string
	Flows, Finished, Failed, Running, NotBegun int
	Bytes, Delivered                           int64

	// FCTs of finished flows; Never if none has finished.
	Min, P50, P99, Max, Mean sim.Time
	// Slowdowns of finished flows, at least 1; 0 if none has finished.
	SlowP50, SlowP99, SlowMax float64
	// Goodput is the user data of all flows from the first start to the last
	// finish (the end of the run while one runs).
	Goodput sim.Rate
	// FlowGoodput is the median of what single flows got, finished or not.
	FlowGoodput sim.Rate

	Packets, Retransmitted, Timeouts, NAKs, Marks, CNPs uint64
}

// Groups returns the groups in the order of their first flows, and all flows
// together under the name "all" behind them if there are several.
func Groups(r *result.Run) []Group {
	index := map[string]int{}
	var order []string
	var members [][]*result.Flow
	all := make([]*result.Flow, len(r.Flows))
	for i := range r.Flows {
		f := &r.Flows[i]
		all[i] = f
		g, ok := index[f.Group]
		if !ok {
			g = len(order)
			index[f.Group] = g
			order = append(order, f.Group)
			members = append(members, nil)
		}
		members[g] = append(members[g], f)
	}
	var gs []Group
	for i, name := range order {
		if name == "" {
			name = "flows"
		}
		gs = append(gs, groupOf(r, name, members[i]))
	}
	if len(gs) > 1 {
		gs = append(gs, groupOf(r, "all", all))
	}
	return gs
}

// apart returns groups without the one of all flows.
func apart(gs []Group) []Group {
	if len(gs) > 1 {
		return gs[:len(gs)-1]
	}
	return gs
}

func groupOf(r *result.Run, name string, flows []*result.Flow) Group {
	g := Group{Name: name, Flows: len(flows), Min: sim.Never, P50: sim.Never, P99: sim.Never, Max: sim.Never, Mean: sim.Never}
	var fcts []sim.Time
	var slow []float64
	var rates []sim.Rate
	first, last := sim.Never, sim.Time(0)
	for _, f := range flows {
		g.Bytes += f.Bytes
		g.Delivered += f.Delivered
		g.Packets += f.Packets
		g.Retransmitted += f.Retransmitted
		g.Timeouts += f.Timeouts
		g.NAKs += f.NAKs
		g.Marks += f.Marks
		g.CNPs += f.CNPs
		end := r.End
		switch f.State {
		case result.Waiting:
			g.NotBegun++
			continue
		case result.Running:
			g.Running++
		case result.Failed:
			g.Failed++
		case result.Finished:
			g.Finished++
			fcts = append(fcts, f.FCT())
			if s := f.Slowdown(); s > 0 {
				slow = append(slow, s)
			}
			end = f.Finish
		}
		first, last = min(first, f.Start), max(last, end)
		rates = append(rates, Goodput(r, f))
	}
	g.Goodput = sim.RateOf(g.Delivered, last-first)
	slices.Sort(rates)
	g.FlowGoodput = Percentile(rates, 50)
	if len(fcts) == 0 {
		return g
	}
	slices.Sort(fcts)
	slices.Sort(slow)
	g.Min, g.P50, g.P99, g.Max = fcts[0], Percentile(fcts, 50), Percentile(fcts, 99), fcts[len(fcts)-1]
	g.Mean = mean(fcts)
	g.SlowP50, g.SlowP99, g.SlowMax = Percentile(slow, 50), Percentile(slow, 99), Percentile(slow, 100)
	return g
}

// mean does not overflow: the sum of the whole parts and of the remainders.
func mean(ts []sim.Time) sim.Time {
	var whole, rest sim.Time
	n := sim.Time(len(ts))
	for _, t := range ts {
		whole += t / n
		rest += t % n
	}
	return whole + rest/n
}

// Goodput returns the user data that a flow moved in its time: to its finish,
// or to the end of the run.
func Goodput(r *result.Run, f *result.Flow) sim.Rate {
	switch f.State {
	case result.Waiting:
		return 0
	case result.Finished:
		return sim.RateOf(f.Delivered, f.Finish-f.Start)
	case result.Running, result.Failed:
	}
	return sim.RateOf(f.Delivered, r.End-f.Start)
}
