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
	s.sendCQ.add(s.a, wc, false)
}

// RecvDone implements transport.Sink.
func (s *sink) RecvDone(wc *ib.WC, solicited bool) {
	wc.QPN = s.qpn
	s.recvCQ.add(s.a, wc, solicited)
}

// Event implements transport.Sink.
func (s *sink) Event(t ib.EventType) {
	s.a.events.push(ib.Event{Type: t, Element: uint32(s.qpn)})
}
