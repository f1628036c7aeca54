package sim

import "math/bits"

// event is one entry of the queue: half a cache line.
type event struct {
	at   Time
	h    Handler
	arg  uint32
	next int32 // in the list of its slot, or of free events; indices plus one, 0: none
}

const (
	slotBits = 8 // a slot is 256 ps
	numSlots = 1 << 15
)

// queue is a wheel of slots for the next 8 us, in which nearly everything that
// a fabric schedules lies, and a heap for what is later. A slot is a list in the
// order in which its events were scheduled; when its time comes it is sorted into
// now. So pushing costs no comparison, and popping those of the few events of one
// slot.
//
// Nothing has to say in which order events of one instant were scheduled: a list
// keeps it, the sort is stable, and what comes from the heap comes before a slot
// can get anything else, when the slot comes within reach of the wheel.
//
// Events are kept in one slice and named by their index in it: what moves is
// small, and nothing is allocated once the slice is long enough.
type queue struct {
	events []event
	free   int32 // as next
	n      int
	wheel  int // events in slots

	now   []moment // sorted, from first on: events of slot at
	first int
	at    Time // slot number (instant / slot length) of now

	slots [numSlots]slot
	full  [numSlots / 64]uint64
	words [numSlots / 64 / 64]uint64 // bit w: full[w] is not 0

	later heap
}

// slot is a list of events; as next.
type slot struct{ head, tail int32 }

// moment is an event with its instant.
type moment struct {
	at Time
	i  int32
}

func (q *queue) push(t Time, h Handler, arg uint32) {
	q.n++
	i := q.free - 1
	if i < 0 {
		q.events = append(q.events, event{})
		i = int32(len(q.events) - 1)
	} else {
		q.free = q.events[i].next
	}
	q.events[i] = event{at: t, h: h, arg: arg}
	switch s := t >> slotBits; {
	case s <= q.at:
		q.insert(moment{t, i})
	case s < q.at+numSlots:
		q.put(i, s)
	default:
		q.later.push(moment{t, i})
	}
}

// put appends an event to its slot.
func (q *queue) put(i int32, at Time) {
	n := int(at) & (numSlots - 1)
	s := &q.slots[n]
	if s.head != 0 {
		q.events[s.tail-1].next = i + 1
	} else {
		s.head = i + 1
		q.full[n>>6] |= 1 << (n & 63)
		q.words[n>>12] |= 1 << (n >> 6 & 63)
	}
	s.tail = i + 1
	q.wheel++
}

// insert puts an event where it belongs in now: behind those of its instant.
func (q *queue) insert(m moment) {
	q.now = append(q.now, m)
	k := len(q.now) - 1
	for k > q.first && m.at < q.now[k-1].at {
		q.now[k] = q.now[k-1]
		k--
	}
	q.now[k] = m
}

// turn fills now, which is empty, with the next slot that has events. There are
// some.
func (q *queue) turn() {
	q.now, q.first = q.now[:0], 0
	next := q.later.earliest() >> slotBits
	if q.wheel > 0 {
		next = min(next, q.scan())
	}
	q.at = next
	// What has come within reach of the wheel.
	for q.later.earliest()>>slotBits < q.at+numSlots && len(q.later.h) > 0 {
		m := q.later.pop()
		if s := m.at >> slotBits; s == q.at {
			q.insert(m)
		} else {
			q.events[m.i].next = 0
			q.put(m.i, s)
		}
	}
	n := int(next) & (numSlots - 1)
	i := q.slots[n].head
	if i == 0 {
		return
	}
	q.slots[n].head = 0
	if q.full[n>>6] &^= 1 << (n & 63); q.full[n>>6] == 0 {
		q.words[n>>12] &^= 1 << (n >> 6 & 63)
	}
	for i != 0 {
		e := &q.events[i-1]
		q.insert(moment{e.at, i - 1})
		q.wheel--
		i = e.next
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
func (q *queue) pop(until Time) (at Time, h Handler, arg uint32, ok bool) {
	if q.n == 0 {
		return 0, nil, 0, false
	}
	if q.first == len(q.now) {
		if q.soonest() > until {
			return 0, nil, 0, false
		}
		q.turn()
	}
	m := q.now[q.first]
	if m.at > until {
		return 0, nil, 0, false
	}
	q.first++
	e := &q.events[m.i]
	h, arg = e.h, e.arg
	e.next = q.free
	q.free = m.i + 1
	q.n--
	return m.at, h, arg, true
}

// soonest is no later than the earliest event; now is empty. The wheel is not
// turned for it: a slot that is now must not lie before an instant that is
// still to be pushed.
func (q *queue) soonest() Time {
	t := q.later.earliest()
	if q.wheel > 0 {
		t = min(t, q.scan()<<slotBits)
	}
	return t
}

// earliest returns the instant of the earliest event, or Never.
func (q *queue) earliest() Time {
	if q.n == 0 {
		return Never
	}
	if q.first < len(q.now) {
		return q.now[q.first].at
	}
	t := q.later.earliest()
	if q.wheel > 0 {
		for i := q.slots[int(q.scan())&(numSlots-1)].head; i != 0; i = q.events[i-1].next {
			t = min(t, q.events[i-1].at)
		}
	}
	return t
}
