package rnic

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

type qpSched struct{}
type scheduler struct{}
type pacer struct{}

func (s *scheduler) any() bool { return false }

func (a *Adapter) answerBells(now clock.Time) {
	for q := a.bell.take(); q != nil; {
		rest := answer(q)
		q.eng.Post(now)
		a.look(now, q)
		q = rest
	}
}

func (a *Adapter) fireTimers(now clock.Time) {}

// look takes notice of what a call has changed in a queue pair.
func (a *Adapter) look(now clock.Time, q *QP) {
	if s := q.eng.State(); s != q.state.load() {
		q.state.store(s)
	}
}

// sink is the queue pair as its engine sees it.
type sink QP

func (s *sink) SendDone(wc *ib.WC) { wc.QPN = s.qpn; s.sendCQ.add(wc, false) }

func (s *sink) RecvDone(wc *ib.WC, solicited bool) { wc.QPN = s.qpn; s.recvCQ.add(wc, solicited) }

func (s *sink) Event(t ib.EventType) {
	s.a.events.push(ib.Event{Type: t, Element: uint32(s.qpn)})
}
