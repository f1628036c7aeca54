package rnic

import "github.com/verbena-rdma/verbena/clock"

// qpTimer is a queue pair's place in the heap.
type qpTimer struct {
	key   clock.Time // instant under which it stands in the heap
	due   clock.Time // instant at which something is due; never earlier than key
	index int        // in the heap; -1: not there
}

// timerHeap orders queue pairs by when they want to be called. A deadline that
// moves later, as that of every acknowledgement does, moves nothing: when the
// old instant comes, the queue pair is put where it belongs now.
type timerHeap struct {
	first clock.Time // key of h[0], which may be cold
	h     []*QP
}

func (t *timerHeap) earliest() clock.Time {
	if len(t.h) == 0 {
		return clock.Never
	}
	return t.first
}

// set notes the instant at which q is due.
func (t *timerHeap) set(q *QP, due clock.Time) {
	q.timer.due = due
	if q.timer.index < 0 {
		if due == clock.Never {
			return
		}
		q.timer.key, q.timer.index = due, len(t.h)
		t.h = append(t.h, q)
	} else if due < q.timer.key {
		q.timer.key = due
	} else {
		return
	}
	t.up(q.timer.index)
	if q.timer.index == 0 {
		t.first = q.timer.key
	}
}

// next removes nothing, but returns a queue pair that is due at now, or nil.
func (t *timerHeap) next(now clock.Time) *QP {
	for len(t.h) > 0 && t.first <= now {
		q := t.h[0]
		if q.timer.due <= now {
			return q
		}
		if q.timer.due == clock.Never {
			t.remove(q)
			continue
		}
		q.timer.key = q.timer.due
		t.down(0)
		t.first = t.h[0].timer.key
	}
	return nil
}

func (t *timerHeap) remove(q *QP) {
	i := q.timer.index
	if i < 0 {
		return
	}
	last := len(t.h) - 1
	t.h[i] = t.h[last]
	t.h[i].timer.index = i
	t.h[last] = nil
	t.h = t.h[:last]
	q.timer.index = -1
	if i < last {
		t.down(i)
		t.up(i)
	}
	if last > 0 {
		t.first = t.h[0].timer.key
	}
}

// before orders by instant, then by number, so that equal instants fire in the
// same order on every run.
func (t *timerHeap) before(i, j int) bool {
	a, b := t.h[i], t.h[j]
	if a.timer.key != b.timer.key {
		return a.timer.key < b.timer.key
	}
	return a.qpn < b.qpn
}

func (t *timerHeap) swap(i, j int) {
	t.h[i], t.h[j] = t.h[j], t.h[i]
	t.h[i].timer.index, t.h[j].timer.index = i, j
}

func (t *timerHeap) up(i int) {
	for i > 0 {
		p := (i - 1) / 4
		if !t.before(i, p) {
			return
		}
		t.swap(i, p)
		i = p
	}
}

func (t *timerHeap) down(i int) {
	for {
		best := i
		for c := 4*i + 1; c <= 4*i+4 && c < len(t.h); c++ {
			if t.before(c, best) {
				best = c
			}
		}
		if best == i {
			return
		}
		t.swap(i, best)
		i = best
	}
}
