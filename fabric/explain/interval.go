package explain

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Window is a span of time.
type Window struct{ From, To sim.Time }

// spans is a set of instants: windows in order that do not touch, with the
// length of all before each.
type spans struct {
	w   []Window
	sum []sim.Time
}

// union makes a set of windows in any order; it keeps none of them.
func union(w []Window) spans { return unionGap(w, 0) }

// unionGap closes gaps up to gap.
func unionGap(w []Window, gap sim.Time) spans {
	w = slices.Clone(w)
	slices.SortFunc(w, func(a, b Window) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		}
		return 0
	})
	var s spans
	for _, v := range w {
		if v.To <= v.From {
			continue
		}
		if k := len(s.w); k > 0 && v.From <= s.w[k-1].To.Add(gap) {
			s.w[k-1].To = max(s.w[k-1].To, v.To)
			continue
		}
		s.w = append(s.w, v)
	}
	s.sum = make([]sim.Time, len(s.w)+1)
	for i, v := range s.w {
		s.sum[i+1] = s.sum[i] + v.To - v.From
	}
	return s
}

func (s *spans) total() sim.Time {
	if len(s.sum) == 0 {
		return 0
	}
	return s.sum[len(s.w)]
}

// within returns how much of [from, to) is in the set.
func (s *spans) within(from, to sim.Time) sim.Time {
	if to <= from || len(s.w) == 0 {
		return 0
	}
	return s.before(to) - s.before(from)
}

func (s *spans) before(t sim.Time) sim.Time {
	i := sort.Search(len(s.w), func(i int) bool { return s.w[i].To > t })
	if i == len(s.w) {
		return s.sum[i]
	}
	return s.sum[i] + max(0, t-s.w[i].From)
}

// permille returns part of whole in thousandths, 0 of nothing.
func permille(part, whole sim.Time) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return muldiv(int64(part), 1000, int64(whole))
}

// muldiv returns a*b/c rounded down for positive numbers, saturating.
func muldiv(a, b, c int64) int64 {
	if a <= 0 || b <= 0 || c <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
