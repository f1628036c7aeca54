package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// load finds the instant at which flows of the priority that cross an egress
// could bring most, and says what that was.
func (n *net) load(e int32, prio uint8, from, to sim.Time) Root {
	c := Root{Rate: n.port(e).Rate}
	var ids []int32
	for _, i := range n.through(e) {
		d := &n.flows[i]
		if d.f.State != result.Waiting && d.f.Prio == prio && d.start < to && d.end > from {
			ids = append(ids, i)
		}
	}
	at := n.fullest(e, ids, from)
	var hosts []int32
	o := offer{n: n}
	for _, i := range ids {
		d := &n.flows[i]
		if d.start > at || d.end <= at {
			continue
		}
		c.Flows++
		in := d.before(e)
		if in == none {
			continue
		}
		c.InRate = max(c.InRate, n.port(in).Rate)
		if !slices.Contains(hosts, d.from) {
			hosts = append(hosts, d.from)
		}
		o.way(d.path[0], in)
	}
	c.Senders, c.InPorts = len(hosts), len(o.in)
	c.Offered = o.most()
	c.Ratio = ratio(float64(c.Offered), float64(c.Rate))
	return c
}

// fullest returns the instant at from or later at which the NICs and the ingress
// ports of flows could bring most to an egress; of equal ones that with most
// flows, and then the first.
func (n *net) fullest(e int32, ids []int32, from sim.Time) sim.Time {
	type change struct {
		at   sim.Time
		by   int
		flow int32
	}
	ch := make([]change, 0, 2*len(ids))
	for _, i := range ids {
		if d := &n.flows[i]; d.end > d.start && d.before(e) != none {
			ch = append(ch, change{max(d.start, from), 1, i}, change{d.end, -1, i})
		}
	}
	slices.SortFunc(ch, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by), cmp.Compare(a.flow, b.flow)) // who ends makes room first
	})
	nics, ins := tally{n: n}, tally{n: n}
	var best sim.Rate
	var most, now int
	at := from
	for _, c := range ch {
		now += c.by
		d := &n.flows[c.flow]
		nics.turn(d.path[0], c.by)
		ins.turn(d.before(e), c.by)
		if could := min(nics.sum, ins.sum); could > best || could == best && now > most {
			best, most, at = could, now, c.at
		}
	}
	return at
}

// tally is the sum of the rates of egresses that some flow uses.
type tally struct {
	n    *net
	uses map[int32]int // looked up only
	sum  sim.Rate
}

func (t *tally) turn(e int32, by int) {
	if t.uses == nil {
		t.uses = make(map[int32]int)
	}
	was := t.uses[e]
	t.uses[e] = was + by
	switch {
	case was == 0:
		t.sum += t.n.able(e)
	case was+by == 0:
		t.sum -= t.n.able(e)
	}
}

// able is an egress's rate, such that sums of what a file may say fit.
func (n *net) able(e int32) sim.Rate { return max(0, min(n.port(e).Rate, 1<<44)) }

// offer is who can bring something to an egress, and by which ingress: NICs on
// one side, the ends of links on the other, flows between them. A NIC that comes
// by two ports can fill either, but not both.
type offer struct {
	n     *net
	nics  []int32
	in    []int32
	ways  [][]way    // by NIC
	left  []sim.Rate // by NIC
	users [][]int    // by ingress: NICs
	room  []sim.Rate
	dead  []bool // from there no room can be reached
}

// way is an ingress that a NIC's flows use, and what they bring by it.
type way struct {
	in    int
	takes sim.Rate
}

func (o *offer) way(nic, in int32) {
	i := slices.Index(o.nics, nic)
	if i < 0 {
		i = len(o.nics)
		o.nics, o.ways, o.left = append(o.nics, nic), append(o.ways, nil), append(o.left, o.n.able(nic))
	}
	k := slices.Index(o.in, in)
	if k < 0 {
		k = len(o.in)
		o.in, o.room, o.users, o.dead = append(o.in, in), append(o.room, o.n.able(in)), append(o.users, nil), append(o.dead, false)
	}
	if !slices.ContainsFunc(o.ways[i], func(w way) bool { return w.in == k }) {
		o.ways[i] = append(o.ways[i], way{in: k})
		o.users[k] = append(o.users[k], i)
	}
}

// most is what all of them can bring at once: a maximum flow. What a NIC has left
// goes where there is room, if need be by moving others to other ports of theirs;
// each move fills a NIC, a port or a way, and offerMoves bounds them.
func (o *offer) most() sim.Rate {
	sum := sim.Rate(0)
	for i := range o.ways {
		for k := range o.ways[i] {
			w := &o.ways[i][k]
			w.takes = min(o.left[i], o.room[w.in])
			o.left[i] -= w.takes
			o.room[w.in] -= w.takes
			sum += w.takes
		}
	}
	moves := 0
	for i := range o.left {
		for o.left[i] > 0 && moves < offerMoves {
			moved := o.move(i)
			if moved == 0 {
				break
			}
			sum += moved
			moves++
		}
	}
	return sum
}

// step is how a search came to an ingress.
type step struct{ nic, way, from int }

// move brings some more of NIC i in, and returns how much; 0: there is no way.
func (o *offer) move(i int) sim.Rate {
	come := make([]step, len(o.in)) // from: the ingress before, -1: NIC i itself
	for k := range come {
		come[k].nic = -1
	}
	var next []int
	reach := func(nic, from int) {
		for k := range o.ways[nic] {
			if in := o.ways[nic][k].in; come[in].nic < 0 && !o.dead[in] {
				come[in] = step{nic, k, from}
				next = append(next, in)
			}
		}
	}
	reach(i, -1)
	for h := 0; h < len(next); h++ {
		in := next[h]
		if o.room[in] > 0 {
			return o.shift(i, in, come)
		}
		for _, nic := range o.users[in] {
			if o.taken(nic, in).takes > 0 {
				reach(nic, in)
			}
		}
	}
	for _, in := range next {
		o.dead[in] = true
	}
	return 0
}

// shift moves along the way that was found: each NIC on it brings more by the
// ingress that was reached, and less by the one before.
func (o *offer) shift(i, in int, come []step) sim.Rate {
	by := min(o.left[i], o.room[in])
	for k := in; come[k].from >= 0; k = come[k].from {
		by = min(by, o.taken(come[k].nic, come[k].from).takes)
	}
	o.left[i] -= by
	o.room[in] -= by
	for k := in; k >= 0; k = come[k].from {
		s := come[k]
		o.ways[s.nic][s.way].takes += by
		if s.from >= 0 {
			o.taken(s.nic, s.from).takes -= by
		}
	}
	return by
}

func (o *offer) taken(nic, in int) *way {
	return &o.ways[nic][slices.IndexFunc(o.ways[nic], func(w way) bool { return w.in == in })]
}
