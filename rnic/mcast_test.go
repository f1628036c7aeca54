package rnic

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

var (
	mgroup4 = ib.GIDFromAddr(netip.MustParseAddr("239.1.2.3"))
	mgroup6 = ib.GIDFromAddr(netip.MustParseAddr("ff15::3"))
)

func (h *host) datagram(q *QP, gid ib.GID, row int, n int, lkey ib.LKey) {
	h.t.Helper()
	ah, err := h.CreateAH(h.pd, &ib.AV{DGID: gid, SGIDIndex: row})
	if err != nil {
		h.t.Fatal(err)
	}
	wr := ib.SendWR{
		Op: ib.SendImm, Imm: 7, Flags: ib.Signaled, SGL: []ib.SGE{{Addr: testBase, Length: uint32(n), LKey: lkey}},
		UD: ib.Datagram{AH: ah, QPN: 5, QKey: testQKey}, // the QPN means nothing
	}
	if _, err := q.Post([]ib.SendWR{wr}, nil); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) udQP() *QP {
	q := h.qp(ib.UD, nil)
	h.modify(q, initAttr(ib.UD))
	h.modify(q, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	h.modify(q, rtsAttr(ib.UD))
	return q
}

// A packet to a group reaches everybody who is attached, on both adapters, the
// sender too, with the group in the GRH; nobody else, and nobody after leaving.
func TestGroupReachesWhoIsAttached(t *testing.T) {
	for row, gid := range []ib.GID{mgroup4, mgroup6} {
		for _, mode := range []cableMode{asRuns, asPackets} {
			t.Run(fmt.Sprint(gid.Addr(), mode), func(t *testing.T) {
				p := newPair(t, ib.UD, mode, ib.MTU1024, 1<<16, nil)
				qpns := 0
				p.tap = func(_ int, b []byte) bool {
					h, _ := wire.BTHOf(b)
					if h.DestQPN() != ib.QPMulticast {
						qpns++
					}
					return true
				}
				lkeyB := ib.LKey(p.remote.RKey)
				q2, deaf := p.b.udQP(), p.b.udQP()
				all := map[*QP]*host{p.qa: p.a, p.qb: p.b, q2: p.b}
				post := func(h *host, q *QP, id uint64) {
					t.Helper()
					key := lkeyB
					if h == p.a {
						key = p.keyA
					}
					sge := ib.SGE{Addr: testBase + id*1024, Length: 1024, LKey: key}
					if _, err := q.PostRecv([]ib.RecvWR{{ID: id, SGL: []ib.SGE{sge}}}); err != nil {
						t.Fatal(err)
					}
				}
				for i, q := range []*QP{p.qa, p.qb, q2} {
					post(all[q], q, uint64(i+1))
					if err := all[q].AttachMcast(q, gid); err != nil {
						t.Fatal(err)
					}
				}
				post(p.b, deaf, 9)
				for i := range 300 {
					p.bufA[i] = byte(i * 3)
				}
				p.a.datagram(p.qa, gid, row, 300, p.keyA)
				p.settleAll()
				check := func(h *host, buf []byte, ids ...uint64) {
					t.Helper()
					var got []uint64
					for _, wc := range h.poll() {
						if wc.Op != ib.WCRecv {
							continue
						}
						got = append(got, wc.ID)
						if wc.Status != ib.Success || wc.Bytes != 340 || wc.Flags != ib.WCWithGRH|ib.WCWithImm || wc.SrcQPN != p.qa.qpn || int(wc.SGIDIndex) != row {
							t.Errorf("%+v", wc)
						}
						grh := buf[wc.ID*1024:][:40]
						dst := grh[24:40]
						if row == 0 {
							dst = append(bytes.Repeat([]byte{0}, 10), 0xFF, 0xFF, grh[36], grh[37], grh[38], grh[39])
						}
						if ib.GID(dst) != gid || !bytes.Equal(buf[wc.ID*1024+40:][:300], p.bufA[:300]) {
							t.Errorf("receive %d: GRH % x", wc.ID, grh)
						}
					}
					slices.Sort(got)
					if !slices.Equal(got, ids) {
						t.Errorf("received %v, want %v", got, ids)
					}
				}
				check(p.a, p.bufA, 1)
				check(p.b, p.bufB, 2, 3)
				if qpns != 0 {
					t.Errorf("%d packets to another QPN than 0xffffff", qpns)
				}

				if err := p.b.DetachMcast(q2, gid); err != nil {
					t.Fatal(err)
				}
				if err := p.a.DetachMcast(p.qa, gid); err != nil {
					t.Fatal(err)
				}
				post(p.a, p.qa, 4)
				post(p.b, p.qb, 5)
				post(p.b, q2, 6)
				p.a.datagram(p.qa, gid, row, 300, p.keyA)
				p.settleAll()
				check(p.a, p.bufA)
				check(p.b, p.bufB, 5)
				if err := p.b.DetachMcast(p.qb, gid); err != nil {
					t.Fatal(err)
				}
				p.a.datagram(p.qa, gid, row, 300, p.keyA)
				p.settleAll()
				check(p.b, p.bufB)
				if n := p.b.Stats().Get("drop_multicast"); n != 1 || len(p.b.groups) != 0 {
					t.Errorf("%d packets for a group that nobody has", n)
				}
			})
		}
	}
}

// Groups on phantom links: the same headers and completions.
func TestGroupOnPhantomLinks(t *testing.T) {
	p := newPair(t, ib.UD, asPackets, ib.MTU1024, 1<<16, func(c *Config) { c.Wire.Phantom = true })
	lkeyB := ib.LKey(p.remote.RKey)
	for _, x := range []struct {
		h   *host
		q   *QP
		key ib.LKey
	}{{p.a, p.qa, p.keyA}, {p.b, p.qb, lkeyB}} {
		if err := x.h.AttachMcast(x.q, mgroup4); err != nil {
			t.Fatal(err)
		}
		if _, err := x.q.PostRecv([]ib.RecvWR{{ID: 1, SGL: []ib.SGE{{Addr: testBase, Length: 1024, LKey: x.key}}}}); err != nil {
			t.Fatal(err)
		}
	}
	ph, err := p.a.RegisterPhantomMR(p.a.pd, 1024, testBase, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.a.datagram(p.qa, mgroup4, 0, 301, ph.LKey)
	p.settleAll()
	for _, h := range []*host{p.a, p.b} {
		wcs := slices.DeleteFunc(h.poll(), func(wc ib.WC) bool { return wc.Op != ib.WCRecv })
		if len(wcs) != 1 || wcs[0].Bytes != 341 || wcs[0].Flags != ib.WCWithGRH|ib.WCWithImm {
			t.Errorf("%+v", wcs)
		}
	}
}

// The link is asked to join once for each usable address of the family, and to
// leave when the last queue pair goes. A join that fails leaves nothing behind.
func TestGroupIsJoinedAtTheLink(t *testing.T) {
	var calls []string
	refuse := netip.Addr{}
	h := newHost(t, addrA, addrA6, func(c *Config) {
		c.GIDs = append(c.GIDs, gidRows(netip.MustParseAddr("10.0.0.7"))...)
		c.GIDs = append(c.GIDs, GIDEntry{GID: ib.GIDFromAddr(netip.MustParseAddr("10.0.0.8")), Type: ib.GIDTypeRoCEv2, Unusable: "down"})
		c.Join = func(at, group netip.Addr) error {
			if at == refuse {
				return errors.New("not here")
			}
			calls = append(calls, fmt.Sprint("join ", at, " ", group))
			return nil
		}
		c.Leave = func(at, group netip.Addr) { calls = append(calls, fmt.Sprint("leave ", at, " ", group)) }
		c.Limits.MaxMcastGroup, c.Limits.MaxMcastQP = 2, 2
	})
	q1, q2, q3 := h.udQP(), h.udQP(), h.udQP()
	want := func(w ...string) {
		t.Helper()
		if !slices.Equal(calls, w) {
			t.Errorf("calls %q, want %q", calls, w)
		}
		calls = nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	fails := func(err, kind error, text string) {
		t.Helper()
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; want %v and %q", err, kind, text)
		}
	}
	refuse = netip.MustParseAddr("10.0.0.7")
	fails(h.AttachMcast(q1, mgroup4), ErrPath, "not here")
	want("join 10.0.0.1 239.1.2.3", "leave 10.0.0.1 239.1.2.3")
	refuse = netip.Addr{}
	must(h.AttachMcast(q1, mgroup4))
	want("join 10.0.0.1 239.1.2.3", "join 10.0.0.7 239.1.2.3")
	must(h.AttachMcast(q2, mgroup4))
	must(h.AttachMcast(q1, mgroup6))
	want("join fd00::1 ff15::3")
	fails(h.AttachMcast(q1, mgroup4), ErrBusy, "it is attached")
	fails(h.AttachMcast(q3, mgroup4), ErrLimit, "2 of 2 queue pairs")
	fails(h.AttachMcast(q3, ib.GIDFromAddr(netip.MustParseAddr("239.9.9.9"))), ErrLimit, "2 of 2 groups")
	fails(h.AttachMcast(q1, ib.GIDFromAddr(addrB)), ErrInvalid, "not a multicast group")
	fails(h.AttachMcast(h.qp(ib.RC, nil), mgroup4), ErrInvalid, "it is RC")
	fails(h.DetachMcast(q3, mgroup4), ErrInvalid, "not attached")
	fails(h.DestroyQP(0, q1), ErrBusy, "2 multicast groups")
	must(h.DetachMcast(q1, mgroup4))
	want()
	must(h.DetachMcast(q2, mgroup4))
	want("leave 10.0.0.1 239.1.2.3", "leave 10.0.0.7 239.1.2.3")
	must(h.DetachMcast(q1, mgroup6))
	must(h.DestroyQP(0, q1))
	fails(h.AttachMcast(q1, mgroup4), ErrInvalid, "does not exist")

	only4 := newHost(t, addrA, addrA6, func(c *Config) { c.GIDs = gidRows(addrA) })
	fails(only4.AttachMcast(only4.udQP(), mgroup6), ErrPath, "address family")
}

// Whoever sends to a group sends a connected packet, garbage or a wrong ICRC:
// nothing happens.
func TestGroupTakesDatagramsOnly(t *testing.T) {
	p := newPair(t, ib.UD, asPackets, ib.MTU1024, 1<<16, nil)
	if err := p.b.AttachMcast(p.qb, mgroup4); err != nil {
		t.Fatal(err)
	}
	p.recv(1, 1000)
	var pkt wire.Packet
	pkt.PKey, pkt.DestQPN = ib.DefaultPKey, ib.QPMulticast
	for _, op := range []wire.Opcode{wire.RCSendOnly, wire.UCSendOnly, wire.RCAck, wire.CNP, wire.UDSendOnly} {
		pkt.SetOp(op)
		b := make([]byte, pkt.HeaderLen()+4)
		pkt.EncodeHeaders(b)
		p.b.Ingress(0, &frame.Rx{Data: b, Src: addrA, Dst: mgroup4.Addr(), SrcPort: 0xC000})
	}
	s := p.b.Stats()
	if len(p.b.poll()) != 0 || s.Get("drop_multicast") != 4 || s.Get("drop_icrc") != 1 {
		t.Errorf("drop_multicast %d, drop_icrc %d", s.Get("drop_multicast"), s.Get("drop_icrc"))
	}
}

func TestGroupsDoNotAllocate(t *testing.T) {
	p := newPair(t, ib.UD, asRuns, ib.MTU1024, 1<<16, nil)
	for _, x := range []struct {
		h *host
		q *QP
	}{{p.a, p.qa}, {p.b, p.qb}} {
		if err := x.h.AttachMcast(x.q, mgroup4); err != nil {
			t.Fatal(err)
		}
	}
	ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: mgroup4})
	if err != nil {
		t.Fatal(err)
	}
	sgeA := []ib.SGE{{Addr: testBase, Length: 1024, LKey: p.keyA}}
	sgeB := []ib.SGE{{Addr: testBase, Length: 1024, LKey: ib.LKey(p.remote.RKey)}}
	send := []ib.SendWR{{Op: ib.Send, SGL: sgeA[:1], UD: ib.Datagram{AH: ah, QKey: testQKey}}}
	send[0].SGL = []ib.SGE{{Addr: testBase + 2048, Length: 500, LKey: p.keyA}}
	recvA, recvB := []ib.RecvWR{{SGL: sgeA}}, []ib.RecvWR{{SGL: sgeB}}
	var wcs [8]ib.WC
	got := 0
	round := func() {
		_, _ = p.qa.PostRecv(recvA)
		_, _ = p.qb.PostRecv(recvB)
		_, _ = p.qa.Post(send, nil)
		for p.step(0) || p.step(1) {
		}
		p.a.Advance(p.now)
		got += p.a.cq.Poll(wcs[:]) + p.b.cq.Poll(wcs[:])
	}
	for range 100 {
		round()
	}
	got = 0
	if n := testing.AllocsPerRun(200, round); n != 0 || got != 2*201 {
		t.Errorf("%v allocations, %d received", n, got)
	}
}
