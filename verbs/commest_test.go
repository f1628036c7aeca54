package verbs_test

import (
	"context"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// The first message that comes to a queue pair in RTR raises COMM_EST, once (IBA
// vol.1 11.6.3.2); one whose connection manager waits for it tells that one alone.
func TestCommunicationEstablished(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		for _, managed := range []bool{false, true} {
			t.Run(typ.String(), func(t *testing.T) { firstMessage(t, typ, managed) })
		}
	}
}

func firstMessage(t *testing.T, typ ib.QPType, managed bool) {
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x}), typ)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y}), typ)
	path := func(to *end) verbs.Path {
		return verbs.Path{DestQPN: to.qp.Num(), GID: to.dev.GIDs()[0].GID, MTU: ib.MTU1024, TimeoutExp: 20, RetryCnt: 7, RNRRetry: 7}
	}
	for _, e := range []*end{a, b} {
		must(t, e.qp.ToInit(ib.RemoteAll))
	}
	must(t, a.qp.ToRTR(path(b)))
	must(t, a.qp.ToRTS(path(b)))
	must(t, b.qp.ToRTR(path(a)))
	gsi, err := b.dev.OpenGSI()
	must(t, err)
	defer gsi.Close()
	if managed {
		gsi.WatchFirst(b.qp, true)
	}
	const messages = 3
	for range messages {
		b.recv(t, 0, 64)
		a.send(t, 0, 64)
		if wc := b.await(t); wc.Status != ib.Success {
			t.Fatal(wc.Status)
		}
	}
	var got []ib.Event
	for {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what is there, no more
		ev, err := b.dev.NextEvent(ctx)
		if err != nil {
			break
		}
		got = append(got, ev)
	}
	first, ok := gsi.First()
	if managed {
		if !ok || first != b.qp.Num() || len(got) > 0 {
			t.Errorf("the manager is told of %v, %v, the program of %v", first, ok, got)
		}
		if qpn, ok := gsi.First(); ok {
			t.Errorf("the manager is told again: %v", qpn)
		}
		select {
		case <-gsi.C():
		default:
			t.Error("the manager was not woken")
		}
		return
	}
	if ok || len(got) != 1 || got[0].Type != ib.EventCommEst || got[0].Element != uint32(b.qp.Num()) {
		t.Errorf("events %v, the manager is told: %v", got, ok)
	}
}
