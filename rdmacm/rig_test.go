package rdmacm_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// killedPeer, in the environment, makes this program a peer that connects and
// connects until it is killed. It has the peer's address and port.
const killedPeer = "VERBENA_TEST_KILLED_PEER"

func TestMain(m *testing.M) {
	if to := os.Getenv(killedPeer); to != "" {
		fmt.Fprintln(os.Stderr, runKilledPeer(to))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// side is a device with a connection manager and what queue pairs need.
type side struct {
	t    testing.TB
	addr netip.Addr
	dev  *verbs.Device
	m    *rdmacm.Manager
	pd   *verbs.PD
	cq   *verbs.CQ
	mr   *verbs.MR
}

// newSides joins two devices in memory. wrap, which may be nil, goes around the
// link of the second.
func newSides(t testing.TB, wrap func(link.Link) link.Link) (a, b *side) {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	return newSide(t, "10.1.0.1", x, nil), newSide(t, "10.1.0.2", y, wrap)
}

func newSide(t testing.TB, addr string, l link.Link, wrap func(link.Link) link.Link) *side {
	t.Helper()
	s := &side{t: t, addr: netip.MustParseAddr(addr)}
	var err error
	if s.dev, err = verbs.Open(verbs.Config{Addr: s.addr, Link: l, Wrap: wrap}); err != nil {
		t.Fatal(err)
	}
	s.equip()
	return s
}

// equip makes what a side has besides its device.
func (s *side) equip() {
	t := s.t
	t.Helper()
	var err error
	if s.m, err = rdmacm.OpenTimewait(s.dev, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.m.Close(); err != nil {
			t.Error(err)
		}
		if err := s.dev.Close(); err != nil {
			t.Error(err)
		}
	})
	s.pd = s.dev.AllocPD()
	if s.cq, err = s.dev.CreateCQ(verbs.CQConfig{Depth: 1024, Vector: verbs.SpreadVectors}); err != nil {
		t.Fatal(err)
	}
	if s.mr, err = s.pd.RegisterMR(make([]byte, 4096), ib.AccessAll); err != nil {
		t.Fatal(err)
	}
}

func (s *side) qp(typ ib.QPType) *verbs.QP {
	s.t.Helper()
	q, err := s.newQP(typ)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

func (s *side) newQP(typ ib.QPType) (*verbs.QP, error) {
	return s.pd.CreateQP(verbs.QPConfig{Type: typ, SendCQ: s.cq, RecvCQ: s.cq, Cap: ib.QPCap{MaxSendWR: 8, MaxRecvWR: 8}})
}

func (s *side) listen(space rdmacm.Space, port uint16) *rdmacm.Listener {
	s.t.Helper()
	l, err := s.m.Listen(space, port)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// route is the way from s to a port of another side.
func (s *side) route(to *side, port uint16) rdmacm.Route {
	s.t.Helper()
	r, err := s.m.RouteTo(netip.AddrPortFrom(to.addr, port))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// within is a context for what should take no time.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// accepted is what the accepting end of a connection has.
type accepted struct {
	req  *rdmacm.Request
	conn *rdmacm.Conn
	err  error
}

// accept takes the next request of a listener with a new queue pair.
func (s *side) accept(ctx context.Context, l *rdmacm.Listener, typ ib.QPType, opt rdmacm.Options) <-chan accepted {
	out := make(chan accepted, 1)
	q := s.qp(typ)
	go func() {
		req, err := l.Next(ctx)
		if err != nil {
			out <- accepted{err: err}
			return
		}
		c, err := req.Accept(ctx, q, opt)
		out <- accepted{req, c, err}
	}()
	return out
}

// connect makes a connection of a and b.
func connect(t testing.TB, a, b *side, typ ib.QPType, dial, accept rdmacm.Options) (x, y *rdmacm.Conn, req *rdmacm.Request) {
	t.Helper()
	ctx := within(t)
	l := b.listen(rdmacm.TCP, 0)
	defer l.Close()
	ch := b.accept(ctx, l, typ, accept)
	x, err := a.m.Dial(ctx, a.route(b, l.Port()), a.qp(typ), dial)
	if err != nil {
		t.Fatal(err)
	}
	acc := <-ch
	if acc.err != nil {
		t.Fatal(acc.err)
	}
	return x, acc.conn, acc.req
}

// nextEvent waits for an event of a connection.
func nextEvent(t testing.TB, c *rdmacm.Conn) rdmacm.Event {
	t.Helper()
	e, err := c.NextEvent(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
