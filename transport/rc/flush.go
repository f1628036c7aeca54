package rc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// keep says which answers still leave after the queue pair went to Error.
type keep uint8

const (
	// answersNone: what was received completely is still acknowledged.
	answersNone keep = iota
	// answersDue: READ responses that precede the NAK, and the NAK.
	answersDue
)

// fail completes the head WQE with an error and takes the queue pair to Error.
func (e *Engine) fail(st ib.WCStatus, vendorErr uint32) {
	w := e.cfg.Send.At(e.cfg.Send.Head())
	e.cfg.CountFailure(st)
	e.sendError(w, st, vendorErr)
	e.enterError(answersNone)
}

func (e *Engine) sendError(w *transport.SendWQE, st ib.WCStatus, vendorErr uint32) {
	wc := &e.cfg.Scratch.WC
	*wc = ib.WC{ID: w.ID, Op: sendOpcode(w.Op), Status: st, QPN: e.cfg.QPN, VendorErr: vendorErr}
	e.cfg.Send.Retire()
	e.cfg.Sink.SendDone(wc)
}

// receiveError completes the head receive with an error.
func (e *Engine) receiveError(st ib.WCStatus, vendorErr uint32) {
	w := e.cfg.Recv.Peek()
	wc := &e.cfg.Scratch.WC
	*wc = ib.WC{ID: w.ID, Op: ib.WCRecv, Status: st, QPN: e.cfg.QPN, VendorErr: vendorErr}
	e.cfg.Recv.Pop()
	e.cfg.Sink.RecvDone(wc, true)
}

// enterError takes the queue pair to Error and flushes both queues
// (IBA vol.1 10.3.1.7).
func (e *Engine) enterError(k keep) {
	if e.state == ib.Error {
		return
	}
	e.state = ib.Error
	e.stop()
	e.rsp.stop(k)
	e.flush()
	if e.cfg.Recv.Shared() {
		// Nothing of the shared queue is this queue pair's any more.
		e.cfg.Sink.Event(ib.EventQPLastWQEReached)
	}
}

// stop ends everything that the requester has under way.
func (e *Engine) stop() {
	q := &e.req
	e.cfg.Window.Forget(q.flight)
	q.flight = 0
	q.reads.clear()
	q.timer = clock.Never
	q.rnrWait = false
	e.pick.kind = pickNone
}

// flush completes all that is posted as it begins with WR_FLUSH_ERR, in order.
// What is posted meanwhile comes with its own Post: an application that posts
// as fast as this flushes does not keep it here.
func (e *Engine) flush() {
	s := e.cfg.Send
	for tail := s.Tail(); s.Head() != tail; {
		e.sendError(s.At(s.Head()), ib.WRFlushErr, 0)
	}
	e.req.cur = s.Head()
	for n := e.cfg.Recv.Posted(); n > 0; n-- {
		e.receiveError(ib.WRFlushErr, 0)
	}
}

// reset empties both queues without completions and forgets everything but
// what New was given.
func (e *Engine) reset() {
	e.stop()
	for s := e.cfg.Send; s.Head() != s.Tail(); {
		s.Retire()
	}
	e.cfg.Recv.Empty()
	*e = Engine{cfg: e.cfg}
	e.req.timer = clock.Never
}

// checkDrained raises SQ_DRAINED once when nothing is under way in SQD.
func (e *Engine) checkDrained() {
	q := &e.req
	if e.state != ib.SQD || q.drained || q.una != q.next {
		return
	}
	if s := e.cfg.Send; s.Head() != s.Tail() && s.At(s.Head()).Started {
		return
	}
	q.drained = true
	if e.attr.SQDAsyncNotify {
		e.cfg.Sink.Event(ib.EventSQDrained)
	}
}
