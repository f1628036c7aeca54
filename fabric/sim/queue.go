package sim

// event is one entry of the queue. seq orders events of one instant.
type event struct {
	at  Time
	seq uint64
	h   Handler
	arg uint64
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// queue is a heap of four children a node.
type queue struct {
	h   []event
	n   int
	seq uint64
}

func (q *queue) push(t Time, h Handler, arg uint64) {
	q.seq++
	q.h = append(q.h, event{at: t, seq: q.seq, h: h, arg: arg})
	q.n++
	i := q.n - 1
	e := q.h[i]
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

// pop removes the earliest event if it is not later than until.
func (q *queue) pop(until Time) (event, bool) {
	if q.n == 0 || q.h[0].at > until {
		return event{}, false
	}
	top := q.h[0]
	q.n--
	e := q.h[q.n]
	q.h[q.n] = event{}
	q.h = q.h[:q.n]
	if q.n == 0 {
		return top, true
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= q.n {
			break
		}
		best := c
		for k := c + 1; k < min(c+4, q.n); k++ {
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
	return top, true
}

func (q *queue) earliest() Time {
	if q.n == 0 {
		return Never
	}
	return q.h[0].at
}
