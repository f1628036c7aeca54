package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs"
)

const groupQKey = 0x11111111

// udEnd is a UD queue pair in RTS on a device of its own.
func udEnd(t *testing.T, cfg verbs.Config) *end {
	t.Helper()
	e := newEnd(t, open(t, cfg), ib.UD)
	must(t, e.qp.ToInitUD(groupQKey))
	must(t, e.qp.ToRTR(verbs.Path{}))
	must(t, e.qp.ToRTS(verbs.Path{}))
	return e
}

func (e *end) castTo(t *testing.T, group netip.Addr, n int) {
	t.Helper()
	ah, err := e.pd.CreateAH(ib.AV{DGID: ib.GIDFromAddr(group)})
	must(t, err)
	must(t, e.qp.PostSend(ib.SendWR{
		Op: ib.Send, Flags: ib.Signaled, ID: 99, SGL: e.mr.SGE(0, n), UD: ib.Datagram{AH: ah.Handle(), QKey: groupQKey},
	}))
}

// gets waits for a message.
func (e *end) gets(t *testing.T) (wc ib.WC, ok bool) {
	t.Helper()
	return e.getsWithin(t, time.Minute)
}

// silent waits a moment for a message that must not come.
func (e *end) silent(t *testing.T) {
	t.Helper()
	if wc, ok := e.getsWithin(t, 100*time.Millisecond); ok {
		t.Errorf("a message too many: %+v", wc)
	}
}

func (e *end) getsWithin(t *testing.T, d time.Duration) (wc ib.WC, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wcs [1]ib.WC
	for {
		if _, err := e.cq.Wait(ctx, wcs[:]); err != nil {
			return wc, false
		}
		if wcs[0].Op == ib.WCRecv {
			return wcs[0], true
		}
	}
}

// Over UDP sockets a group reaches its members on other devices and on the
// sender's own, through middleware too, and ends with Detach.
func TestGroupOverUDP(t *testing.T) {
	group := netip.MustParseAddr("239.7.7.7")
	a := udEnd(t, verbs.Config{Addr: addrA, Port: testPort})
	b := udEnd(t, verbs.Config{Addr: addrB, Port: testPort, Wrap: func(l link.Link) link.Link {
		f, err := fault.New(l, fault.Config{})
		must(t, err)
		return f
	}})
	fill(a.mr.Bytes()[:500], 4)
	for _, e := range []*end{a, b} {
		for range 3 {
			e.recv(t, 1024, 1024)
		}
		if err := e.qp.Attach(group); err != nil {
			need.Missing(t, "this host joins no groups: %v", err)
		}
	}
	a.castTo(t, group, 500)
	for _, e := range []*end{a, b} {
		wc, ok := e.gets(t)
		if !ok || wc.Bytes != 540 || wc.SrcQPN != a.qp.Num() || wc.Flags&ib.WCWithGRH == 0 {
			t.Fatalf("%+v, %v", wc, ok)
		}
		got := e.mr.Bytes()[1024:]
		if !bytes.Equal(got[40:540], a.mr.Bytes()[:500]) || !bytes.Equal(got[36:40], group.AsSlice()) {
			t.Errorf("GRH % x", got[:40])
		}
	}
	if err := b.qp.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("closed while attached: %v", err)
	}
	must(t, b.qp.Detach(group))
	a.castTo(t, group, 500)
	if _, ok := a.gets(t); !ok {
		t.Error("a member left, and another hears nothing")
	}
	b.silent(t) // after leaving
	must(t, b.qp.Close())
	for _, err := range []error{b.qp.Attach(group), b.qp.Detach(group)} {
		if !errors.Is(err, verbs.ErrClosed) {
			t.Error(err)
		}
	}
	for _, bad := range []netip.Addr{{}, addrB, netip.MustParseAddr("ff15::1")} {
		if err := a.qp.Attach(bad); err == nil {
			t.Errorf("attached to %v", bad)
		}
	}
}
