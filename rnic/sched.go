package rnic

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// qpSched is a queue pair's place among those that want to send: in the ready
// list of its priority, in its destination's list of those that wait for room,
// or in none.
type qpSched struct {
	list       *qpList
	prev, next *QP
	prio       uint8 // changes only while in no list
	// since is when it was put into the ready list: the low bits, as it does not
	// stay there for seconds.
	since uint32
}

// waitsSince returns since when, seen from now, it could have been q's turn.
func (a *Adapter) waitsSince(now clock.Time, q *QP) clock.Time {
	t := now - clock.Time(uint32(now)-q.sched.since)
	return min(now, max(t, a.sched.class[q.sched.prio&(numPrios-1)].resumed))
}

// qpList is a queue of queue pairs, linked through them.
type qpList struct{ head, tail *QP }

func (l *qpList) push(q *QP) {
	q.sched.list, q.sched.prev, q.sched.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.sched.next = q
	} else {
		l.head = q
	}
	l.tail = q
}

func (l *qpList) remove(q *QP) {
	s := &q.sched
	if s.prev != nil {
		s.prev.sched.next = s.next
	} else {
		l.head = s.next
	}
	if s.next != nil {
		s.next.sched.prev = s.prev
	} else {
		l.tail = s.prev
	}
	s.list, s.prev, s.next = nil, nil, nil
}

// numPrios is the number of priorities (802.1Q).
const numPrios = 8

// scheduler holds the queue pairs that may send now, by priority. Priorities
// take turns, and so do the queue pairs of one: a turn is a run.
type scheduler struct {
	full   uint8 // bit p: the ready list of p is not empty
	paused uint8
	turn   uint8
	fresh  uint8 // priorities that are not paused any more, and their resumed does not say so yet
	class  [numPrios]schedClass
}

// schedClass is one priority of a scheduler.
type schedClass struct {
	ready   qpList
	resumed clock.Time // when it was last paused no more
}

// resume notes that priorities go on.
func (s *scheduler) resume(now clock.Time) {
	for ; s.fresh != 0; s.fresh &= s.fresh - 1 {
		s.class[bits.TrailingZeros8(s.fresh)].resumed = now
	}
}

func (s *scheduler) any() bool { return s.full&^s.paused != 0 }

// add puts q at the end of its priority's list, unless it is in it.
func (s *scheduler) add(q *QP) {
	l := &s.class[q.sched.prio].ready
	if q.sched.list == l {
		return
	}
	s.remove(q)
	l.push(q)
	s.full |= 1 << q.sched.prio
}

// remove takes q out of whatever list it is in.
func (s *scheduler) remove(q *QP) {
	l := q.sched.list
	if l == nil {
		return
	}
	l.remove(q)
	if p := q.sched.prio; l.head == nil && l == &s.class[p].ready {
		s.full &^= 1 << p
	}
}

// take removes and returns the queue pair whose turn it is, or nil.
func (s *scheduler) take() *QP {
	m := s.full &^ s.paused
	if m == 0 {
		return nil
	}
	p := s.turn
	for m>>p&1 == 0 {
		p = (p + 1) % numPrios
	}
	s.turn = (p + 1) % numPrios
	q := s.class[p].ready.head
	s.remove(q)
	return q
}

// answerBells tells the engines whose rings have grown.
func (a *Adapter) answerBells(now clock.Time) {
	for q := a.bell.take(); q != nil; {
		rest := answer(q)
		if q.flags&qpGone == 0 {
			q.eng.Post(now)
			a.look(now, q)
		} else if q == a.alarm {
			a.alarmed(now)
		}
		q = rest
	}
	a.settle(now)
}

func (a *Adapter) fireTimers(now clock.Time) {
	for q := a.timers.next(now); q != nil; q = a.timers.next(now) {
		q.eng.Advance(now)
		a.look(now, q)
		if q.timer.due <= now {
			q.timer.due = now + 1 // whatever an engine says, this loop ends
		}
	}
	a.settle(now)
}

// look takes notice of what the last calls have changed in a queue pair, and
// lets others try that wait for the same window.
func (a *Adapter) look(now clock.Time, q *QP) {
	a.place(now, q)
	a.wake(q.dest)
}

// place notes a queue pair's state, whether it wants to send, and when it wants
// to be called.
func (a *Adapter) place(now clock.Time, q *QP) {
	if s := q.eng.State(); s != q.state.load() {
		a.setState(q, s)
	}
	due, at := q.eng.Deadline(), q.eng.SendAt()
	if at != clock.Never {
		q.catchUp(now)
		if q.pacer.holds(now) && (at > now || !q.eng.Urgent()) {
			at = max(at, q.pacer.ready())
		}
		if at > now {
			due = min(due, at)
			if q.rp != nil {
				due = min(due, q.rp.Deadline()) // it may let something leave earlier
			}
		}
	}
	if at <= now {
		if q.sched.list == nil {
			q.sched.since = uint32(now)
		}
		a.sched.add(q)
	} else {
		a.sched.remove(q)
	}
	a.timers.set(q, due)
}

// wake lets those try again that waited for room towards a destination. Egress
// itself wakes nobody by what it has tried in vain: it would not end.
func (a *Adapter) wake(d *dest) {
	if d == nil || d.stalled.head == nil || d.window.Room() <= 0 {
		return
	}
	for q := d.stalled.head; q != nil; q = d.stalled.head {
		a.sched.add(q)
	}
}

// stall puts away a queue pair that has something to send and cannot: until
// its window has room, or something else happens to it.
func (a *Adapter) stall(q *QP) {
	a.sched.remove(q)
	if q.dest != nil {
		q.dest.stalled.push(q)
	}
}

// settle deals with completion queues that have overflowed: their queue pairs
// go to Error (IBA vol.1 11.6.3.1 and 10.10.3), which may overflow others.
func (a *Adapter) settle(now clock.Time) {
	for len(a.overrun) > 0 {
		c := a.overrun[0]
		a.overrun = a.overrun[:copy(a.overrun, a.overrun[1:])]
		a.events.push(ib.Event{Type: ib.EventCQErr, Element: c.num, Detail: "completion queue overflowed"})
		a.failUsers(now, c)
	}
}

// failUsers moves to Error the queue pairs of a completion queue that has
// overflowed.
func (a *Adapter) failUsers(now clock.Time, c *CQ) {
	for _, q := range a.qps.using(c) {
		if s := q.eng.State(); s == ib.Error || s == ib.Reset {
			continue
		}
		q.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
		a.events.push(ib.Event{Type: ib.EventQPFatal, Element: uint32(q.qpn), Detail: "its completion queue overflowed"})
		a.look(now, q)
	}
}
