package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// Connect reads exactly its handshake, over TCP too, and tells both ends the
// same.
func TestConnectOverTCP(t *testing.T) {
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if b.peer, err = verbs.Connect(t.Context(), conn, b.qp, b.mr); err != nil {
			t.Error(err)
		}
		if _, err := conn.Write([]byte("and on")); err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	a.peer, err = verbs.Connect(t.Context(), conn, a.qp, a.mr)
	must(t, err)
	rest, err := io.ReadAll(conn)
	wg.Wait()
	if err != nil || string(rest) != "and on" {
		t.Errorf("behind the handshake: %q, %v", rest, err)
	}
	if a.peer.QPN != b.qp.Num() || a.peer.Len != regionBytes || a.peer.At(5) != b.mr.Remote(5) {
		t.Errorf("%+v", a.peer)
	}
	if a.peer.Path.PSN != b.peer.Path.LocalPSN || b.peer.Path.PSN != a.peer.Path.LocalPSN || a.peer.Path.MTU != ib.MTU4096 {
		t.Errorf("%+v\n%+v", a.peer.Path, b.peer.Path)
	}
	transfer(t, ends{a, b}, ib.Write, 10_000, 1)
}

// The path MTU is the lower of the two ports'.
func TestConnectTakesTheLowerMTU(t *testing.T) {
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y, Wrap: func(l link.Link) link.Link { return narrow{l} }}), ib.RC)
	join(t, a, b)
	if a.peer.Path.MTU != ib.MTU1024 || b.peer.Path.MTU != ib.MTU1024 {
		t.Errorf("%v, %v", a.peer.Path.MTU, b.peer.Path.MTU)
	}
	if b.dev.Port().ActiveMTU != ib.MTU1024 || b.dev.Port().MaxMTU != ib.MTU4096 {
		t.Errorf("%+v", b.dev.Port())
	}
	transfer(t, ends{a, b}, ib.Write, 10_000, 1)
}

// narrow is a link of Ethernet's usual MTU.
type narrow struct{ link.Link }

func (n narrow) Caps() link.Caps {
	c := n.Link.Caps()
	c.MTU = 1500 - 28
	return c
}

func TestConnectFails(t *testing.T) {
	good := func() []byte { // what a good end says, recorded
		e := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
		x, y := net.Pipe()
		defer x.Close()
		buf := make([]byte, 60)
		go func() {
			_, _ = io.ReadFull(y, buf)
			y.Close()
		}()
		_, err := verbs.Connect(t.Context(), x, e.qp, e.mr)
		if !errors.Is(err, verbs.ErrHandshake) {
			t.Fatal(err)
		}
		must(t, e.dev.Close())
		return buf
	}()
	version := bytes.Clone(good)
	version[5] = 9
	length := bytes.Clone(good)
	length[7]++
	mtu := bytes.Clone(good)
	mtu[9] = 77
	typ := bytes.Clone(good)
	typ[8] = byte(ib.UC)
	family := bytes.Clone(good)
	copy(family[24:40], netip.MustParseAddr("fd00::1").AsSlice())
	for name, c := range map[string]struct {
		says []byte
		text string
	}{
		"garbage":        {[]byte("HTTP/1.1 400 Bad Request\r\n"), "begins with \"HTTP/1.1\""},
		"nothing":        {nil, "closed the connection"},
		"half a hello":   {good[:30], "closed the connection"},
		"new version":    {version, "version 9"},
		"other length":   {length, "bytes long"},
		"no such MTU":    {mtu, "makes no sense"},
		"another type":   {typ, "the other end's UC"},
		"another family": {family, "different address families"},
		"no verdict":     {good, "verdict"},
		"long verdict":   {append(bytes.Clone(good), 0xFF, 0xFF), "verdict is 65535 bytes"},
		"bad verdict":    {append(bytes.Clone(good), 0, 4, 'o', 'h', 'n', 'o'), "the other end failed: ohno"},
	} {
		for _, state := range []ib.QPState{ib.Reset, ib.Init} {
			t.Run(name+"/"+state.String(), func(t *testing.T) {
				e := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
				if state == ib.Init {
					must(t, e.qp.ToInit(ib.RemoteRead))
				}
				x, y := net.Pipe()
				defer x.Close()
				var wg sync.WaitGroup
				heard := make(chan struct{})
				wg.Go(func() {
					_, _ = io.CopyN(io.Discard, y, int64(len(good)))
					close(heard)
					_, _ = io.Copy(io.Discard, y)
				})
				wg.Go(func() {
					_, _ = y.Write(c.says)
					<-heard
					y.Close()
				})
				before := e.qp.Query()
				_, err := verbs.Connect(t.Context(), x, e.qp, e.mr)
				x.Close()
				wg.Wait()
				if !errors.Is(err, verbs.ErrHandshake) && name != "another family" || err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v", err)
				}
				if after := e.qp.Query(); after.State != before.State || after.Access != before.Access {
					t.Errorf("QP was %+v\nis %+v", before, after)
				}
			})
		}
	}
}

// Whatever step the other end stops at, the context ends the wait, and the
// queue pair is as before.
func TestConnectContext(t *testing.T) {
	for _, answer := range []int{0, 3, 8, 59, 60, 61} {
		synctest.Test(t, func(t *testing.T) {
			p, q := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
			a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: p}), ib.RC)
			b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: q}), ib.RC)
			x, y := net.Pipe()
			x2, y2 := net.Pipe()
			// Between the two ends sits somebody who passes on only so many bytes.
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = io.CopyN(x2, y, int64(answer)) })
			wg.Go(func() { _, _ = io.CopyN(y, x2, int64(answer)) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wg.Go(func() {
				if _, err := verbs.Connect(ctx, y2, b.qp, b.mr); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d bytes: %v", answer, err)
				}
			})
			if _, err := verbs.Connect(ctx, x, a.qp, a.mr); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d bytes: %v", answer, err)
			}
			for _, c := range []net.Conn{x, y, x2, y2} {
				c.Close()
			}
			wg.Wait()
			if s := a.qp.State(); s != ib.Reset {
				t.Errorf("QP is in %v", s)
			}
			// The same queue pairs connect when there is somebody to talk to.
			join(t, a, b)
			transfer(t, ends{a, b}, ib.Send, 100, 1)
		})
	}
}

func TestConnectRefusesWrongStates(t *testing.T) {
	p := newPairMem(t, ib.RC, nil)
	if _, err := verbs.Connect(t.Context(), nopConn{}, p.a.qp, nil); !errors.Is(err, verbs.ErrState) {
		t.Errorf("connected already: %v", err)
	}
	must(t, p.a.qp.ToReset())
	if _, err := verbs.Connect(t.Context(), nopConn{}, p.a.qp, p.b.mr); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("region of another domain: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  verbs.Config
		kind error
	}{
		"nothing":           {verbs.Config{}, verbs.ErrInvalid},
		"both":              {verbs.Config{Addr: addrA, Netdev: "lo"}, verbs.ErrInvalid},
		"any address":       {verbs.Config{Addr: netip.IPv4Unspecified()}, verbs.ErrInvalid},
		"multicast":         {verbs.Config{Addr: netip.MustParseAddr("224.0.0.1")}, verbs.ErrInvalid},
		"no such interface": {verbs.Config{Netdev: "nonsuch0"}, verbs.ErrNoDevice},
		"foreign address":   {verbs.Config{Addr: netip.MustParseAddr("203.0.113.77"), Port: testPort}, notAvailable},
		"limits":            {verbs.Config{Addr: addrA, Port: testPort, Limits: verbs.Limits{MaxQP: -1}}, verbs.ErrInvalid},
	} {
		d, err := verbs.Open(c.cfg)
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if d != nil {
			t.Errorf("%s: a device in spite of the error", name)
			d.Close()
		}
		t.Logf("%s: %v", name, err)
	}
}

// A device on an interface has a row for each of its addresses and the name of
// the interface.
func TestOpenByNetdev(t *testing.T) {
	d := open(t, verbs.Config{Netdev: "lo", Port: testPort})
	if d.Name() != "vrb_lo" || d.Attr().GUID == 0 {
		t.Errorf("%+v", d.Attr())
	}
	for _, g := range d.GIDs() {
		t.Logf("%+v", g)
		if g.Netdev != "lo" || g.Type != ib.GIDTypeRoCEv2 {
			t.Errorf("%+v", g)
		}
		if i, err := d.SelectGID(g.Addr); err != nil || i != g.Index {
			t.Errorf("from %v to itself: row %d, %v", g.Addr, i, err)
		}
	}
	if p := d.Port(); p.State != verbs.PortActive || p.ActiveMTU != ib.MTU4096 || p.GIDs != len(d.GIDs()) {
		t.Errorf("%+v", p)
	}
	a, b := newEnd(t, d, ib.RC), newEnd(t, d, ib.RC)
	join(t, a, b)
	transfer(t, ends{a, b}, ib.Read, 10_000, 1)
}
