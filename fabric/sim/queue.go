package sim

import "math/bits"

// event is one entry of the queue. seq orders events of one instant.
type event struct {
	at   Time
	seq  uint64
	h    Handler
	arg  uint64
	next int32 // in the list of its slot, or of free events
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

const (
	slotBits = 10 // a slot is 1,024 ps
	numSlots = 1 << 15
)

// queue is a wheel of slots for the next 33 us, in which nearly everything that
// a fabric schedules lies, and a heap for what is later. A slot is an unsorted
// list; when its time comes it is sorted into now. So pushing costs no
// comparison, and popping those of the few events of one slot.
//
// Events are kept in one slice and named by their index in it: what moves is four
// bytes, and nothing is allocated once the slice is long enough.
type queue struct {
	events []event
	free   int32
	n      int
	seq    uint64

	now   []int32 // sorted, from first on: events of slot at
	first int
	at    Time // slot number (instant / slot length) of now

	head, tail [numSlots]int32 // 0 stands for none: indices are kept plus one
	full       [numSlots / 64]uint64
	words      [numSlots / 64 / 64]uint64 // bit w: full[w] is not 0
	wheel      int                        // events in slots

	later []int32 // heap of four children a node
}

func (q *queue) alloc(t Time, h Handler, arg uint64) int32 {
	q.seq++
	q.n++
	i := q.free - 1
	if i < 0 {
		q.events = append(q.events, event{})
		i = int32(len(q.events) - 1)
	} else {
		q.free = q.events[i].next
	}
	e := &q.events[i]
	e.at, e.seq, e.h, e.arg = t, q.seq, h, arg
	return i
}

func (q *queue) push(t Time, h Handler, arg uint64) {
	i := q.alloc(t, h, arg)
	slot := t >> slotBits
	switch {
	case slot <= q.at:
		q.insert(i)
	case slot < q.at+numSlots:
		q.put(i, slot)
	default:
		q.defers(i)
	}
}

// put appends an event to its slot.
func (q *queue) put(i int32, slot Time) {
	s := int(slot) & (numSlots - 1)
	q.events[i].next = 0
	if t := q.tail[s]; q.head[s] != 0 {
		q.events[t-1].next = i + 1
	} else {
		q.head[s] = i + 1
		q.full[s>>6] |= 1 << (s & 63)
		q.words[s>>12] |= 1 << (s >> 6 & 63)
	}
	q.tail[s] = i + 1
	q.wheel++
}

// insert puts an event where it belongs in now.
func (q *queue) insert(i int32) {
	e := &q.events[i]
	q.now = append(q.now, 0)
	k := len(q.now) - 1
	for k > q.first && e.before(&q.events[q.now[k-1]]) {
		q.now[k] = q.now[k-1]
		k--
	}
	q.now[k] = i
}

// turn fills now, which is empty, with the next slot that has events. There are
// some.
func (q *queue) turn() {
	q.now, q.first = q.now[:0], 0
	next := Never >> slotBits
	if q.wheel > 0 {
		next = q.scan()
	}
	if len(q.later) > 0 {
		next = min(next, q.events[q.later[0]].at>>slotBits)
	}
	q.at = next
	// What has come within reach of the wheel.
	for len(q.later) > 0 {
		i := q.later[0]
		slot := q.events[i].at >> slotBits
		if slot >= q.at+numSlots {
			break
		}
		q.popLater()
		if slot == q.at {
			q.insert(i)
		} else {
			q.put(i, slot)
		}
	}
	s := int(next) & (numSlots - 1)
	i := q.head[s]
	if i == 0 {
		return
	}
	q.head[s] = 0
	if q.full[s>>6] &^= 1 << (s & 63); q.full[s>>6] == 0 {
		q.words[s>>12] &^= 1 << (s >> 6 & 63)
	}
	for i != 0 {
		next := q.events[i-1].next
		q.insert(i - 1)
		q.wheel--
		i = next
	}
}

// scan returns the number of the first slot after at that has events.
func (q *queue) scan() Time {
	base := int(q.at) & (numSlots - 1)
	from := (base + 1) & (numSlots - 1)
	s := q.firstFrom(from)
	if s < 0 {
		s = q.firstFrom(0)
	}
	return q.at + Time((s-base)&(numSlots-1))
}

// firstFrom returns the first slot from s to the end of the ring that has
// events, or -1.
func (q *queue) firstFrom(s int) int {
	w := s >> 6
	if m := q.full[w] >> (s & 63); m != 0 {
		return s + bits.TrailingZeros64(m)
	}
	if w++; w == len(q.full) {
		return -1
	}
	m := q.words[w>>6] >> (w & 63) << (w & 63)
	for v := w >> 6; ; m = q.words[v] {
		if m != 0 {
			w = v<<6 + bits.TrailingZeros64(m)
			return w<<6 + bits.TrailingZeros64(q.full[w])
		}
		if v++; v == len(q.words) {
			return -1
		}
	}
}

// pop removes the earliest event if it is not later than until.
func (q *queue) pop(until Time) (at Time, h Handler, arg uint64, ok bool) {
	if q.n == 0 {
		return 0, nil, 0, false
	}
	if q.first == len(q.now) {
		if q.soonest() > until {
			return 0, nil, 0, false
		}
		q.turn()
	}
	i := q.now[q.first]
	e := &q.events[i]
	if e.at > until {
		return 0, nil, 0, false
	}
	q.first++
	at, h, arg = e.at, e.h, e.arg
	e.next = q.free
	q.free = i + 1
	q.n--
	return at, h, arg, true
}

// soonest is no later than the earliest event; now is empty. The wheel is not
// turned for it: a slot that is now must not lie before an instant that is
// still to be pushed.
func (q *queue) soonest() Time {
	t := Never
	if q.wheel > 0 {
		t = q.scan() << slotBits
	}
	if len(q.later) > 0 {
		t = min(t, q.events[q.later[0]].at)
	}
	return t
}

// earliest returns the instant of the earliest event, or Never.
func (q *queue) earliest() Time {
	if q.n == 0 {
		return Never
	}
	if q.first < len(q.now) {
		return q.events[q.now[q.first]].at
	}
	t := Never
	if q.wheel > 0 {
		s := int(q.scan()) & (numSlots - 1)
		for i := q.head[s]; i != 0; i = q.events[i-1].next {
			t = min(t, q.events[i-1].at)
		}
	}
	if len(q.later) > 0 {
		t = min(t, q.events[q.later[0]].at)
	}
	return t
}

// defers puts an event into the heap.
func (q *queue) defers(e int32) {
	q.later = append(q.later, e)
	i := len(q.later) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !q.events[e].before(&q.events[q.later[p]]) {
			break
		}
		q.later[i] = q.later[p]
		i = p
	}
	q.later[i] = e
}

// popLater removes the earliest event of the heap.
func (q *queue) popLater() {
	n := len(q.later) - 1
	e := q.later[n]
	q.later = q.later[:n]
	if n == 0 {
		return
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		best := c
		for k := c + 1; k < min(c+4, n); k++ {
			if q.events[q.later[k]].before(&q.events[q.later[best]]) {
				best = k
			}
		}
		if !q.events[q.later[best]].before(&q.events[e]) {
			break
		}
		q.later[i] = q.later[best]
		i = best
	}
	q.later[i] = e
}
