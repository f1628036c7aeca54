package rnic

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// sink is the queue pair as its engine sees it.
type sink QP

// Drop implements transport.Sink.
func (s *sink) Drop(d transport.Drop) {
	if d < transport.NumDrops {
		(*QP)(s).dropped(d)
	}
}

// SendDone implements transport.Sink.
func (s *sink) SendDone(wc *ib.WC) {
	wc.QPN = s.qpn
	if wc.Status != ib.Success {
		(*QP)(s).sendFailed(wc.Status)
	}
	s.sendCQ.add(s.a, wc, false)
}

// RecvDone implements transport.Sink.
func (s *sink) RecvDone(wc *ib.WC, solicited bool) {
	wc.QPN = s.qpn
	if wc.Status != ib.Success {
		(*QP)(s).recvFailed(wc.Status)
	}
	s.recvCQ.add(s.a, wc, solicited)
}

// Event implements transport.Sink.
func (s *sink) Event(t ib.EventType) {
	s.a.events.push(ib.Event{Type: t, Element: uint32(s.qpn)})
}

// sendFailed counts a request that completed with an error.
func (q *QP) sendFailed(st ib.WCStatus) {
	q.counted(transport.ReqCQEErr)
	switch st {
	case ib.WRFlushErr:
		q.counted(transport.ReqCQEFlush)
	case ib.RemAccessErr:
		q.counted(transport.RemoteAccessErr)
	case ib.RemInvReqErr:
		q.counted(transport.RemoteInvalidReqErr)
	case ib.RemOpErr:
		q.counted(transport.RemoteOpErr)
	default:
	}
}

// recvFailed counts a receive that completed with an error.
func (q *QP) recvFailed(st ib.WCStatus) {
	q.counted(transport.RespCQEErr)
	switch st {
	case ib.WRFlushErr:
		q.counted(transport.RespCQEFlush)
	case ib.LocLenErr:
		q.counted(transport.LocalLengthErr)
	default:
	}
}

// counted counts an event of q that no engine counts, for q and for the adapter.
func (q *QP) counted(e transport.Event) {
	q.a.tcount.Events[e]++
	q.own().engine.Events[e]++
}
