package verbs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// channelEnds are connected in memory; b receives into a queue with a channel.
func channelEnds(t *testing.T) (p ends, ch *verbs.CompChannel, cq *verbs.CQ) {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	p = ends{newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x}), ib.RC), newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y}), ib.RC)}
	ch = p.b.dev.CreateCompChannel()
	cq, err := p.b.dev.CreateCQ(verbs.CQConfig{Depth: 16, Channel: ch})
	must(t, err)
	must(t, p.b.qp.Close())
	p.b.qp, err = p.b.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.b.cq, RecvCQ: cq})
	must(t, err)
	join(t, p.a, p.b)
	return p, ch, cq
}

func sendSolicited(t *testing.T, e *end, solicited bool) {
	t.Helper()
	wr := ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: e.mr.SGE(0, 8)}
	if solicited {
		wr.Flags |= ib.Solicited
	}
	must(t, e.qp.PostSend(wr))
	if wc := e.await(t); wc.Status != ib.Success {
		t.Fatal(wc)
	}
}

// An armed queue gives one event for the next completion, and none for those
// that are there already.
func TestEventsAreOneShot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ch, cq := channelEnds(t)
		for range 16 {
			p.b.recv(t, 0, 64)
		}
		noEvent := func(why string) {
			t.Helper()
			synctest.Wait()
			if c, ok := ch.TryNext(); ok {
				t.Errorf("%s: an event of CQ %d", why, c.Number())
			}
		}
		oneEvent := func(why string) {
			t.Helper()
			c, err := ch.Wait(context.Background())
			if err != nil || c != cq {
				t.Errorf("%s: %v, %v", why, c, err)
			}
			noEvent(why + ", once more")
		}
		sendSolicited(t, p.a, true)
		noEvent("not armed")
		must(t, cq.Arm(false))
		noEvent("a completion was there before arming")
		sendSolicited(t, p.a, false)
		sendSolicited(t, p.a, false)
		oneEvent("armed, two completions")
		must(t, cq.Arm(true))
		sendSolicited(t, p.a, false)
		noEvent("armed for solicited, unsolicited completion")
		sendSolicited(t, p.a, true)
		oneEvent("armed for solicited, solicited completion")
		must(t, cq.Arm(true))
		must(t, cq.Arm(false))
		must(t, cq.Arm(true))
		sendSolicited(t, p.a, false)
		oneEvent("armed for both")
		must(t, cq.Arm(true))
		must(t, p.b.qp.ToError())
		oneEvent("armed for solicited, completion in error")
		var wcs [16]ib.WC
		if n := cq.Poll(wcs[:]); n != 16 {
			t.Errorf("%d completions, want 6 receives and 10 flushed", n)
		}

		must(t, cq.Arm(false))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := ch.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait without event: %v", err)
		}
		if err := p.b.cq.Arm(false); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("arm without channel: %v", err)
		}
		must(t, ch.Close())
		if _, err := ch.Wait(context.Background()); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("wait on a closed channel: %v", err)
		}
	})
}

// The channel's C works in a select, and the engine serves a program that only
// sits there.
func TestEventsBySelect(t *testing.T) {
	p, ch, cq := channelEnds(t)
	p.b.recv(t, 0, 64)
	must(t, cq.Arm(false))
	sendSolicited(t, p.a, false)
	<-ch.C()
	if c, ok := ch.TryNext(); !ok || c != cq {
		t.Errorf("%v, %v", c, ok)
	}
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPairMem(t, ib.RC, nil)
		var wcs [1]ib.WC
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if n, err := p.a.cq.Wait(ctx, wcs[:]); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %d, %v", n, err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if n, err := p.a.cq.Wait(ctx, wcs[:]); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("cancel: %d, %v", n, err)
		}
		if _, err := p.a.cq.Wait(t.Context(), nil); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("no room: %v", err)
		}
		other, err := p.a.dev.CreateCQ(verbs.CQConfig{})
		must(t, err)
		time.AfterFunc(time.Second, func() { must(t, other.Close()) })
		if _, err := other.Wait(t.Context(), wcs[:]); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("CQ closed: %v", err)
		}
		time.AfterFunc(time.Second, func() { must(t, p.a.dev.Close()) })
		if _, err := p.a.cq.Wait(t.Context(), wcs[:]); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("device closed: %v", err)
		}
	})
}

// Any number of goroutines wait; each completion goes to one of them, and none
// sleeps over one.
func TestManyWaiters(t *testing.T) {
	p := newPairUDP(t, ib.RC)
	const waiters, messages = 8, 2000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got atomic.Int64
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			for {
				var wcs [3]ib.WC
				n, err := p.b.cq.Wait(ctx, wcs[:])
				if err != nil {
					return
				}
				for range n {
					p.b.recv(t, 0, 64)
				}
				if got.Add(int64(n)) == messages {
					cancel()
				}
			}
		})
	}
	for range 256 {
		p.b.recv(t, 0, 64)
	}
	for range messages {
		p.a.send(t, 0, 64)
		if wc := p.a.await(t); wc.Status != ib.Success {
			t.Fatal(wc)
		}
	}
	wg.Wait()
	if got.Load() != messages {
		t.Errorf("%d of %d", got.Load(), messages)
	}
}

// A full queue loses completions, says so to everybody, and never hangs.
func TestOverrun(t *testing.T) {
	p := newPairMem(t, ib.RC, nil)
	small, err := p.a.dev.CreateCQ(verbs.CQConfig{Depth: 4})
	must(t, err)
	must(t, p.a.qp.Close())
	p.a.qp, err = p.a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: small, RecvCQ: p.a.cq})
	must(t, err)
	must(t, p.b.qp.ToReset())
	join(t, p.a, p.b)
	for range 10 {
		must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 8), Remote: p.a.peer.At(0)}))
	}
	ev, err := p.a.dev.NextEvent(t.Context())
	if err != nil || ev.Type != ib.EventCQErr || ev.Element != small.Number() {
		t.Errorf("event %+v, %v", ev, err)
	}
	var wcs [16]ib.WC
	for n := 0; n < 4; {
		k, err := small.Wait(t.Context(), wcs[:])
		must(t, err)
		n += k
	}
	if _, err := small.Wait(t.Context(), wcs[:]); !errors.Is(err, verbs.ErrOverrun) {
		t.Errorf("wait after the overrun: %v", err)
	}
	if !small.Overrun() || p.a.qp.State() != ib.Error {
		t.Errorf("overrun %v, QP in %v", small.Overrun(), p.a.qp.State())
	}
}
