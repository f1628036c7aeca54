package explain

import "math"

type link struct {
	rate  int64
	left  int64 // not given away yet
	flows int32 // without a share so far
	level int64 // left/flows, of this round
}

type active struct {
	flow  int32
	left  int64 // bytes
	share int64 // bit/s
	limit int64 // of its queue pairs, bit/s
}

// shares fills in the max-min fair shares: again and again the links with the
// least to give to each of their flows give it, and those flows are settled.
func (f *fluid) shares(act []active) {
	f.use = f.use[:0]
	f.rest = f.rest[:0]
	for i := range act {
		f.rest = append(f.rest, int32(i))
		for _, e := range f.n.flows[act[i].flow].path {
			l := &f.links[e]
			if l.flows == 0 {
				l.left = l.rate
				f.use = append(f.use, e)
			}
			l.flows++
		}
	}
	for len(f.rest) > 0 {
		f.work += int64(len(f.use) + 8*len(f.rest))
		least := f.least(act)
		// First all who settle, then what they take: a flow that settles must
		// not lower the level of the next.
		keep := f.rest[:0]
		settled := f.settled[:0]
		for _, i := range f.rest {
			if f.level(&act[i]) <= least {
				act[i].share = least
				settled = append(settled, i)
			} else {
				keep = append(keep, i)
			}
		}
		for _, i := range settled {
			for _, e := range f.n.flows[act[i].flow].path {
				f.links[e].left -= least
				f.links[e].flows--
			}
		}
		f.rest, f.settled = keep, settled
	}
}

// least returns the lowest level of all links in use and unsettled flows.
func (f *fluid) least(act []active) int64 {
	least := int64(math.MaxInt64)
	keep := f.use[:0]
	for _, e := range f.use {
		l := &f.links[e]
		if l.flows == 0 {
			continue
		}
		keep = append(keep, e)
		l.level = math.MaxInt64
		if l.rate > 0 {
			l.level = max(0, l.left/int64(l.flows))
		}
		least = min(least, l.level)
	}
	f.use = keep
	for _, i := range f.rest {
		least = min(least, act[i].limit)
	}
	return least
}

func (f *fluid) level(a *active) int64 {
	least := a.limit
	for _, e := range f.n.flows[a.flow].path {
		least = min(least, f.links[e].level)
	}
	return least
}
