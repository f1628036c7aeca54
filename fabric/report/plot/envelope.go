package plot

// Envelope returns which of the values to keep so that a line through them
// looks like the line through all: of each of n equal stretches the lowest and
// the highest value, in their order, and the first and last of all. At most
// 2n+2 indices, ascending. Peaks are never lost.
func Envelope(v []int64, n int) []int {
	if len(v) == 0 {
		return nil
	}
	n = max(n, 1)
	if len(v) <= 2*n {
		keep := make([]int, len(v))
		for i := range keep {
			keep[i] = i
		}
		return keep
	}
	keep := make([]int, 0, 2*n+2)
	add := func(i int) {
		if len(keep) == 0 || keep[len(keep)-1] < i {
			keep = append(keep, i)
		}
	}
	add(0)
	for b := range n {
		from, to := b*len(v)/n, (b+1)*len(v)/n
		lo, hi := from, from
		for i := from + 1; i < to; i++ {
			if v[i] < v[lo] {
				lo = i
			}
			if v[i] > v[hi] {
				hi = i
			}
		}
		add(min(lo, hi))
		add(max(lo, hi))
	}
	add(len(v) - 1)
	return keep
}

// Thin leaves out points in the middle of runs of equal values, which a line
// does not need.
func Thin(pts []XY) []XY {
	out := pts[:0:0]
	for i, p := range pts {
		if i > 0 && i < len(pts)-1 && pts[i-1].Y == p.Y && pts[i+1].Y == p.Y {
			continue
		}
		out = append(out, p)
	}
	return out
}
