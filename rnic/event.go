package rnic

import "github.com/verbena-rdma/verbena/ib"

// maxEvents bounds the events that wait to be read: a peer can cause events,
// so their number must not be its to choose.
const maxEvents = 4096

// eventQueue holds asynchronous events, oldest first.
type eventQueue struct {
	q    []ib.Event
	head int
	hook func(ib.Event) bool
	lost uint64
}

func (e *eventQueue) push(ev ib.Event) {
	if e.hook != nil && e.hook(ev) {
		return
	}
	if len(e.q)-e.head >= maxEvents {
		e.lost++
		return
	}
	if e.head > 0 && len(e.q) == cap(e.q) {
		e.q = e.q[:copy(e.q, e.q[e.head:])]
		e.head = 0
	}
	e.q = append(e.q, ev)
}

func (e *eventQueue) pop() (ib.Event, bool) {
	if e.head == len(e.q) {
		return ib.Event{}, false
	}
	ev := e.q[e.head]
	e.q[e.head] = ib.Event{}
	if e.head++; e.head == len(e.q) {
		e.q, e.head = e.q[:0], 0
	}
	return ev, true
}

// Event removes and returns the oldest asynchronous event. Owner.
func (a *Adapter) Event() (ib.Event, bool) { return a.events.pop() }

// OnEvent sets the function that is called, by the owner, for each new event
// before it can be read; nil for none. Where it returns true, the event was its
// own and is not kept. It must not call the adapter. Owner.
func (a *Adapter) OnEvent(f func(ev ib.Event) (taken bool)) { a.events.hook = f }
