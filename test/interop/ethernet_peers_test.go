//go:build linux

package interop

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// The Ethernet device towards sockets of the kernel: a device of ours on the UDP
// link, whose runs the kernel leaves in a piece.

// openAt opens a device in a namespace.
func openAt(t testing.TB, s *netns.Space, cfg verbs.Config) *wireEnd {
	t.Helper()
	e := &wireEnd{t: t, addr: cfg.Addr, timeoutExp: 19}
	var err error
	s.Do(func() { e.dev, err = verbs.Open(cfg) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.dev.Close() })
	e.pd = e.dev.AllocPD()
	if e.mr, err = e.pd.RegisterMR(make([]byte, 1<<20), ib.AccessAll); err != nil {
		t.Fatal(err)
	}
	return e
}

// WRITE and READ of a megabyte in both directions: what the UDP link sends as runs
// arrives merged, is cut, and every ICRC is right for the Identification that its
// packet would have had.
func TestEthernetAgainstUDP(t *testing.T) {
	sa, sb := wireCable(t)
	for _, addrs := range [][2]string{{"10.9.0.1", "10.9.0.2"}, {"2001:db8:9::1", "2001:db8:9::2"}} {
		t.Run(addrs[1], func(t *testing.T) {
			a := openWire(t, sa, "v0", netip.MustParseAddr(addrs[0]), 0, false)
			b := openAt(t, sb, verbs.Config{Addr: netip.MustParseAddr(addrs[1])})
			p, q := a.qp(), b.qp()
			var err error
			sb.Do(func() { err = b.toRTS(q, a, p.Num(), ib.GIDTypeRoCEv2, 0) }) // opens a socket
			if err = errors.Join(err, a.toRTS(p, b, q.Num(), ib.GIDTypeRoCEv2, 0)); err != nil {
				t.Fatal(err)
			}
			const n = 1 << 20
			for i, x := range []struct {
				op       ib.WROp
				from, to *wireEnd
				by       wireQP
			}{{ib.Write, a, b, p}, {ib.Write, b, a, q}, {ib.Read, a, b, p}, {ib.Read, b, a, q}} {
				for k := range n {
					x.from.mr.Bytes()[k], x.to.mr.Bytes()[k] = byte(k*7+i), byte(k*11+i+k>>8)
				}
				want := bytes.Clone(x.from.mr.Bytes())
				if x.op == ib.Read {
					want = bytes.Clone(x.to.mr.Bytes())
				}
				if err := x.by.PostSend(ib.SendWR{
					Op: x.op, Flags: ib.Signaled, SGL: x.from.mr.SGE(0, n), Remote: ib.Remote{Addr: x.to.mr.Addr(), RKey: x.to.mr.RKey()},
				}); err != nil {
					t.Fatal(err)
				}
				if wc := x.by.await(t); wc.Status != ib.Success {
					t.Fatalf("%v %d: %+v; %v", x.op, i, wc, a.dev.Stats())
				}
				if !bytes.Equal(x.from.mr.Bytes(), want) || !bytes.Equal(x.to.mr.Bytes(), want) {
					t.Errorf("%v %d: other bytes", x.op, i)
				}
			}
			for _, e := range []*wireEnd{a, b} {
				for _, name := range []string{"drop_icrc", "drop_envelope", "drop_short", "drop_bad_length"} {
					if v := e.dev.Stats().Get(name); v != 0 {
						t.Errorf("%v: %s is %d", e.addr, name, v)
					}
				}
			}
			_ = a.dev.Close()
			if a.tap.merged == 0 {
				t.Error("nothing came in a piece: this kernel cuts before the cable")
			}
		})
	}
}

// groupQP is a UD queue pair with a receive of 1,024 bytes posted at 4,096.
func (e *wireEnd) groupQP(qkey ib.QKey) wireQP {
	e.t.Helper()
	cq, err := e.dev.CreateCQ(verbs.CQConfig{Depth: 16})
	if err != nil {
		e.t.Fatal(err)
	}
	q, err := e.pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		e.t.Fatal(err)
	}
	if err := errors.Join(q.ToInitUD(qkey), q.ToRTR(verbs.Path{}), q.ToRTS(verbs.Path{})); err != nil {
		e.t.Fatal(err)
	}
	return wireQP{q, cq}
}

// Two hosts in one group: each hears the other and itself, until it leaves. Two
// Ethernet devices, and one with the kernel's own multicast at the other end.
func TestEthernetGroups(t *testing.T) {
	sa, sb := wireCable(t)
	const qkey = 0x1234
	for _, x := range []struct {
		name       string
		a, b, grp  string
		otherEther bool
		v          ib.GIDType
	}{
		{"RoCEv2 IPv4", "10.9.0.1", "10.9.0.2", "239.129.2.3", true, ib.GIDTypeRoCEv2},
		{"RoCEv2 IPv6", "2001:db8:9::1", "2001:db8:9::2", "ff15::1:2:3", true, ib.GIDTypeRoCEv2},
		{"RoCEv1", "10.9.0.1", "10.9.0.2", "239.129.2.3", true, ib.GIDTypeRoCEv1},
		{"UDP IPv4", "10.9.0.1", "10.9.0.2", "239.129.2.3", false, ib.GIDTypeRoCEv2},
		{"UDP IPv6", "2001:db8:9::1", "2001:db8:9::2", "ff15::1:2:3", false, ib.GIDTypeRoCEv2},
	} {
		t.Run(x.name, func(t *testing.T) {
			group := netip.MustParseAddr(x.grp)
			a := openAt(t, sa, verbs.Config{Addr: netip.MustParseAddr(x.a), Ethernet: true})
			b := openAt(t, sb, verbs.Config{Addr: netip.MustParseAddr(x.b), Ethernet: x.otherEther})
			p, q := a.groupQP(qkey), b.groupQP(qkey)
			ends := []struct {
				*wireEnd
				s *netns.Space
				q wireQP
			}{{a, sa, p}, {b, sb, q}}
			for _, e := range ends {
				var err error
				e.s.Do(func() { err = e.q.Attach(group) })
				if err != nil {
					t.Fatal(err)
				}
			}
			say := func(from *wireEnd, s *netns.Space, by wireQP, n int) {
				t.Helper()
				for i := range n {
					from.mr.Bytes()[i] = byte(i*5 + n)
				}
				path := verbs.Path{GID: ib.GIDFromAddr(group), GIDIndex: from.row(x.v)}
				var ah *verbs.AH
				var err error
				s.Do(func() { ah, err = from.pd.CreateAH(path.AV()) })
				if err != nil {
					t.Fatal(err)
				}
				if err := by.PostSend(ib.SendWR{Op: ib.Send, SGL: from.mr.SGE(0, n), UD: ib.Datagram{AH: ah.Handle(), QKey: qkey}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, from := range ends {
				for _, e := range ends {
					if err := e.q.PostRecv(ib.RecvWR{SGL: e.mr.SGE(4096, 1064)}); err != nil {
						t.Fatal(err)
					}
				}
				const n = 1001
				say(from.wireEnd, from.s, from.q, n)
				for _, e := range ends {
					if wc := e.q.await(t); wc.Status != ib.Success || wc.Op != ib.WCRecv || wc.Bytes != n+40 || wc.SrcQPN != from.q.Num() ||
						!bytes.Equal(e.mr.Bytes()[4096+40:][:n], from.mr.Bytes()[:n]) {
						t.Errorf("from %v to %v: %+v", from.addr, e.addr, wc)
					}
				}
			}
			// b leaves and joins again: a hears itself all the time, and b not what was
			// said between.
			if err := q.Detach(group); err != nil {
				t.Fatal(err)
			}
			for _, e := range ends {
				if err := e.q.PostRecv(ib.RecvWR{SGL: e.mr.SGE(4096, 1064)}); err != nil {
					t.Fatal(err)
				}
			}
			say(a, sa, p, 500)
			if wc := p.await(t); wc.Status != ib.Success || wc.Bytes != 540 {
				t.Errorf("%+v", wc)
			}
			if x.otherEther {
				// What comes behind it says that it has come and was let go.
				mark, _ := connectWire(t, a, b, x.v, 0)
				a.write(mark, b, 8)
				if wc := mark.await(t); wc.Status != ib.Success {
					t.Fatalf("%+v", wc)
				}
			}
			var err error
			sb.Do(func() { err = q.Attach(group) })
			if err != nil {
				t.Fatal(err)
			}
			if err := p.PostRecv(ib.RecvWR{SGL: a.mr.SGE(4096, 1064)}); err != nil {
				t.Fatal(err)
			}
			say(a, sa, p, 600)
			if wc := q.await(t); wc.Status != ib.Success || wc.Bytes != 640 {
				t.Errorf("the first message after joining again: %+v", wc)
			}
		})
	}
}

// A fault plan around an Ethernet device does to both versions of RoCE exactly
// what it does to UDP: so many packets, and every byte is right in the end.
func TestEthernetFaultPlan(t *testing.T) {
	sa, sb := wireCable(t)
	for _, v := range []ib.GIDType{ib.GIDTypeRoCEv1, ib.GIDTypeRoCEv2} {
		t.Run(v.String(), func(t *testing.T) {
			p, err := faultplan.Parse("plan", []byte("seed: 5\nrules:\n"+
				"- {inject: lose, direction: out, opcode: write, position: first, nth: 3}\n"+
				"- {inject: corrupt, direction: out, opcode: write, position: last, count: 2}\n"+
				"- {inject: duplicate, opcode: ack, count: 3}\n"))
			if err != nil {
				t.Fatal(err)
			}
			a := openAt(t, sa, verbs.Config{Addr: netip.MustParseAddr("10.9.0.1"), Ethernet: true, Faults: p})
			b := openAt(t, sb, verbs.Config{Addr: netip.MustParseAddr("10.9.0.2"), Ethernet: true})
			a.timeoutExp = 14
			q, _ := connectWire(t, a, b, v, 0)
			for i := range 8 {
				for k := range cableMessage {
					a.mr.Bytes()[k] = byte(k*3 + i)
				}
				a.write(q, b, cableMessage)
				if wc := q.await(t); wc.Status != ib.Success {
					t.Fatalf("message %d: %+v", i, wc)
				}
				if !bytes.Equal(a.mr.Bytes()[:cableMessage], b.mr.Bytes()[:cableMessage]) {
					t.Fatalf("message %d: other bytes", i)
				}
			}
			r, ok := a.dev.Faults()
			if !ok || r.Rules[0].Hits != 1 || r.Rules[1].Hits != 2 || r.Rules[2].Hits != 3 {
				t.Errorf("injected %+v, want 1, 2 and 3", r.Rules)
			}
			if n := b.dev.Stats().Get("drop_icrc"); n != 2 {
				t.Errorf("%d packets with a wrong ICRC came, 2 were made", n)
			}
		})
	}
}
