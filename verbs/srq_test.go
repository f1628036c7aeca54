package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// Two connections share a queue that is refilled from its limit event and
// resized while messages arrive; every message arrives once and whole.
func TestSRQIsRefilledAndResizedUnderTraffic(t *testing.T) {
	const messages, size, slots = 200, 3000, 32
	x, y := pair.New(pair.Config{})
	a, b := open(t, verbs.Config{Addr: addrA, Link: x}), open(t, verbs.Config{Addr: addrB, Link: y})
	pd := b.AllocPD()
	mr, err := pd.RegisterMR(make([]byte, slots*size), ib.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	srq, err := pd.CreateSRQ(verbs.SRQConfig{MaxWR: slots})
	if err != nil {
		t.Fatal(err)
	}
	post := func(slot uint64) {
		if err := srq.PostRecv(ib.RecvWR{ID: slot, SGL: mr.SGE(int(slot)*size, size)}); err != nil {
			t.Error(err)
		}
	}
	for i := range uint64(slots) {
		post(i)
	}
	if err := srq.SetLimit(slots / 2); err != nil {
		t.Fatal(err)
	}
	cq, err := b.CreateCQ(verbs.CQConfig{Depth: 256})
	if err != nil {
		t.Fatal(err)
	}
	var want []byte // what both send
	var senders sync.WaitGroup
	for k := range 2 {
		from := newEnd(t, a, ib.RC)
		qp, err := b.AllocPD().CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		if qp.SRQ() != srq || !errors.Is(qp.PostRecv(ib.RecvWR{}), verbs.ErrInvalid) {
			t.Error("the queue pair has a receive queue of its own")
		}
		join(t, from, &end{dev: b, qp: qp, cq: cq})
		fill(from.mr.Bytes()[:size], 1)
		want = from.mr.Bytes()[:size]
		senders.Go(func() {
			for range messages {
				from.send(t, 0, size)
				if wc := from.await(t); wc.Status != ib.Success {
					t.Errorf("sender %d: %v", k, wc.Status)
					return
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	limits := 0
	var events sync.WaitGroup
	events.Go(func() {
		for {
			ev, err := b.NextEvent(ctx)
			if err != nil {
				return
			}
			if ev.Type == ib.EventSRQLimitReached && ev.Element == srq.Number() {
				limits++
			}
		}
	})
	var wcs [8]ib.WC
	for done := 0; done < 2*messages; {
		n, err := cq.Wait(ctx, wcs[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, wc := range wcs[:n] {
			if wc.Status != ib.Success || wc.Bytes != size {
				t.Fatalf("%+v", wc)
			}
			at := int(wc.ID) * size
			if !bytes.Equal(mr.Bytes()[at:at+size], want) {
				t.Fatalf("slot %d holds something else", wc.ID)
			}
			clear(mr.Bytes()[at : at+size])
			post(wc.ID)
			done++
		}
		if err := srq.Resize(slots + done%7); err != nil {
			t.Fatal(err)
		}
	}
	senders.Wait()
	cancel()
	events.Wait()
	if q := srq.Query(); q.Limit != slots/2 && limits == 0 || q.MaxSGE != 1 {
		t.Errorf("%+v after %d events", q, limits)
	}
	if err := srq.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Error(err)
	}
}

func TestClosedSRQ(t *testing.T) {
	x, _ := pair.New(pair.Config{})
	d := open(t, verbs.Config{Addr: addrA, Link: x})
	pd := d.AllocPD()
	if _, err := pd.CreateSRQ(verbs.SRQConfig{MaxWR: 10, Limit: 11}); !errors.Is(err, verbs.ErrInvalid) {
		t.Error(err)
	}
	s, err := pd.CreateSRQ(verbs.SRQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if q := s.Query(); q.MaxWR != 512 || q.MaxSGE != 1 || q.Limit != 0 {
		t.Errorf("%+v", q)
	}
	if err := pd.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, err := range []error{s.PostRecv(ib.RecvWR{}), s.SetLimit(1), s.Resize(9)} {
		if !errors.Is(err, verbs.ErrClosed) {
			t.Error(err)
		}
	}
	if s.Close() != nil || s.Query() != (ib.SRQAttr{}) || pd.Close() != nil {
		t.Error("closed twice")
	}
}
