package unacked

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// Queues are the two queues of a queue pair and its state. The zero Queues
// with Cfg set is in state Reset.
type Queues struct {
	Cfg   transport.Config
	state ib.QPState

	// left says that the head of the send queue has left as a whole, at leftAt,
	// and waits for Settle.
	left   bool
	leftAt clock.Time

	notify  bool // raise SQ_DRAINED
	drained bool // it has been raised, or was not asked for
}

// New returns the queues of cfg, whose Send, Recv, Sink and Mem are required.
func New(cfg transport.Config) Queues {
	if cfg.Counters == nil {
		cfg.Counters = new(transport.Counters)
	}
	if cfg.Scratch == nil {
		cfg.Scratch = new(transport.Scratch)
	}
	return Queues{Cfg: cfg}
}

// State returns the present state.
func (q *Queues) State() ib.QPState { return q.state }

// Enter goes to a state on request. Error flushes both queues, Reset empties
// them without completions, SQD raises SQ_DRAINED when nothing is under way if
// notify says so.
func (q *Queues) Enter(to ib.QPState, notify bool) {
	q.Settle()
	was := q.state
	q.state = to
	switch to {
	case ib.Reset:
		q.empty()
	case ib.Error:
		q.flushSend()
		q.flushRecv()
		if q.Cfg.Recv.Shared() && was != ib.Error {
			// Nothing of the shared queue is this queue pair's any more.
			q.Cfg.Sink.Event(ib.EventQPLastWQEReached)
		}
	case ib.SQD:
		q.notify, q.drained = notify, false
		q.checkDrained()
	case ib.Init, ib.RTR, ib.RTS, ib.SQE:
	}
}

// Post takes notice of what was posted: where nothing is served, it is flushed.
func (q *Queues) Post() {
	q.Settle()
	switch q.state {
	case ib.Error:
		q.flushSend()
		q.flushRecv()
	case ib.SQE:
		q.flushSend()
	case ib.Reset, ib.Init, ib.RTR, ib.RTS, ib.SQD:
	}
}

// Sendable returns the work request that the next packet belongs to, or nil. In
// SQD that is only one that has begun (IBA vol.1 10.3.1.5). Call Settle first.
func (q *Queues) Sendable() *transport.SendWQE {
	s := q.Cfg.Send
	pos := s.Head()
	if q.left {
		pos++
	}
	if q.state != ib.RTS && q.state != ib.SQD || pos == s.Tail() {
		return nil
	}
	w := s.At(pos)
	if q.state == ib.SQD && !w.Started {
		return nil
	}
	return w
}

// Local executes a bind or an invalidation at the head of the send queue, which
// Sendable has returned, and completes it.
func (q *Queues) Local(w *transport.SendWQE) {
	if f := q.Cfg.Local(w); f != mem.FaultNone {
		q.Fail(ib.MWBindErr, uint32(f))
		return
	}
	w.Started = true
	q.succeed(w)
}

// Left says that the last packet of the head of the send queue leaves now.
func (q *Queues) Left(now clock.Time) { q.left, q.leftAt = true, now }

// Settle completes the work request whose last packet has left, if there is
// one. Engines call it first in every call.
func (q *Queues) Settle() {
	if !q.left {
		return
	}
	q.left = false
	w := q.Cfg.Send.At(q.Cfg.Send.Head())
	if w.Op.IsSend() {
		q.Cfg.Count(transport.RDMASends)
	}
	q.succeed(w)
}

// succeed retires the head w of the send queue.
func (q *Queues) succeed(w *transport.SendWQE) {
	if q.Cfg.SigAll || w.Flags&ib.Signaled != 0 {
		q.sendDone(w, ib.Success, 0)
	} else {
		q.Cfg.Send.Retire()
	}
	q.checkDrained()
}

// Deadline returns the instant of the next Settle, or Never.
func (q *Queues) Deadline() clock.Time {
	if q.left {
		return q.leftAt
	}
	return clock.Never
}

// SendAt returns 0 if a packet may leave, else Never.
func (q *Queues) SendAt() clock.Time {
	if q.Sendable() != nil {
		return 0
	}
	return clock.Never
}

// Why says what the next packet waits for. See [transport.Engine].
func (q *Queues) Why() transport.Wait {
	s := q.Cfg.Send
	switch {
	case q.Sendable() != nil:
		return transport.WaitNothing
	case q.left: // its completion waits for the next call
		return transport.WaitAck
	case s.Head() != s.Tail():
		return transport.WaitState
	}
	return transport.WaitIdle
}

// Fail completes the head of the send queue with an error, flushes what follows
// and takes the queue pair to SQE (IBA vol.1 10.3.1.6).
func (q *Queues) Fail(st ib.WCStatus, vendorErr uint32) {
	q.Cfg.CountFailure(st)
	q.state = ib.SQE
	q.sendDone(q.Cfg.Send.At(q.Cfg.Send.Head()), st, vendorErr)
	q.flushSend()
}

// Receives reports whether the state takes packets.
func (q *Queues) Receives() bool {
	switch q.state {
	case ib.RTR, ib.RTS, ib.SQD, ib.SQE:
		return true
	case ib.Reset, ib.Init, ib.Error:
	}
	return false
}

// Received completes the head of the receive queue. wc need not have ID.
func (q *Queues) Received(wc ib.WC, solicited bool) {
	w := q.Cfg.Recv.Peek()
	q.Cfg.Count(transport.RDMARecvs)
	out := &q.Cfg.Scratch.WC
	*out = wc
	out.ID, out.QPN = w.ID, q.Cfg.QPN
	q.Cfg.Recv.Pop()
	q.Cfg.Sink.RecvDone(out, solicited)
}

// FailReceive completes the head of the receive queue, whose memory cannot be
// written, with an error and takes the queue pair to Error: the fault is the
// program's own (IBA vol.1 9.9.3, class A).
func (q *Queues) FailReceive(f mem.Fault) {
	q.recvDone(ib.LocProtErr, uint32(f))
	q.Enter(ib.Error, false)
}

// Room returns the bytes that a list holds.
func Room(sgl []ib.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Length)
	}
	return n
}

func (q *Queues) checkDrained() {
	if q.state != ib.SQD || q.drained {
		return
	}
	if s := q.Cfg.Send; s.Head() != s.Tail() && s.At(s.Head()).Started {
		return
	}
	q.drained = true
	if q.notify {
		q.Cfg.Sink.Event(ib.EventSQDrained)
	}
}

func (q *Queues) empty() {
	for s := q.Cfg.Send; s.Head() != s.Tail(); {
		s.Retire()
	}
	q.Cfg.Recv.Empty()
	*q = Queues{Cfg: q.Cfg}
}

// flushSend completes what is posted as it begins. What is posted meanwhile
// comes with its own Post: an application that posts as fast as this flushes
// does not keep it here.
func (q *Queues) flushSend() {
	s := q.Cfg.Send
	for tail := s.Tail(); s.Head() != tail; {
		q.sendDone(s.At(s.Head()), ib.WRFlushErr, 0)
	}
}

func (q *Queues) flushRecv() {
	for n := q.Cfg.Recv.Posted(); n > 0; n-- {
		q.recvDone(ib.WRFlushErr, 0)
	}
}

// sendDone completes the head w of the send queue. The slot is free before the
// application can see the completion, so that it may post at once.
func (q *Queues) sendDone(w *transport.SendWQE, st ib.WCStatus, vendorErr uint32) {
	op := ib.WCSend
	switch {
	case w.Op.IsWrite():
		op = ib.WCWrite
	case w.Op == ib.BindMW:
		op = ib.WCBindMW
	case w.Op == ib.LocalInv:
		op = ib.WCLocalInv
	}
	wc := &q.Cfg.Scratch.WC
	*wc = ib.WC{ID: w.ID, Op: op, Status: st, QPN: q.Cfg.QPN, VendorErr: vendorErr}
	q.Cfg.Send.Retire()
	q.Cfg.Sink.SendDone(wc)
}

// recvDone does so for the receive queue.
func (q *Queues) recvDone(st ib.WCStatus, vendorErr uint32) {
	wc := &q.Cfg.Scratch.WC
	*wc = ib.WC{ID: q.Cfg.Recv.Peek().ID, Op: ib.WCRecv, Status: st, QPN: q.Cfg.QPN, VendorErr: vendorErr}
	q.Cfg.Recv.Pop()
	q.Cfg.Sink.RecvDone(wc, true)
}
