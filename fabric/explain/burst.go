package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Burst is the short traffic that crosses a long flow's way at a marking port.
//
// If it takes little of the port on average there is no congestion that a rate
// should answer to: the queue that it makes goes away by itself. Kmin below
// the largest such burst marks nevertheless, and the long flow pays: the
// threshold must exceed the largest benign burst.
type Burst struct {
	Bytes int64    // user data of the largest
	Count int      // bursts in the flow's life
	Every sim.Time // their period; 0: irregular
	Group string   // of their flows, if it is one
	From  string   // their sender, if it is one
	Load  float64  // share of the port that all of them take on average
	// Others is the share that all other flows take, bursts and equals.
	Others float64
	// Benign: Others is small, and the flow's max-min share is a good part of
	// the port, so that nobody is short of anything.
	Benign bool
	// Above: the largest is more than Kmin.
	Above bool
}

// burst looks at the other flows at an egress in the life of flow i, whose
// max-min share is fair; nil if there are none, or they are not short beside it.
func (n *net) burst(i, e int32, kmin int64, fair sim.Rate) *Burst {
	long := &n.flows[i]
	var ids []int32
	var bytes int64
	for _, j := range n.through(e) {
		d := &n.flows[j]
		if j == i || d.f.State == result.Waiting || d.f.Prio != long.f.Prio || d.start < long.start || d.start >= long.end {
			continue
		}
		if 2*d.life() > long.life() {
			continue // an equal, not a burst
		}
		ids = append(ids, j)
		bytes = min(mostBytes, bytes+d.sent)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(n.flows[a].start, n.flows[b].start) })
	b := &Burst{Group: clean(n.flows[ids[0]].f.Group), From: n.nodeName(n.flows[ids[0]].from)}
	var gaps []sim.Time
	var began sim.Time
	var now int64
	for k, j := range ids {
		d := &n.flows[j]
		if k == 0 || d.start > began.Add(burstJoin) {
			if k > 0 {
				gaps = append(gaps, d.start-began)
			}
			began, now = d.start, 0
			b.Count++
		}
		now += d.f.Bytes
		b.Bytes = max(b.Bytes, now)
		if clean(d.f.Group) != b.Group {
			b.Group = ""
		}
		if n.nodeName(d.from) != b.From {
			b.From = ""
		}
	}
	b.Every = period(gaps)
	load := muldiv(bytes, 1000, max(1, n.port(e).Rate.Bytes(long.life())))
	b.Load = float64(load) / 1000
	own := muldiv(long.sent, 1000, max(1, n.port(e).Rate.Bytes(long.life())))
	others := max(load, n.usedBy(e, long.start, long.end)-own)
	b.Others = float64(others) / 1000
	b.Benign = others < benignPermille && int64(fair) >= muldiv(int64(n.port(e).Rate), benignPermille, 1000)
	b.Above = kmin > 0 && b.Bytes > kmin
	return b
}

// period returns the median of gaps that hardly differ, 0 of others.
func period(gaps []sim.Time) sim.Time {
	if len(gaps) < burstCount-1 {
		return 0
	}
	slices.Sort(gaps)
	mid := gaps[len(gaps)/2]
	low, high := gaps[len(gaps)/10], gaps[len(gaps)-1-len(gaps)/10]
	if float64(high-low) > float64(mid)*periodSpread {
		return 0
	}
	return mid
}
