package unacked

import (
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// poster is an application that posts again from within every completion, as
// one that polls in another goroutine may.
type poster struct {
	t    *testing.T
	send *transport.SendQueue
	recv *transport.RecvQueue
	left int // posts to go
	done []ib.WC
}

func (p *poster) SendDone(wc *ib.WC) {
	p.done = append(p.done, *wc)
	if p.send.Free() == 0 {
		p.t.Errorf("%v %v of request %d: its slot is not free", wc.Op, wc.Status, wc.ID)
	} else if p.left > 0 {
		p.left--
		p.postSend(wc.ID + 100)
	}
}

func (p *poster) RecvDone(wc *ib.WC, _ bool) {
	p.done = append(p.done, *wc)
	if p.recv.Free() == 0 {
		p.t.Errorf("%v %v of receive %d: its slot is not free", wc.Op, wc.Status, wc.ID)
	} else if p.left > 0 {
		p.left--
		p.postRecv(wc.ID + 100)
	}
}

func (p *poster) Event(ib.EventType)  {}
func (p *poster) Drop(transport.Drop) {}

func (p *poster) postSend(id uint64) {
	w := p.send.Slot(0)
	w.ID, w.Op, w.Flags = id, ib.Send, ib.Signaled
	p.send.Publish(1)
}

func (p *poster) postRecv(id uint64) {
	p.recv.Slot(0).ID = id
	p.recv.Publish(1)
}

// A slot is free before its completion can be seen, however it comes to it:
// with queues of one slot, the application posts the next request at once.
func TestSlotIsFreeWhenItsCompletionIsSeen(t *testing.T) {
	for name, complete := range map[string]func(q *Queues){
		"sent":              func(q *Queues) { q.Left(0); q.Settle() },
		"failed":            func(q *Queues) { q.Fail(ib.LocProtErr, 0) },
		"received":          func(q *Queues) { q.Received(ib.WC{Op: ib.WCRecv}, false) },
		"receive failed":    func(q *Queues) { q.FailReceive(mem.FaultKey) },
		"flushed":           func(q *Queues) { q.Enter(ib.Error, false) },
		"flushed by a post": func(q *Queues) { q.state = ib.Error; q.Post() },
		"flushed in SQE":    func(q *Queues) { q.state = ib.SQE; q.Post() },
	} {
		t.Run(name, func(t *testing.T) {
			p := &poster{t: t, send: transport.NewSendQueue(1, 1, 0), recv: transport.NewRecvQueue(1, 1), left: 1000}
			q := New(transport.Config{QPN: 5, Send: p.send, Recv: p.recv, Sink: p})
			q.state = ib.RTS
			p.postSend(1)
			p.postRecv(2)
			complete(&q)
			if n := len(p.done); n == 0 || n > 3 {
				t.Fatalf("%d completions in one call", n)
			}
			seen := map[uint64]bool{}
			for _, wc := range p.done {
				if seen[wc.ID] || wc.ID == 0 || wc.QPN != 5 {
					t.Errorf("completions %+v", p.done)
				}
				seen[wc.ID] = true
			}
		})
	}
}
