package rdmacm_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
)

func padded(s string, n int) []byte { return append([]byte(s), make([]byte, n-len(s))...) }

// A connection carries data both ways, private data arrive in their fields'
// lengths, and both ends hear of the end.
func TestConnectionFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel() // it waits for the timewait exit
			a, b := newSides(t, nil)
			x, y, req := connect(t, a, b, typ,
				rdmacm.Options{Private: []byte("please"), ResponderResources: 3, InitiatorDepth: 5},
				rdmacm.Options{Private: []byte("welcome"), ResponderResources: 4, InitiatorDepth: 2, Farewell: []byte("farewell")})
			if want := padded("please", 56); !bytes.Equal(req.Private(), want) || !bytes.Equal(y.Private(), want) {
				t.Errorf("the request says %q", req.Private())
			}
			if !bytes.Equal(x.Private(), padded("welcome", 196)) {
				t.Errorf("the answer says %q", x.Private())
			}
			if x.LocalAddr() != y.RemoteAddr() || x.RemoteAddr() != y.LocalAddr() {
				t.Errorf("%v-%v at one end, %v-%v at the other", x.LocalAddr(), x.RemoteAddr(), y.LocalAddr(), y.RemoteAddr())
			}
			if typ == ib.RC && (x.InitiatorDepth() != 4 || x.ResponderResources() != 2 || y.InitiatorDepth() != 2 || y.ResponderResources() != 4) {
				t.Errorf("depths: %d of %d, %d of %d", x.InitiatorDepth(), y.ResponderResources(), y.InitiatorDepth(), x.ResponderResources())
			}
			for _, c := range []*rdmacm.Conn{x, y} {
				if e, ok := nextEvent(t, c).(rdmacm.Established); !ok {
					t.Errorf("first event %T %+v", e, e)
				}
			}
			exchange(t, a, b, x, y)
			exchange(t, b, a, y, x)

			if err := x.Disconnect(within(t), []byte("bye")); err != nil {
				t.Fatal(err)
			}
			<-y.Done()
			if e, ok := nextEvent(t, y).(rdmacm.Disconnected); !ok || !e.ByPeer || !bytes.Equal(e.Private, padded("bye", 220)) {
				t.Errorf("the other end hears %+v", e)
			}
			if e, ok := nextEvent(t, x).(rdmacm.Disconnected); !ok || e.ByPeer || !bytes.Equal(e.Private, padded("farewell", 224)) {
				t.Errorf("this end hears %+v", e)
			}
			for _, c := range []*rdmacm.Conn{x, y} {
				if s := c.QP().State(); s != ib.Error {
					t.Errorf("QP in %v", s)
				}
				if _, ok := nextEvent(t, c).(rdmacm.TimewaitExit); !ok {
					t.Error("no timewait exit")
				}
				if _, err := c.NextEvent(within(t)); !errors.Is(err, rdmacm.ErrGone) {
					t.Errorf("after the last event: %v", err)
				}
			}
		})
	}
}

// exchange sends a message from x, of side a, to y.
func exchange(t *testing.T, a, b *side, x, y *rdmacm.Conn) {
	t.Helper()
	if err := y.QP().PostRecv(ib.RecvWR{SGL: b.mr.SGE(0, 64)}); err != nil {
		t.Fatal(err)
	}
	copy(a.mr.Bytes(), "a message")
	if err := x.QP().PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: a.mr.SGE(0, 64)}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*side{a, b} {
		var wcs [1]ib.WC
		if _, err := s.cq.Wait(within(t), wcs[:]); err != nil || wcs[0].Status != ib.Success {
			t.Fatalf("%+v, %v", wcs[0], err)
		}
	}
	if !bytes.HasPrefix(b.mr.Bytes(), []byte("a message")) {
		t.Error("other bytes arrived")
	}
}
