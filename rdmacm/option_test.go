package rdmacm_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// Each option is what the queue pairs of both ends have, once connected. Of
// what both ends say, each end's RNR retries and READs are for the other's queue
// pair (IBA vol.1 12.7.26, 12.7.29, 12.7.30, 12.7.38).
func TestOptionsReachTheQueuePairs(t *testing.T) {
	a, b := newSides(t, nil)
	x, y, req := connect(t, a, b, ib.RC,
		rdmacm.Options{
			RetryCount: 3, RNRRetry: 2, ResponderResources: 5, InitiatorDepth: 7, AckTimeoutExp: 19, MinRNRTimer: 9, TOS: 0x68, SL: 3, MTU: ib.MTU512,
			Access: ib.RemoteRead,
		},
		rdmacm.Options{
			RetryCount: 1, RNRRetry: 6, ResponderResources: 4, InitiatorDepth: 9, AckTimeoutExp: 21, MinRNRTimer: 11, TOS: 0x20, SL: 1, MTU: ib.MTU256,
			Access: ib.RemoteWrite,
		})
	if req.ResponderResources() != 5 || req.InitiatorDepth() != 7 || req.MTU() != ib.MTU512 || req.Type() != ib.RC {
		t.Errorf("the request: %d responder resources, initiator depth %d, %v, %v", req.ResponderResources(), req.InitiatorDepth(), req.MTU(), req.Type())
	}
	type row struct {
		retry, rnr, timeout, timer, tos, sl uint8
		depth, holds                        uint8
		mtu                                 ib.MTU
		access                              ib.Access
	}
	of := func(c *rdmacm.Conn) row {
		q := c.QP().Query()
		return row{
			q.RetryCnt, q.RNRRetry, q.TimeoutExp, q.MinRNRTimer, q.AV.TrafficClass, q.AV.SL, q.MaxRdAtomic, q.MaxDestRdAtomic, q.PathMTU,
			q.Access & ib.RemoteAll,
		}
	}
	if got, want := of(x), (row{3, 6, 19, 9, 0x68, 3, 4, 5, ib.MTU512, ib.RemoteRead}); got != want {
		t.Errorf("dialing end %+v, want %+v", got, want)
	}
	if got, want := of(y), (row{3, 2, 19, 11, 0x68, 3, 5, 4, ib.MTU512, ib.RemoteWrite}); got != want {
		t.Errorf("accepting end %+v, want %+v", got, want)
	}
}

// What can be 0 in earnest is so with -1.
func TestOptionsThatAreNone(t *testing.T) {
	a, b := newSides(t, nil)
	none := rdmacm.Options{RetryCount: -1, RNRRetry: -1, ResponderResources: -1, InitiatorDepth: -1}
	x, y, _ := connect(t, a, b, ib.RC, none, none)
	for _, c := range []*rdmacm.Conn{x, y} {
		if q := c.QP().Query(); q.RetryCnt != 0 || q.RNRRetry != 0 || q.MaxRdAtomic != 0 || q.MaxDestRdAtomic != 0 {
			t.Errorf("%+v", q)
		}
	}
}

// tosTap notes the type of service of all packets that come in.
type tosTap struct {
	link.Link
	mu   sync.Mutex
	seen map[string]int // by what they are for and type of service
}

func (l *tosTap) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := l.Link.Recv(now, rx)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range rx[:n] {
		what := "data"
		if b := rx[i].Data; b[5] == 0 && b[6] == 0 && b[7] == 1 { // destination QPN of the BTH
			what = "CM"
		}
		l.seen[fmt.Sprintf("%s 0x%02x", what, rx[i].TOS&^3)]++
	}
	return n, err
}

// The type of service is on the wire: in the datagrams of both connection
// managers and in the packets of both queue pairs.
func TestTypeOfServiceOnTheWire(t *testing.T) {
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	taps := []*tosTap{{seen: map[string]int{}}, {seen: map[string]int{}}}
	tap := func(i int) func(link.Link) link.Link {
		return func(l link.Link) link.Link { taps[i].Link = l; return taps[i] }
	}
	a, b := newSide(t, "10.1.0.1", x, tap(0)), newSide(t, "10.1.0.2", y, tap(1))
	c, d, _ := connect(t, a, b, ib.RC, rdmacm.Options{TOS: 0x68}, rdmacm.Options{})
	exchange(t, a, b, c, d)
	exchange(t, b, a, d, c)
	if err := c.Disconnect(within(t), nil); err != nil {
		t.Fatal(err)
	}
	for i, l := range taps {
		l.mu.Lock()
		if l.seen["CM 0x68"] < 2 || l.seen["data 0x68"] < 2 || len(l.seen) != 2 {
			t.Errorf("side %d has received %v", i, l.seen)
		}
		l.mu.Unlock()
	}
}

// The room for private data is what peers have in their messages (IBA annex
// A11.3 for the first two): all of it arrives, and one byte more is refused with
// the limit named, before anything is sent.
func TestPrivateDataLimits(t *testing.T) {
	a, b := newSides(t, nil)
	full := func(n int) []byte { return bytes.Repeat([]byte{0xA5}, n) }
	refused := func(what string, most int, err error) {
		t.Helper()
		want := fmt.Sprintf("%d bytes, can be up to %d", most+1, most)
		if !errors.Is(err, rdmacm.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	arrived := func(what string, most int, got []byte) {
		t.Helper()
		if !bytes.Equal(got, full(most)) {
			t.Errorf("%s: %d bytes arrived, of %d: % x", what, len(got), most, got)
		}
	}

	// REQ, REP, DREQ, DREP.
	_, err := a.m.Dial(within(t), a.route(b, 7), a.qp(ib.RC), rdmacm.Options{Private: full(57)})
	refused("REQ", 56, err)
	l := b.listen(rdmacm.TCP, 7)
	reqs := make(chan *rdmacm.Request, 2)
	go func() {
		for range 2 {
			req, _ := l.Next(within(t))
			reqs <- req
		}
	}()
	conns := make(chan *rdmacm.Conn, 1)
	dial := func(opt rdmacm.Options) (*rdmacm.Conn, error) {
		return a.m.Dial(within(t), a.route(b, 7), a.qp(ib.RC), opt)
	}
	go func() {
		c, err := dial(rdmacm.Options{Private: full(56)})
		if err != nil {
			t.Error(err)
		}
		conns <- c
	}()
	req := <-reqs
	arrived("REQ", 56, req.Private())
	q := b.qp(ib.RC)
	_, err = req.Accept(within(t), q, rdmacm.Options{Private: full(197)})
	refused("REP", 196, err)
	_, err = req.Accept(within(t), q, rdmacm.Options{Farewell: full(225)})
	refused("DREP", 224, err)
	y, err := req.Accept(within(t), q, rdmacm.Options{Private: full(196), Farewell: full(224)})
	if err != nil {
		t.Fatal(err)
	}
	x := <-conns
	arrived("REP", 196, x.Private())
	refused("DREQ", 220, x.Disconnect(within(t), full(221)))
	if err := x.Disconnect(within(t), full(220)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*rdmacm.Conn{x, y} {
		nextEvent(t, c) // established
	}
	arrived("DREQ", 220, nextEvent(t, y).(rdmacm.Disconnected).Private)
	arrived("DREP", 224, nextEvent(t, x).(rdmacm.Disconnected).Private)

	// REJ.
	errs := make(chan error, 1)
	go func() {
		_, err := dial(rdmacm.Options{})
		errs <- err
	}()
	req = <-reqs
	refused("REJ", 148, req.Reject(full(149)))
	if err := req.Reject(full(148)); err != nil {
		t.Fatal(err)
	}
	var rej *rdmacm.RejectedError
	if err := <-errs; !errors.As(err, &rej) {
		t.Fatal(err)
	}
	arrived("REJ", 148, rej.Private)

	// SIDR REQ and SIDR REP.
	_, err = a.m.Lookup(within(t), a.route(b, 8), rdmacm.Options{Private: full(181)})
	refused("SIDR REQ", 180, err)
	ul := b.listen(rdmacm.UDP, 8)
	server := b.qp(ib.UD)
	if err := errors.Join(server.ToInitUD(rdmacm.QKeyUDP), server.ToRTR(verbs.Path{}), server.ToRTS(verbs.Path{})); err != nil {
		t.Fatal(err)
	}
	go func() {
		req, err := ul.Next(within(t))
		if err == nil {
			arrived("SIDR REQ", 180, req.Private())
			refused("SIDR REP", 136, req.AcceptUD(server, full(137)))
			refused("SIDR REP", 136, req.Reject(full(137)))
			err = req.AcceptUD(server, full(136))
		}
		errs <- err
	}()
	d, err := a.m.Lookup(within(t), a.route(b, 8), rdmacm.Options{Private: full(180)})
	if err := errors.Join(err, <-errs); err != nil {
		t.Fatal(err)
	}
	arrived("SIDR REP", 136, d.Private)
}

// A device connects to itself, through one connection manager.
func TestConnectionToItself(t *testing.T) {
	a := newUDPSide(t, "127.0.0.1", 14793)
	x, y, _ := connect(t, a, a, ib.RC, rdmacm.Options{}, rdmacm.Options{})
	if err := y.QP().PostRecv(ib.RecvWR{SGL: a.mr.SGE(2048, 64)}); err != nil {
		t.Fatal(err)
	}
	copy(a.mr.Bytes(), "to myself")
	if err := x.QP().PostSend(ib.SendWR{Op: ib.Send, SGL: a.mr.SGE(0, 64)}); err != nil {
		t.Fatal(err)
	}
	var wcs [1]ib.WC
	if _, err := a.cq.Wait(within(t), wcs[:]); err != nil || wcs[0].Status != ib.Success || !bytes.HasPrefix(a.mr.Bytes()[2048:], []byte("to myself")) {
		t.Errorf("%+v, %v", wcs[0], err)
	}
	if err := x.Disconnect(within(t), nil); err != nil {
		t.Error(err)
	}
	<-y.Done()
}
