package verbs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// A queue is resized up and down while one goroutine polls it, one waits for it
// and completions arrive: each comes once, to one of them.
func TestCQIsResizedWhilePolled(t *testing.T) {
	const messages, window = 100, 30
	e := newPairMem(t, ib.RC, nil)
	cq, err := e.b.dev.CreateCQ(verbs.CQConfig{Depth: window})
	must(t, err)
	must(t, e.b.qp.Close())
	e.b.qp, err = e.b.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: e.b.cq, RecvCQ: cq, Cap: ib.QPCap{MaxRecvWR: window}})
	must(t, err)
	must(t, e.a.qp.Close())
	e.a.qp, err = e.a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: e.a.cq, RecvCQ: e.a.cq})
	must(t, err)
	join(t, e.a, e.b)

	var posted, got atomic.Int64
	seen := make([]atomic.Bool, messages)
	post := func() {
		if id := posted.Add(1) - 1; id < messages {
			must(t, e.b.qp.PostRecv(ib.RecvWR{ID: uint64(id), SGL: e.b.mr.SGE(0, 8)}))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	take := func(wcs []ib.WC) {
		for _, wc := range wcs {
			if wc.Status != ib.Success || seen[wc.ID].Swap(true) {
				t.Errorf("%+v, a second time or in error", wc)
			}
			post()
			if got.Add(1) == messages {
				cancel()
			}
		}
	}
	for range window / 2 {
		post()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var wcs [4]ib.WC
		for ctx.Err() == nil {
			take(wcs[:cq.Poll(wcs[:])])
		}
	})
	wg.Go(func() {
		var wcs [4]ib.WC
		for ctx.Err() == nil {
			n, err := cq.Wait(ctx, wcs[:])
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				cancel()
			}
			take(wcs[:n])
		}
	})
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := cq.Resize(window + i%300); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range messages {
			e.a.send(t, 0, 8)
			if wc := e.a.await(t); wc.Status != ib.Success {
				t.Error(wc.Status)
				cancel()
				return
			}
		}
	})
	wg.Wait()
	if n := got.Load(); n != messages || cq.Overrun() {
		t.Errorf("%d completions of %d, overrun %v", n, messages, cq.Overrun())
	}
	if err := cq.Resize(0); !errors.Is(err, verbs.ErrInvalid) {
		t.Error(err)
	}
}

func TestResizeClosedCQ(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	cq, err := e.a.dev.CreateCQ(verbs.CQConfig{})
	must(t, err)
	must(t, cq.Resize(5))
	if cq.Depth() != 5 {
		t.Error(cq.Depth())
	}
	must(t, cq.Close())
	if err := cq.Resize(5); !errors.Is(err, verbs.ErrClosed) {
		t.Error(err)
	}
}
