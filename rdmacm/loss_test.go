package rdmacm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/rdmacm"
)

// Connections come to be and end under loss and duplication.
func TestConnectionsUnderLoss(t *testing.T) {
	t.Parallel()
	a, b := newSides(t, faulty(t, "drop 25% qp=0x1 in; drop 25% qp=0x1 out; dup 20% qp=0x1 in"))
	// Short times, so that the test is quick: 17 ms.
	opt := rdmacm.Options{TimeoutExp: 12}
	l := b.listen(rdmacm.TCP, 7)
	const n = 10
	errs := make(chan error, 1)
	go func() {
		var all error
		for range n {
			req, err := l.Next(within(t))
			if err != nil {
				errs <- err
				return
			}
			if _, err = req.Accept(within(t), b.qp(ib.RC), opt); err != nil {
				all = errors.Join(all, err)
			}
		}
		errs <- all
	}()
	var conns []*rdmacm.Conn
	for range n {
		c, err := a.m.Dial(within(t), a.route(b, 7), a.qp(ib.RC), opt)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	for _, c := range conns {
		if err := c.Disconnect(within(t), nil); err != nil {
			t.Error(err)
		}
	}
	if c := a.m.Counters(); c.Resent == 0 {
		t.Errorf("nothing was lost: %+v", c)
	}
}

// faulty is what newSides puts around the second side's link.
func faulty(t *testing.T, text string) func(link.Link) link.Link {
	return func(l link.Link) link.Link {
		rules, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		f, err := fault.New(l, fault.Config{Rules: rules, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// The RTU is lost, and the peer's first message says the same (IBA vol.1
// 12.9.7.2): the connection is established, and nothing is sent again. Times are
// so long that nothing else could do it.
func TestFirstMessageStandsForALostRTU(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		t.Run(typ.String(), func(t *testing.T) {
			a, b := newSides(t, faulty(t, "drop 2nd qp=0x1 in")) // the 1st is the REQ
			l := b.listen(rdmacm.TCP, 7)
			q := b.qp(typ)
			if err := errors.Join(q.ToInit(0), q.PostRecv(ib.RecvWR{SGL: b.mr.SGE(0, 64)})); err != nil {
				t.Fatal(err)
			}
			got := make(chan accepted, 1)
			go func() {
				req, err := l.Next(within(t))
				if err != nil {
					got <- accepted{err: err}
					return
				}
				c, err := req.Accept(within(t), q, rdmacm.Options{})
				got <- accepted{req, c, err}
			}()
			x, err := a.m.Dial(within(t), a.route(b, 7), a.qp(typ), rdmacm.Options{TimeoutExp: 31})
			if err != nil {
				t.Fatal(err)
			}
			if err := x.QP().PostSend(ib.SendWR{Op: ib.Send, SGL: a.mr.SGE(0, 64)}); err != nil {
				t.Fatal(err)
			}
			acc := <-got
			if acc.err != nil {
				t.Fatal(acc.err)
			}
			if e, ok := nextEvent(t, acc.conn).(rdmacm.Established); !ok || e.Private != nil {
				t.Errorf("%T %+v: there was an RTU", e, e)
			}
			if s := q.State(); s != ib.RTS {
				t.Errorf("QP in %v", s)
			}
			if c := b.m.Counters(); c.Resent != 0 || c.Received != 1 {
				t.Errorf("%+v", c)
			}
			// The event was the manager's: the program's queue has none.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if ev, err := b.dev.NextEvent(ctx); err == nil {
				t.Errorf("%+v", ev)
			}
			var wcs [1]ib.WC
			if _, err := b.cq.Wait(within(t), wcs[:]); err != nil || wcs[0].Status != ib.Success {
				t.Errorf("%+v, %v", wcs[0], err)
			}
			if err := x.Disconnect(within(t), nil); err != nil {
				t.Error(err)
			}
		})
	}
}
