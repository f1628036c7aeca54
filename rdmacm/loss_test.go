package rdmacm_test

import (
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
	a, b := newSides(t, func(l link.Link) link.Link {
		rules, err := fault.Parse("drop 25% qp=0x1 in; drop 25% qp=0x1 out; dup 20% qp=0x1 in")
		if err != nil {
			t.Fatal(err)
		}
		f, err := fault.New(l, fault.Config{Rules: rules, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
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
