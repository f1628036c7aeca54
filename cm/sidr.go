package cm

import (
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// sidr is a request for the queue pair of a service of datagrams: ours, or a
// peer's (IBA vol.1 12.11).
type sidr struct {
	id      ID
	passive bool
	done    bool // passive: answered
	tries   uint8
	peer    Peer
	remote  mad.CommID // passive: the peer's request ID
	service mad.ServiceID
	tid     uint64
	timeout time.Duration
	timer   timer
	waits   *listener
	last    [mad.Len]byte
}

// Resolve asks a peer for the queue pair of a service. The machine fills
// RequestID; timeoutExp says when the request goes out again (4.096 µs · 2^n),
// retries how often. EventSIDRReply or EventUnreachable will follow.
func (m *Machine) Resolve(now clock.Time, to Peer, req *mad.SIDRREQ, timeoutExp, retries uint8) (ID, error) {
	if len(m.sidrs) >= m.cfg.MaxConns {
		return 0, fmt.Errorf("resolve: there are %d of %d requests: %w", len(m.sidrs), m.cfg.MaxConns, ErrLimit)
	}
	if len(req.Private) > mad.SIDRREQPrivateLen {
		return 0, fmt.Errorf("resolve: private data of %d bytes, can be up to %d: %w", len(req.Private), mad.SIDRREQPrivateLen, ErrInvalid)
	}
	s := m.newSIDR(to, m.newTID())
	s.timeout, s.tries = m.wait(timeoutExp), retries
	r := *req
	r.RequestID = uint32(s.id)
	mad.Put(s.last[:], s.tid, &r)
	m.out.push(outgoing{to: to, b: s.last})
	m.timers.set(&s.timer, now.Add(s.timeout))
	return s.id, nil
}

func (m *Machine) newSIDR(peer Peer, tid uint64) *sidr {
	s := &sidr{id: m.newID(), peer: peer, tid: tid}
	s.timer.sidr = s
	m.sidrs[s.id] = s
	return s
}

func (m *Machine) dropSIDR(s *sidr) {
	m.timers.stop(&s.timer)
	if s.waits != nil {
		s.waits.pending--
		s.waits = nil
	}
	delete(m.sidrs, s.id)
	if s.passive {
		delete(m.asked, remoteKey{gid: s.peer.GID, id: s.remote})
	}
}

// receiveSIDRREQ: a peer asks.
func (m *Machine) receiveSIDRREQ(now clock.Time, from Peer, h *mad.Header, b []byte) {
	var req mad.SIDRREQ
	req.Decode(b[mad.HeaderLen:])
	k := remoteKey{gid: from.GID, id: mad.CommID(req.RequestID)}
	if s := m.asked[k]; s != nil {
		m.count.Duplicates++
		if s.done {
			m.count.Resent++
			m.out.push(outgoing{to: s.peer, b: s.last})
		}
		return
	}
	l := m.listeners[req.Service]
	if l == nil {
		m.count.Refused++
		m.answer(from, h.TID, &mad.SIDRREP{RequestID: req.RequestID, Status: mad.SIDRUnsupported, Service: req.Service})
		return
	}
	if l.pending >= m.cfg.MaxPending || len(m.sidrs) >= m.cfg.MaxConns {
		m.count.Refused++
		return // it asks again
	}
	s := m.newSIDR(from, h.TID)
	s.passive, s.remote, s.service = true, mad.CommID(req.RequestID), req.Service
	m.asked[k] = s
	l.pending++
	s.waits = l
	m.timers.set(&s.timer, now.Add(m.wait(serviceTimeoutExp)))
	m.event(EventSIDRRequest, s.id, s.peer, b)
}

// ReplySIDR answers a request. The machine fills RequestID and Service. The ID
// is gone for the caller.
func (m *Machine) ReplySIDR(now clock.Time, id ID, rep *mad.SIDRREP) error {
	s := m.sidrs[id]
	if s == nil || !s.passive || s.done {
		return fmt.Errorf("reply: request 0x%08x is gone: %w", uint32(id), ErrState)
	}
	if len(rep.Private) > mad.SIDRREPPrivateLen {
		return fmt.Errorf("reply: private data of %d bytes, can be up to %d: %w", len(rep.Private), mad.SIDRREPPrivateLen, ErrInvalid)
	}
	r := *rep
	r.RequestID, r.Service = uint32(s.remote), s.service
	mad.Put(s.last[:], s.tid, &r)
	m.out.push(outgoing{to: s.peer, b: s.last})
	if s.waits != nil {
		s.waits.pending--
		s.waits = nil
	}
	s.done = true
	m.timers.set(&s.timer, now.Add(m.cfg.Timewait))
	return nil
}

// receiveSIDRREP: the answer.
func (m *Machine) receiveSIDRREP(from Peer, b []byte) {
	var rep mad.SIDRREP
	rep.Decode(b[mad.HeaderLen:])
	s := m.sidrs[ID(rep.RequestID)]
	if s == nil || s.passive || !s.peer.same(&from) {
		m.count.Ignored++
		return
	}
	m.dropSIDR(s)
	m.event(EventSIDRReply, s.id, s.peer, b)
}

// AbandonSIDR forgets a request.
func (m *Machine) AbandonSIDR(id ID) {
	if s := m.sidrs[id]; s != nil && !s.passive {
		m.dropSIDR(s)
	}
}

func (m *Machine) sidrTimeout(now clock.Time, s *sidr) {
	switch {
	case s.passive:
		// Answered long ago; or nobody has, and the peer has given up.
		m.dropSIDR(s)
		if !s.done {
			m.event(EventUnreachable, s.id, s.peer, nil)
		}
	case s.tries > 0:
		s.tries--
		m.count.Resent++
		m.out.push(outgoing{to: s.peer, b: s.last})
		m.timers.set(&s.timer, now.Add(s.timeout))
	default:
		m.dropSIDR(s)
		m.event(EventUnreachable, s.id, s.peer, nil)
	}
}
