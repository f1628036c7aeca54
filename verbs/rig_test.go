package verbs_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

var (
	addrA = netip.MustParseAddr("127.0.0.1")
	addrB = netip.MustParseAddr("127.0.0.2")
)

// end is one end of a connection with everything that it needs.
type end struct {
	dev  *verbs.Device
	pd   *verbs.PD
	cq   *verbs.CQ // sends and receives
	mr   *verbs.MR
	qp   *verbs.QP
	peer *verbs.Peer
}

// ends are two connected ends.
type ends struct{ a, b *end }

const regionBytes = 1 << 20

// newEnd makes an end on a device, with a region that allows everything.
func newEnd(t testing.TB, dev *verbs.Device, typ ib.QPType) *end {
	t.Helper()
	e := &end{dev: dev, pd: dev.AllocPD()}
	var err error
	if e.cq, err = dev.CreateCQ(verbs.CQConfig{Depth: 1024}); err != nil {
		t.Fatal(err)
	}
	if e.mr, err = e.pd.RegisterMR(make([]byte, regionBytes), ib.AccessAll); err != nil {
		t.Fatal(err)
	}
	e.qp, err = e.pd.CreateQP(verbs.QPConfig{
		Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: ib.QPCap{MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 400},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// join connects two ends.
func join(t testing.TB, a, b *end) {
	t.Helper()
	x, y := net.Pipe()
	defer x.Close()
	defer y.Close()
	errs := make(chan error, 1)
	go func() {
		var err error
		b.peer, err = verbs.Connect(context.Background(), y, b.qp, b.mr)
		errs <- err
	}()
	var err error
	a.peer, err = verbs.Connect(context.Background(), x, a.qp, a.mr)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, cfg verbs.Config) *verbs.Device {
	t.Helper()
	dev, err := verbs.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// testPort keeps tests of this package out of the way of whoever owns 4791.
const testPort = 14791

// newPairUDP connects two devices on two loopback addresses.
func newPairUDP(t testing.TB, typ ib.QPType) ends {
	t.Helper()
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), typ)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), typ)
	join(t, a, b)
	return ends{a, b}
}

// newPairMem connects two devices in memory.
func newPairMem(t testing.TB, typ ib.QPType, wrap func(link.Link) link.Link) ends {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x, Wrap: wrap}), typ)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y}), typ)
	join(t, a, b)
	return ends{a, b}
}

func (e *end) send(t testing.TB, off, n int) {
	if err := e.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: e.mr.SGE(off, n)}); err != nil {
		t.Error(err)
	}
}

func (e *end) recv(t testing.TB, off, n int) {
	if err := e.qp.PostRecv(ib.RecvWR{SGL: e.mr.SGE(off, n)}); err != nil {
		t.Error(err)
	}
}

// word returns the 8 bytes at off for atomic loads.
func (e *end) word(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&e.mr.Bytes()[off]))
}

// await waits for the next completion.
func (e *end) await(t testing.TB) ib.WC {
	t.Helper()
	var wcs [1]ib.WC
	if _, err := e.cq.Wait(context.Background(), wcs[:]); err != nil {
		t.Fatal(err)
	}
	return wcs[0]
}

// fill writes a pattern that depends on seed.
func fill(b []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, r.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// nopConn is a connection on which nothing happens.
type nopConn struct{ net.Conn }

func (nopConn) RemoteAddr() net.Addr        { return nil }
func (nopConn) SetDeadline(time.Time) error { return nil }
