package explain

import (
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
)

// Tier says how the switches of one tier spread flows over their equal links,
// at the instant when most flows crossed the tier.
type Tier struct {
	Tier     int  // of the switches that chose; Node.Tier
	Down     bool // parallel links downwards, else uplinks
	At       sim.Time
	Switches int
	Flows    int
	Links    int // equal links of those switches
	Used     int
	// ExpectedUsed is how many a uniform hash uses: s(1-(1-1/s)^m) for m flows
	// on s links, summed over the switches.
	ExpectedUsed float64
	// Polarised: far fewer are used. The tier below has hashed the same fields
	// the same way, or the flows differ in nothing that is hashed.
	Polarised bool
	// Narrow is the switch with the least of its links in use, of those with
	// flows for more: NarrowUsed of NarrowLinks by NarrowFlows.
	Narrow                               Place
	NarrowUsed, NarrowLinks, NarrowFlows int

	// Worst is the link with most flows.
	Worst      Place
	WorstRate  sim.Rate
	Most       int     // flows there
	Expected   float64 // mean of the fullest link of that switch, balls in bins; 0: not computed
	WorstFlows []FlowRef
	// Offered is what the senders on it can bring, over its rate.
	Offered float64
	// Crowded flows have their bottleneck at a link of the tier that is offered
	// more than it carries, and so cannot be fast.
	Crowded int
	// Slowest is the largest slowdown, even at max-min shares, of a flow whose
	// bottleneck is a link of the tier; Real is what it was. 0: there is none.
	Slowest, Real float64
	SlowestFlow   FlowRef
	SlowestAt     Place
	SlowestWith   int // flows on that link
	// Partly: of flows with several queue pairs only the first one's path is
	// known.
	Partly bool
}

// Costs reports whether the collisions are worth a sentence.
func (t *Tier) Costs() bool { return t.Crowded > 0 && t.Slowest >= collisionSlowdown }

// choice is one decision: flow i left by egress e, one of several.
type choice struct {
	flow, egress int32
}

// ecmp is what the tiers are worked out with.
type ecmp struct {
	n      *net
	f      *fluid
	demand []sim.Time
	expect expectation
}

// fork is one switch and the flows that chose there.
type fork struct {
	node    int32
	links   []int32 // equal ones
	choices []choice
}

func (n *net) ecmp(f *fluid) []Tier {
	type kind struct {
		tier int
		down bool
	}
	var kinds []kind
	all := map[kind][]choice{} // looked up only; kinds has the order
	for i := range n.flows {
		d := &n.flows[i]
		if d.f.State == result.Waiting || d.life() <= 0 {
			continue
		}
		for _, e := range d.path {
			down, ok := n.chose(e)
			if !ok {
				continue
			}
			k := kind{n.r.Nodes[n.node[e]].Tier, down}
			if _, ok := all[k]; !ok {
				kinds = append(kinds, k)
			}
			all[k] = append(all[k], choice{int32(i), e})
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		if a.down != b.down {
			if b.down {
				return -1
			}
			return 1
		}
		return a.tier - b.tier
	})
	x := &ecmp{n: n, f: f, demand: n.demand(), expect: expectation{}}
	var out []Tier
	for _, k := range kinds {
		out = append(out, x.tier(k.tier, k.down, all[k]))
	}
	return out
}

// chose reports whether a switch had more than one link for what left by e:
// to any switch of a higher tier, or down to the same neighbour.
func (n *net) chose(e int32) (down, ok bool) {
	a, b := n.node[e], n.peerNode(e)
	if b == none || !n.r.Nodes[a].Switch || !n.r.Nodes[b].Switch || n.r.Nodes[a].Tier == n.r.Nodes[b].Tier {
		return false, false
	}
	down = n.r.Nodes[b].Tier < n.r.Nodes[a].Tier
	count := 0
	for p := range n.r.Nodes[a].Ports {
		if n.equal(n.base[a]+int32(p), e) {
			count++
		}
	}
	return down, count > 1
}

// equal reports whether ECMP may take x in place of e, an egress of the same
// switch.
func (n *net) equal(x, e int32) bool {
	a, b, c := n.node[e], n.peerNode(e), n.peerNode(x)
	if c == none || !n.r.Nodes[c].Switch {
		return false
	}
	if n.r.Nodes[b].Tier < n.r.Nodes[a].Tier {
		return c == b
	}
	return n.r.Nodes[c].Tier > n.r.Nodes[a].Tier
}

func (x *ecmp) tier(tier int, down bool, all []choice) Tier {
	n := x.n
	t := Tier{Tier: tier, Down: down}
	ids := make([]int32, len(all))
	for k := range all {
		ids[k] = all[k].flow
	}
	t.At = busiest(n, ids)
	var forks []fork
	at := map[[2]int32]int{} // looked up only
	for _, c := range all {
		d := &n.flows[c.flow]
		if d.start > t.At || d.end <= t.At {
			continue
		}
		t.Partly = t.Partly || d.spread
		key := [2]int32{n.node[c.egress], none}
		if down {
			key[1] = n.peerNode(c.egress)
		}
		j, ok := at[key]
		if !ok {
			j = len(forks)
			at[key] = j
			forks = append(forks, n.fork(c.egress))
		}
		forks[j].choices = append(forks[j].choices, c)
	}
	t.Switches = len(forks)
	for i := range forks {
		x.add(&t, &forks[i])
	}
	t.Polarised = t.Flows >= polarisedFlows && float64(t.Used) <= t.ExpectedUsed*polarisedShare
	return t
}

func (n *net) fork(e int32) fork {
	f := fork{node: n.node[e]}
	for p := range n.r.Nodes[f.node].Ports {
		if x := n.base[f.node] + int32(p); n.equal(x, e) {
			f.links = append(f.links, x)
		}
	}
	return f
}

func (x *ecmp) add(t *Tier, f *fork) {
	n := x.n
	m, s := len(f.choices), len(f.links)
	t.Flows += m
	t.Links += s
	t.ExpectedUsed += expectedUsed(m, s)
	used := 0
	for _, e := range f.links {
		count, offered := f.on(n, e)
		if count == 0 {
			continue
		}
		used++
		if offered*1000 > overloadPermille {
			x.crowd(t, f, e, count)
		}
		if count > t.Most || count == t.Most && offered > t.Offered {
			t.Most, t.Offered = count, offered
			t.Worst, t.WorstRate = n.place(e), n.port(e).Rate
			t.Expected = x.expect.most(m, s)
			t.WorstFlows = f.names(n, e)
		}
	}
	t.Used += used
	// The narrowest by links in use over links that its flows could use.
	if could := min(m, s); could > 1 && (t.NarrowLinks == 0 || used*min(t.NarrowFlows, t.NarrowLinks) < t.NarrowUsed*could) {
		t.Narrow, t.NarrowUsed, t.NarrowLinks, t.NarrowFlows = n.nodePlace(f.node), used, s, m
	}
}

// on returns how many flows are on a link and what their senders can bring,
// over its rate. A NIC's rate is shared by the flows that leave it together.
func (f *fork) on(n *net, e int32) (int, float64) {
	var count int
	var offered sim.Rate
	var nics []int32
	for _, c := range f.choices {
		if c.egress != e {
			continue
		}
		count++
		if nic := n.flows[c.flow].path[0]; !slices.Contains(nics, nic) {
			nics = append(nics, nic)
			offered += n.port(nic).Rate
		}
	}
	return count, ratio(float64(offered), float64(n.port(e).Rate))
}

// crowd looks for flows on an overloaded link that are held up most there.
func (x *ecmp) crowd(t *Tier, f *fork, e int32, count int) {
	for _, c := range f.choices {
		// The links behind it that carry the same flows have as much to do.
		if at := x.n.narrowest(c.flow, x.demand); c.egress != e || at == none || x.demand[at] > x.demand[e] {
			continue
		}
		s := x.f.atBest(c.flow)
		if s < collisionSlowdown {
			continue
		}
		t.Crowded++
		if s > t.Slowest {
			t.Slowest, t.Real = s, x.n.flows[c.flow].f.Slowdown()
			t.SlowestFlow, t.SlowestAt, t.SlowestWith = x.n.ref(c.flow), x.n.place(e), count
		}
	}
}

func (f *fork) names(n *net, e int32) []FlowRef {
	var out []FlowRef
	for _, c := range f.choices {
		if c.egress == e && len(out) < maxVictims {
			out = append(out, n.ref(c.flow))
		}
	}
	return out
}

// expectedUsed is the mean number of bins that m balls in s bins hit.
func expectedUsed(m, s int) float64 {
	miss := 1.0
	for range m {
		miss = float64(miss * (1 - 1/float64(s)))
	}
	return float64(float64(s) * (1 - miss))
}

// expectation remembers the mean load of the fullest bin: most switches of a
// tier are alike.
type expectation map[[2]int]float64

func (x expectation) most(m, s int) float64 {
	if m > expectFlows || s > expectFlows {
		return 0
	}
	key := [2]int{m, s}
	v, ok := x[key]
	if !ok {
		v = theory.ExpectedMaxLoad(m, s)
		x[key] = v
	}
	return v
}

// busiest returns an instant at which most of the flows were active.
func busiest(n *net, ids []int32) sim.Time {
	type change struct {
		at sim.Time
		by int
	}
	ch := make([]change, 0, 2*len(ids))
	for _, i := range ids {
		d := &n.flows[i]
		if d.end > d.start {
			ch = append(ch, change{d.start, 1}, change{d.end, -1})
		}
	}
	slices.SortFunc(ch, func(a, b change) int {
		switch {
		case a.at != b.at && a.at < b.at:
			return -1
		case a.at != b.at:
			return 1
		}
		return a.by - b.by // who ends makes room first
	})
	var best, now int
	var at sim.Time
	for _, c := range ch {
		if now += c.by; now > best {
			best, at = now, c.at
		}
	}
	return at
}
