package rnic

import (
	"sync/atomic"

	"github.com/verbena-rdma/verbena/ib"
)

// doorbell is the list of queue pairs whose rings have grown: any number of
// goroutines push, the owner takes all. A queue pair is in it at most once.
type doorbell struct{ top atomic.Pointer[QP] }

// bell is a queue pair's link in the list.
type bell struct {
	rung atomic.Bool
	next *QP
}

// ring puts q on the list. Any goroutine; the post is published before.
func (d *doorbell) ring(q *QP) {
	if q.bell.rung.Swap(true) {
		return
	}
	for {
		top := d.top.Load()
		q.bell.next = top
		if d.top.CompareAndSwap(top, q) {
			return
		}
	}
}

// pending reports whether anything has been rung.
func (d *doorbell) pending() bool { return d.top.Load() != nil }

// Rung reports whether a doorbell waits for Advance. Any goroutine.
func (a *Adapter) Rung() bool { return a.bell.pending() }

// take empties the list and returns it in the order of ringing. Owner.
func (d *doorbell) take() *QP {
	if d.top.Load() == nil {
		return nil
	}
	var first *QP
	for q := d.top.Swap(nil); q != nil; {
		next := q.bell.next
		q.bell.next = first
		first, q = q, next
	}
	return first
}

// answer removes q from what take returned and gives the rest. From here on a
// post rings again. Owner.
func answer(q *QP) (rest *QP) {
	rest = q.bell.next
	q.bell.next = nil
	q.bell.rung.Store(false)
	return rest
}

// stateWord is the copy of a queue pair's state that other goroutines read.
type stateWord struct{ v atomic.Uint32 }

func (w *stateWord) load() ib.QPState   { return ib.QPState(w.v.Load()) }
func (w *stateWord) store(s ib.QPState) { w.v.Store(uint32(s)) }
