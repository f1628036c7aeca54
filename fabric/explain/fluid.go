package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// fluid is the ideal network: at each instant every flow gets its max-min fair
// share of its path (Bertsekas and Gallager, Data Networks §6.5.2), at once and
// without queues. A flow's completion time there is the measure of what the
// network took from it.
//
// Whole numbers only, so that the same run reads the same on every machine.
type fluid struct {
	n     *net
	done  []sim.Time // instant of the last byte; Never: not reached
	moved []int64    // bytes on the wire by the end of the run
	// coarse says that time went on in equal steps: too many flows for every
	// start and end to count.
	coarse bool
	work   int64 // inner steps done, and
	budget int64 // allowed
	links  []link
	use    []int32 // links with active flows
	// Of shares: indices of flows without a share, and of those that got one in
	// this round.
	rest, settled []int32
}

func newFluid(n *net, budget int64) *fluid {
	f := &fluid{n: n, budget: budget, done: make([]sim.Time, len(n.flows)), moved: make([]int64, len(n.flows))}
	for i := range f.done {
		f.done[i] = sim.Never
	}
	f.links = make([]link, len(n.node))
	for e := range f.links {
		f.links[e].rate = int64(n.port(int32(e)).Rate)
	}
	f.run()
	return f
}

// ideal returns how long a flow would have taken, with the latency that Base
// has beyond the time on the slowest link; Never if nothing can be said.
func (f *fluid) ideal(i int32) sim.Time {
	d := &f.n.flows[i]
	if f.done[i] == sim.Never {
		return sim.Never
	}
	return max(1, f.done[i]-d.start+f.latency(d))
}

func (f *fluid) latency(d *flow) sim.Time {
	if d.f.Base <= 0 || d.f.Base == sim.Never {
		return 0
	}
	t := f.bottleneck(d).For(int(d.wire))
	if t == sim.Never {
		return 0
	}
	return max(0, d.f.Base-t)
}

func (f *fluid) bottleneck(d *flow) sim.Rate {
	least := sim.Rate(math.MaxInt64)
	for _, e := range d.path {
		if r := f.n.port(e).Rate; r > 0 {
			least = min(least, r)
		}
	}
	return min(least, f.n.qpLimit(d))
}

// share returns the rate of user data that a flow had in the ideal network
// over its life there; 0 if nothing can be said.
func (f *fluid) share(i int32) sim.Rate {
	d := &f.n.flows[i]
	if t := f.ideal(i); t != sim.Never {
		return sim.RateOf(d.f.Bytes, t)
	}
	if d.wire <= 0 {
		return 0
	}
	return sim.RateOf(muldiv(f.moved[i], d.data, d.wire), d.life())
}

// atBest returns the slowdown that a flow has even at its max-min share: over
// Base, or of an unfinished one the NIC's rate over the share; 0 if nothing can
// be said.
func (f *fluid) atBest(i int32) float64 {
	d := &f.n.flows[i]
	if t := f.ideal(i); t != sim.Never && d.f.Base > 0 {
		return ratio(float64(t), float64(d.f.Base))
	}
	if len(d.path) == 0 {
		return 0
	}
	return ratio(float64(f.n.port(d.path[0]).Rate), float64(sim.RateOf(f.moved[i], d.life())))
}

// excess returns how many times longer a flow took than in the ideal network:
// of an unfinished one, how many times more data it had moved there. 0 if
// nothing can be said.
func (f *fluid) excess(i int32) float64 {
	d := &f.n.flows[i]
	if d.f.State == result.Finished {
		t := f.ideal(i)
		if t == sim.Never {
			return 0
		}
		return ratio(float64(d.life()), float64(t))
	}
	least := int64(f.n.r.Shape.Payload + f.n.r.Shape.Header) // one packet: not infinitely many times
	return ratio(float64(f.moved[i]), float64(max(d.sent, least, 1)))
}

// qpLimit is what a flow can send at most by itself: its own limit, and what
// the NIC's engine gives to its queue pairs.
func (n *net) qpLimit(d *flow) sim.Rate {
	limit := sim.Rate(math.MaxInt64)
	if d.f.RateLimit > 0 {
		limit = d.f.RateLimit
	}
	if e := n.engine(d); e > 0 {
		limit = min(limit, e)
	}
	return limit
}

// engine is what the sending NIC gives to a flow's queue pairs; 0: no limit.
func (n *net) engine(d *flow) sim.Rate {
	if !n.hasNode(d.from) || n.r.Nodes[d.from].Host.QPRate <= 0 {
		return 0
	}
	return sim.Rate(min(muldiv(int64(n.r.Nodes[d.from].Host.QPRate), int64(max(1, d.f.QPs)), 1), math.MaxInt64))
}

// run moves time from one start or end of a flow to the next.
func (f *fluid) run() {
	var order []int32
	for i := range f.n.flows {
		d := &f.n.flows[i]
		if len(d.path) > 0 && d.wire > 0 && d.f.State != result.Waiting {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(f.n.flows[a].start, f.n.flows[b].start)
	})
	if len(order) == 0 {
		return
	}
	var act []active
	now := f.n.flows[order[0]].start
	var step sim.Time
	var cost int64 // of the last computation of shares
	for len(order) > 0 || len(act) > 0 {
		if f.work > f.budget {
			return // what is left stays unknown
		}
		if !f.coarse && f.work > f.budget/2 {
			f.coarse = true
			steps := min(max(f.budget/2/max(1, cost), 1), fluidSteps)
			step = max(1, (f.n.r.End-now)/sim.Time(steps))
		}
		if len(act) == 0 && len(order) > 0 {
			now = max(now, f.n.flows[order[0]].start)
		}
		horizon := now
		if f.coarse {
			horizon = now.Add(step)
		}
		for len(order) > 0 && f.n.flows[order[0]].start <= horizon {
			d := &f.n.flows[order[0]]
			act = append(act, active{flow: order[0], left: d.wire, limit: int64(f.n.qpLimit(d))})
			order = order[1:]
		}
		cost = -f.work
		f.shares(act)
		cost += f.work
		next := f.next(act, order, now)
		if f.coarse {
			next = max(next, horizon)
		}
		if next == sim.Never {
			return // a link without a rate
		}
		act = f.move(act, now, next)
		now = next
	}
}

// next is when a flow ends or starts, or the run ends for the unfinished.
func (f *fluid) next(act []active, order []int32, now sim.Time) sim.Time {
	next := sim.Never
	if len(order) > 0 {
		next = f.n.flows[order[0]].start
	}
	for i := range act {
		a := &act[i]
		start := max(now, f.n.flows[a.flow].start)
		next = min(next, start.Add(sim.Rate(a.share).For(int(a.left))))
		if end := f.n.r.End; end > now && f.n.flows[a.flow].f.State != result.Finished {
			next = min(next, end)
		}
	}
	return next
}

// move takes the flows from now to next and leaves those that go on.
func (f *fluid) move(act []active, now, next sim.Time) []active {
	keep := act[:0]
	for _, a := range act {
		d := &f.n.flows[a.flow]
		start := max(now, d.start)
		rate := sim.Rate(a.share)
		if done := start.Add(rate.For(int(a.left))); done <= next {
			f.done[a.flow] = done
			f.moved[a.flow] = d.wire
			continue
		}
		n := min(a.left, rate.Bytes(next-start))
		a.left -= n
		f.moved[a.flow] += n
		// Nothing is known of an unfinished flow after the end of the run.
		if d.f.State == result.Finished || next < f.n.r.End {
			keep = append(keep, a)
		}
	}
	f.work += int64(len(act))
	return keep
}
