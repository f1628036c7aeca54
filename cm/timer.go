package cm

import "github.com/verbena-rdma/verbena/clock"

// timer is the deadline of one connection or request.
type timer struct {
	at    clock.Time
	seq   uint64 // of equal instants the one that was set first is due first
	index int    // in the heap, from 1; 0 if it is not set
	conn  *conn
	sidr  *sidr
}

// timers is a heap of timers by instant.
type timers struct {
	h   []*timer
	seq uint64
}

func (t *timers) earliest() clock.Time {
	if len(t.h) == 0 {
		return clock.Never
	}
	return t.h[0].at
}

// due returns a timer that is due, or nil.
func (t *timers) due(now clock.Time) *timer {
	if len(t.h) == 0 || t.h[0].at > now {
		return nil
	}
	return t.h[0]
}

// set sets a timer, which may be set already.
func (t *timers) set(x *timer, at clock.Time) {
	t.stop(x)
	t.seq++
	x.at, x.seq = at, t.seq
	t.h = append(t.h, x)
	x.index = len(t.h)
	t.up(x.index - 1)
}

func (t *timers) stop(x *timer) {
	if x.index == 0 {
		return
	}
	i, last := x.index-1, len(t.h)-1
	t.swap(i, last)
	t.h[last] = nil
	t.h = t.h[:last]
	x.index = 0
	if i < last {
		t.down(i)
		t.up(i)
	}
}

func (t *timers) before(i, j int) bool {
	a, b := t.h[i], t.h[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (t *timers) swap(i, j int) {
	t.h[i], t.h[j] = t.h[j], t.h[i]
	t.h[i].index, t.h[j].index = i+1, j+1
}

func (t *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(i, parent) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *timers) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.h); c++ {
			if t.before(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}
