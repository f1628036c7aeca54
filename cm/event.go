package cm

import (
	"fmt"

	"github.com/verbena-rdma/verbena/wire/mad"
)

// EventType is the kind of an event.
type EventType uint8

// The events. Which message an event has is in brackets.
const (
	// EventRequest: a peer asks for a connection; answer with Accept or Reject
	// [REQ].
	EventRequest EventType = 1 + iota
	// EventReply: the peer has accepted; answer with Ready or Reject [REP].
	EventReply
	// EventReady: the connection that was accepted is established [RTU; none
	// if it was data that said so].
	EventReady
	// EventRejected: the peer has refused, or given up. The ID is gone [REJ].
	EventRejected
	// EventUnreachable: the peer does not answer. The ID is gone.
	EventUnreachable
	// EventDisconnect: the peer ends the connection; answer with Disconnect
	// [DREQ; none if the peer has forgotten the connection].
	EventDisconnect
	// EventDisconnected: the connection has ended [DREP; none if the peer did
	// not answer, or has forgotten the connection].
	EventDisconnected
	// EventTimewaitExit: the time is over in which packets of the connection
	// may still be under way. The ID is gone.
	EventTimewaitExit
	// EventSIDRRequest: a peer asks for the queue pair of a service; answer
	// with ReplySIDR [SIDR REQ].
	EventSIDRRequest
	// EventSIDRReply: the answer. The ID is gone [SIDR REP].
	EventSIDRReply
)

var eventNames = [...]string{
	EventRequest: "request", EventReply: "reply", EventReady: "ready", EventRejected: "rejected", EventUnreachable: "unreachable",
	EventDisconnect: "disconnect", EventDisconnected: "disconnected", EventTimewaitExit: "timewait exit",
	EventSIDRRequest: "SIDR request", EventSIDRReply: "SIDR reply",
}

func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return fmt.Sprintf("CM event %d", uint8(t))
}

// Event is something that the user of a machine must know.
type Event struct {
	Type EventType
	ID   ID
	Peer Peer
	// Attr is the kind of message that the event has; 0 for none.
	Attr mad.Attr
	data [mad.DataLen]byte
}

// Last reports whether the event is the last of its ID, which is gone.
func (e *Event) Last() bool {
	switch e.Type {
	case EventRejected, EventUnreachable, EventTimewaitExit, EventSIDRReply:
		return true
	case EventRequest, EventReply, EventReady, EventDisconnect, EventDisconnected, EventSIDRRequest:
	}
	return false
}

// Decode fills the message that the event has, of the kind that Attr says.
// Private data are borrowed from the event.
func (e *Event) Decode(m mad.Message) { m.Decode(e.data[:]) }

// event queues an event; b is the MAD that it has, or nil.
func (m *Machine) event(t EventType, id ID, p Peer, b []byte) {
	m.events.push(Event{Type: t, ID: id, Peer: p})
	if b == nil {
		return
	}
	e := m.events.last()
	var h mad.Header
	h.Decode(b)
	e.Attr = h.Attr
	copy(e.data[:], b[mad.HeaderLen:])
}

// Event removes and returns the oldest event.
func (m *Machine) Event() (Event, bool) { return m.events.pop() }

// fifo is a queue.
type fifo[T any] struct {
	q    []T
	head int
}

func (f *fifo[T]) len() int { return len(f.q) - f.head }

func (f *fifo[T]) push(v T) {
	if f.head > 0 && len(f.q) == cap(f.q) {
		f.q = f.q[:copy(f.q, f.q[f.head:])]
		f.head = 0
	}
	f.q = append(f.q, v)
}

func (f *fifo[T]) last() *T { return &f.q[len(f.q)-1] }

func (f *fifo[T]) pop() (v T, ok bool) {
	if f.len() == 0 {
		return v, false
	}
	v = f.q[f.head]
	if f.head++; f.head == len(f.q) {
		f.q, f.head = f.q[:0], 0
	}
	return v, true
}
