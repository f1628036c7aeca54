package sim

// heap holds what is beyond the reach of the wheel, in the order of instants and
// then of pushing. A node has four children.
type heap struct {
	h   []later
	seq uint64
}

type later struct {
	moment
	seq uint64
}

func (l *later) before(o *later) bool { return l.at < o.at || l.at == o.at && l.seq < o.seq }

// earliest returns the instant of the earliest, or Never.
func (q *heap) earliest() Time {
	if len(q.h) == 0 {
		return Never
	}
	return q.h[0].at
}

func (q *heap) push(m moment) {
	q.seq++
	e := later{m, q.seq}
	q.h = append(q.h, e)
	i := len(q.h) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&q.h[p]) {
			break
		}
		q.h[i] = q.h[p]
		i = p
	}
	q.h[i] = e
}

// pop removes the earliest. There is one.
func (q *heap) pop() moment {
	first := q.h[0].moment
	n := len(q.h) - 1
	e := q.h[n]
	q.h = q.h[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		best := c
		for k := c + 1; k < min(c+4, n); k++ {
			if q.h[k].before(&q.h[best]) {
				best = k
			}
		}
		if !q.h[best].before(&e) {
			break
		}
		q.h[i] = q.h[best]
		i = best
	}
	q.h[i] = e
	return first
}
