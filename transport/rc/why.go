package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// Why says what the next packet waits for. See [transport.Engine].
func (e *Engine) Why() transport.Wait {
	if e.rsp.answer() != pickNone {
		return transport.WaitNothing
	}
	q, s := &e.req, e.cfg.Send
	switch {
	case e.state != ib.RTS && e.state != ib.SQD:
		if s.Head() != s.Tail() {
			return transport.WaitState
		}
		return transport.WaitIdle
	case q.cur == s.Tail():
		if s.Head() != s.Tail() {
			return transport.WaitAck
		}
		return transport.WaitIdle
	}
	w := s.At(q.cur)
	if held := e.held(w); held != transport.WaitNothing {
		return held
	}
	if q.rnrWait {
		return transport.WaitRNR
	}
	if g := e.segment(w, q.psn); !e.cfg.Window.Fits(e.wants(&g)) {
		return transport.WaitWindow
	}
	return transport.WaitNothing
}

// Urgent reports whether an ACK or NAK may leave, and sees to it that it is the
// next packet. See [transport.Engine].
func (e *Engine) Urgent() bool {
	k := e.rsp.answer()
	if k != pickAck && k != pickNAK {
		return false
	}
	e.late = true // no request before it
	return true
}
