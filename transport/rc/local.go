package rc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// Binds and invalidations take no PSN. They are executed when the requester
// reaches them, before anything that was posted later leaves, once: going back
// does not do them again. Their completions wait for those of what was posted
// before. What keeps the rest simple:
//
//	cur is never at one that has been executed
//	neither is the head of the send queue

// executeLocal executes the request at cur. It returns false if that has failed.
func (e *Engine) executeLocal(w *transport.SendWQE) bool {
	q := &e.req
	if f := e.cfg.Local(w); f != mem.FaultNone {
		w.Status = ib.MWBindErr
		if q.cur == e.cfg.Send.Head() {
			e.fail(ib.MWBindErr, uint32(f))
		}
		return false
	}
	w.Started = true
	w.FirstPSN, w.LastPSN = q.psn, q.psn.Add(-1)
	q.cur++
	e.completeLocal()
	return true
}

// skipLocal moves cur past what has been executed.
func (e *Engine) skipLocal() {
	s := e.cfg.Send
	for e.req.cur != s.Tail() {
		if w := s.At(e.req.cur); !w.Op.IsLocal() || !w.Started {
			return
		}
		e.req.cur++
	}
}

// completeLocal retires what has been executed and has come to the head.
func (e *Engine) completeLocal() {
	s := e.cfg.Send
	for s.Head() != s.Tail() {
		w := s.At(s.Head())
		if !w.Op.IsLocal() || !w.Started {
			return
		}
		e.complete(w)
	}
}

// reach executes binds and invalidations until a packet is next, and returns the
// request that it belongs to, or nil.
func (e *Engine) reach(now clock.Time) *transport.SendWQE {
	for {
		w := e.mayRequest()
		if w == nil || !w.Op.IsLocal() {
			return w
		}
		if e.req.rnrWait && now < e.req.rnrUntil {
			return nil
		}
		if !e.executeLocal(w) {
			return nil
		}
	}
}
