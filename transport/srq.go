package transport

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
)

// SharedQueue is a receive queue that several queue pairs of one adapter take
// their receives from (IBA vol.1 10.2.9). Like every ring it has one poster at a
// time and one owner: the engines of its queue pairs belong to the same.
//
//	poster ─▶ ring ─▶ whichever engine needs one first
//
// An engine leaves a receive in the ring for as long as a packet is looked at:
// one that cannot be used takes nothing. A message of several packets takes its
// receive out with the first of them ([RecvQueue.Hold]) and keeps it until it
// ends, so that messages of other queue pairs pass it.
type SharedQueue struct {
	ring[RecvWQE]
	pd    mem.PD
	limit int    // 0: not armed
	low   func() // the limit was reached; may be nil
	User  any    // whose queue it is; not looked at here
}

// Init makes a zero SharedQueue ready: depth receives of up to maxSGE elements,
// whose memory is checked against pd. low is called, by the owner, each time an
// armed limit is reached.
func (q *SharedQueue) Init(pd mem.PD, depth, maxSGE int, low func()) {
	q.init(depth, maxSGE)
	q.pd, q.low = pd, low
}

// Slot returns the slot i places after the last posted one for filling; it must
// be below Free. Poster.
func (q *SharedQueue) Slot(i int) *RecvWQE { return recvSlot(&q.ring, i) }

// Posted returns how many receives wait. Owner.
func (q *SharedQueue) Posted() int { return q.posted() }

// Limit returns the armed limit, 0 if there is none. Owner.
func (q *SharedQueue) Limit() int { return q.limit }

// Arm sets the limit: when fewer receives than that wait, low is called once and
// the limit is 0 again (IBA vol.1 10.2.9.1). Where fewer wait already, that is
// at once. 0 disarms. Owner.
func (q *SharedQueue) Arm(limit int) {
	q.limit = limit
	q.check()
}

func (q *SharedQueue) check() {
	if q.limit == 0 || q.posted() >= q.limit {
		return
	}
	q.limit = 0
	if q.low != nil {
		q.low()
	}
}

// Resize gives the ring another depth, at least Posted; receives that wait stay
// in order. Owner, while nobody posts.
func (q *SharedQueue) Resize(depth int) {
	var to ring[RecvWQE]
	to.init(depth, int(q.maxSGE))
	for pos := q.head.Load(); pos != q.tail.Load(); pos++ {
		w := recvSlot(&to, 0)
		from := q.at(pos)
		w.ID, w.SGL = from.ID, append(w.SGL, from.SGL...)
		to.tail.Add(1)
	}
	q.depth, q.mask, q.first, q.rest = to.depth, to.mask, to.first, to.rest
	q.head.Store(to.head.Load())
	q.tail.Store(to.tail.Load())
}

// sharing is a queue pair's part in a SharedQueue.
type sharing struct {
	from *SharedQueue
	own  RecvWQE // what this queue pair has taken out
	held bool
}

// InitShared makes a zero RecvQueue one that takes its receives from shared.
func (q *RecvQueue) InitShared(shared *SharedQueue) {
	q.rest = &ringRest[RecvWQE]{share: &sharing{from: shared, own: RecvWQE{SGL: make([]ib.SGE, 0, shared.maxSGE)}}}
}

// sharing returns the part in a SharedQueue, or nil. A ring of one's own has a
// depth.
func (q *RecvQueue) sharing() *sharing {
	if q.depth != 0 || q.rest == nil {
		return nil
	}
	return q.rest.share
}

// Shared reports whether the receives are those of a SharedQueue.
func (q *RecvQueue) Shared() bool { return q.sharing() != nil }

// From returns the SharedQueue that the receives come from, or nil.
func (q *RecvQueue) From() *SharedQueue {
	if s := q.sharing(); s != nil {
		return s.from
	}
	return nil
}

func (s *sharing) mine() int {
	if s.held {
		return 1
	}
	return 0
}

func (s *sharing) peek() *RecvWQE {
	if s.held {
		return &s.own
	}
	pos := s.from.head.Load()
	if pos == s.from.tail.Load() {
		return nil
	}
	return s.from.at(pos)
}

func (s *sharing) pop() {
	if s.held {
		s.held = false
		return
	}
	s.from.head.Add(1)
	s.from.check()
}

func (s *sharing) hold() {
	if s.held {
		return
	}
	w := s.from.at(s.from.head.Load())
	s.own.ID, s.own.SGL = w.ID, append(s.own.SGL[:0], w.SGL...)
	s.pop()
	s.held = true
}
