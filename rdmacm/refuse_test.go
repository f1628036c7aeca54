package rdmacm_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

func TestNobodyListens(t *testing.T) {
	a, b := newSides(t, nil)
	q := a.qp(ib.RC)
	_, err := a.m.Dial(within(t), a.route(b, 7), q, rdmacm.Options{})
	if !errors.Is(err, rdmacm.ErrRefused) || !errors.Is(err, rdmacm.ErrRejected) || strings.Contains(err.Error(), "\n") {
		t.Errorf("dial: %v", err)
	}
	if s := q.State(); s != ib.Reset {
		t.Errorf("QP in %v", s)
	}
	if _, err := a.m.Lookup(within(t), a.route(b, 7), rdmacm.Options{}); !errors.Is(err, rdmacm.ErrRefused) {
		t.Errorf("lookup: %v", err)
	}
}

func TestRequestIsRejected(t *testing.T) {
	a, b := newSides(t, nil)
	l := b.listen(rdmacm.TCP, 7)
	errs := make(chan error, 1)
	go func() {
		req, err := l.Next(within(t))
		if err == nil {
			err = req.Reject([]byte("not you"))
		}
		if err == nil && !errors.Is(req.Reject(nil), rdmacm.ErrGone) {
			err = errors.New("rejected twice")
		}
		errs <- err
	}()
	_, err := a.m.Dial(within(t), a.route(b, 7), a.qp(ib.RC), rdmacm.Options{})
	var rej *rdmacm.RejectedError
	if !errors.As(err, &rej) || rej.Reason != mad.RejConsumer || !bytes.Equal(rej.Private, padded("not you", 148)) || errors.Is(err, rdmacm.ErrRefused) {
		t.Errorf("dial: %v", err)
	}
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// Whoever stops waiting is forgotten: the other end cannot accept any more.
func TestDialIsCancelled(t *testing.T) {
	a, b := newSides(t, nil)
	l := b.listen(rdmacm.TCP, 7)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := a.m.Dial(ctx, a.route(b, 7), a.qp(ib.RC), rdmacm.Options{})
		errs <- err
	}()
	req, err := l.Next(within(t))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("dial: %v", err)
	}
	// The REJ may be under way yet; then it ends the waiting.
	if _, err := req.Accept(within(t), b.qp(ib.RC), rdmacm.Options{}); !errors.Is(err, rdmacm.ErrGone) && !errors.Is(err, rdmacm.ErrRejected) {
		t.Errorf("accept: %v", err)
	}
}

// A path MTU that the other end does not carry is not the end.
func TestSmallerMTUIsTaken(t *testing.T) {
	a, b := newSides(t, nil)
	r := a.route(b, 7)
	r.MTU = 6 // none: refused with the one that would do
	l := b.listen(rdmacm.TCP, 7)
	ch := b.accept(within(t), l, ib.RC, rdmacm.Options{})
	c, err := a.m.Dial(within(t), r, a.qp(ib.RC), rdmacm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if acc := <-ch; acc.err != nil {
		t.Fatal(acc.err)
	}
	if got, want := c.QP().Query().PathMTU, b.dev.Port().ActiveMTU; got != want {
		t.Errorf("path MTU %v, want %v", got, want)
	}
}

func TestBadArguments(t *testing.T) {
	a, b := newSides(t, nil)
	r := a.route(b, 7)
	for _, c := range []struct {
		name string
		opt  rdmacm.Options
		want string
	}{
		{"private data", rdmacm.Options{Private: make([]byte, 57)}, "57 bytes, can be up to 56"},
		{"retry count", rdmacm.Options{RetryCount: 8}, "retry count is 8"},
		{"RNR retry count", rdmacm.Options{RNRRetry: -2}, "RNR retry count is -2"},
		{"responder resources", rdmacm.Options{ResponderResources: 300}, "responder resources is 300"},
		{"SL", rdmacm.Options{SL: 8}, "service level is 8"},
		{"farewell", rdmacm.Options{Farewell: make([]byte, 225)}, "225 bytes, can be up to 224"},
	} {
		q := a.qp(ib.RC)
		if _, err := a.m.Dial(within(t), r, q, c.opt); !errors.Is(err, rdmacm.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if s := q.State(); s != ib.Reset {
			t.Errorf("%s: a refused call has moved the QP to %v", c.name, s)
		}
	}
	for name, q := range map[string]*verbs.QP{"none": nil, "UD": a.qp(ib.UD), "of another device": b.qp(ib.RC)} {
		if _, err := a.m.Dial(within(t), r, q, rdmacm.Options{}); !errors.Is(err, rdmacm.ErrInvalid) {
			t.Errorf("queue pair %s: %v", name, err)
		}
	}
	if _, err := a.m.RouteTo(netip.MustParseAddrPort("[fd00::1]:7")); !errors.Is(err, verbs.ErrNoGID) {
		t.Errorf("a peer of another family: %v", err)
	}
	if _, err := a.m.Resolve(within(t), "10.1.0.2"); err == nil {
		t.Error("an address without a port was resolved")
	}
	b.listen(rdmacm.TCP, 9)
	if _, err := b.m.Listen(rdmacm.TCP, 9); !errors.Is(err, rdmacm.ErrInUse) {
		t.Errorf("second listener: %v", err)
	}
	b.listen(rdmacm.UDP, 9) // another port space
	if _, err := rdmacm.Open(b.dev); !errors.Is(err, rdmacm.ErrBusy) {
		t.Errorf("second manager: %v", err)
	}
}

// Closing ends all waits, and the peer of a connection hears of it.
func TestClosing(t *testing.T) {
	a, b := newSides(t, nil)
	x, y, _ := connect(t, a, b, ib.RC, rdmacm.Options{}, rdmacm.Options{})
	l := b.listen(rdmacm.TCP, 8)
	errs := make(chan error, 1)
	go func() {
		_, err := l.Next(within(t))
		errs <- err
	}()
	if err := b.m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, rdmacm.ErrClosed) {
		t.Errorf("listener: %v", err)
	}
	<-y.Done()
	<-x.Done()
	nextEvent(t, x)
	if e, ok := nextEvent(t, x).(rdmacm.Disconnected); !ok || !e.ByPeer {
		t.Errorf("the peer hears %+v", e)
	}
	nextEvent(t, y)
	if e, ok := nextEvent(t, y).(rdmacm.DeviceRemoved); !ok {
		t.Errorf("this end hears %+v", e)
	}
	if _, err := b.m.Listen(rdmacm.TCP, 8); !errors.Is(err, rdmacm.ErrClosed) {
		t.Errorf("listen: %v", err)
	}
}
