package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// saved is a READ or ATOMIC request that the responder remembers: to answer it,
// and to answer its duplicates.
type saved struct {
	kind        wire.Kind // KindReadRequest, KindAtomic, KindFlush or KindAtomicWrite
	due         bool      // an answer has to be sent, from cur to stop
	fresh       bool      // not answered to the end even once
	first, last ib.PSN    // of the request
	start, stop ib.PSN    // of the answer that is due: all, or the rest
	cur         ib.PSN    // next packet of it
	msn         ib.MSN
	rkey        ib.RKey
	len         uint32
	va          uint64
	result      uint64 // ATOMIC: the value before
}

// op returns the opcode of the answer's next packet.
func (s *saved) op() wire.Opcode {
	switch first, last := s.cur == s.start, s.cur == s.stop; {
	case s.kind == wire.KindAtomic:
		return wire.RCAtomicAck
	case first && last:
		return wire.RCReadRespOnly
	case first:
		return wire.RCReadRespFirst
	case last:
		return wire.RCReadRespLast
	}
	return wire.RCReadRespMiddle
}

// replay remembers the last MaxDestRdAtomic requests, in the order of their
// PSNs. Answers that are due leave in that order. nil remembers none.
type replay struct {
	ring []saved
	next int // slot for the next request; the oldest, once all are used
	due  int // slots with an answer due
	at   int // slot of the oldest answer due, if due > 0
}

// pending reports whether an answer is due.
func (q *replay) pending() bool { return q != nil && q.due > 0 }

// hasRoom reports whether another request may be accepted: size are not under
// way already. An answer that is due to a duplicate alone gives way.
func (q *replay) hasRoom(size int) bool {
	if q == nil {
		return size > 0
	}
	s := &q.ring[q.next]
	return !s.due || !s.fresh
}

// remember takes a request for which there is room; its answer becomes due.
func (e *Engine) remember(s *saved) {
	if e.rsp.saved == nil {
		e.rsp.saved = &replay{ring: make([]saved, e.attr.MaxDestRdAtomic)}
	}
	e.rsp.saved.add(s)
}

func (q *replay) add(s *saved) {
	slot := &q.ring[q.next]
	wasDue := slot.due
	*slot = *s
	slot.due, slot.fresh = true, true
	if !wasDue {
		q.due++
	}
	if q.due == 1 {
		q.at = q.next
	}
	q.next = (q.next + 1) % len(q.ring)
	if wasDue {
		q.seek()
	}
}

// front returns the oldest request with an answer due; there is one.
func (q *replay) front() *saved { return &q.ring[q.at] }

// frontDone says that the answer of front has been sent to its end.
func (q *replay) frontDone() {
	s := &q.ring[q.at]
	s.due, s.fresh = false, false
	q.due--
	q.seek()
}

// seek sets at, walking from the oldest request.
func (q *replay) seek() {
	if q.due == 0 {
		return
	}
	i := q.next
	for !q.ring[i].due {
		i = (i + 1) % len(q.ring)
	}
	q.at = i
}

// clearDue takes back all answers.
func (q *replay) clearDue() {
	if q == nil {
		return
	}
	for i := range q.ring {
		q.ring[i].due = false
	}
	q.due = 0
}

// find returns the remembered request that psn belongs to, or nil.
func (q *replay) find(psn ib.PSN) *saved {
	if q == nil {
		return nil
	}
	for i := range q.ring {
		s := &q.ring[i]
		if s.kind != 0 && !psn.Before(s.first) && !s.last.Before(psn) {
			return s
		}
	}
	return nil
}

// again makes the answer to s, or its part from psn to stop, due again. What of
// it had not been sent is part of that.
func (q *replay) again(s *saved, psn, stop ib.PSN) {
	s.start, s.cur, s.stop = psn, psn, stop
	if !s.due {
		s.due = true
		q.due++
	}
	q.seek()
}

// receiveDuplicate answers a request that has been executed (IBA vol.1
// 9.7.5.1.4): SEND and WRITE with an ACK for everything so far, READ from
// memory, ATOMIC with the saved result.
func (e *Engine) receiveDuplicate(a *arrival) {
	r := &e.rsp
	if a.info == nil {
		e.cfg.Sink.Drop(transport.DropPSN)
		return
	}
	switch a.info.Kind {
	case wire.KindSend, wire.KindWrite:
		r.ackDue = true
		e.cfg.Sink.Drop(transport.DropDuplicate)
		return
	case wire.KindReadRequest:
		if s := r.saved.find(a.p.PSN); s != nil && s.kind == wire.KindReadRequest {
			if stop, ok := e.rereadable(s, a.p); ok {
				r.saved.again(s, a.p.PSN, stop)
				return
			}
		}
	case wire.KindFlush, wire.KindAtomicWrite:
		h := &a.p.RETH
		if s := r.saved.find(a.p.PSN); s != nil && s.kind == a.info.Kind && s.va == h.VA && s.rkey == h.RKey {
			r.saved.again(s, s.first, s.last)
			return
		}
	case wire.KindAtomic:
		h := &a.p.Atomic
		if s := r.saved.find(a.p.PSN); s != nil && s.kind == wire.KindAtomic && s.va == h.VA && s.rkey == h.RKey {
			r.saved.again(s, s.first, s.last)
			return
		}
	case wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
	}
	e.cfg.Sink.Drop(transport.DropPSN)
}
