package rnic

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// shuttle is carry without a copy: what a link lends.
func shuttle(a, b *host, r *frame.Run) {
	var f frame.Rx
	for moved := true; moved; {
		moved = false
		for from, to := a, b; ; from, to = b, a {
			from.Advance(0)
			for r.Reset(); from.Egress(0, r); r.Reset() {
				moved = true
				f = frame.Rx{Data: r.Buf[:r.N], Seg: r.Seg}
				to.Ingress(0, &f)
			}
			if from == b {
				break
			}
		}
	}
}

// From the post to the completion at both ends no message allocates, in any
// envelope.
func TestEtherAllocatesNothing(t *testing.T) {
	for row, kind := range []roce.Kind{roce.V2IPv4, roce.V2IPv6, roce.V1, roce.V1} {
		for _, op := range []ib.WROp{ib.Send, ib.Write, ib.WriteImm, ib.Read} {
			t.Run(fmt.Sprintf("%v row %d %v", kind, row, op), func(t *testing.T) {
				a, b := etherHost(t, addrA, addrA6, true, 9), etherHost(t, addrB, addrB6, true, 9)
				p, q := a.qp(ib.RC, nil), b.qp(ib.RC, nil)
				a.connect(p, b.GIDs()[row].GID, row, q.Number(), ib.MTU1024)
				b.connect(q, a.GIDs()[row].GID, row, p.Number(), ib.MTU1024)
				const n = 9001
				src, from := a.mr(n)
				dst, into := b.mr(n)
				for i := range n {
					from[i], into[i] = byte(i*3+1), byte(i*5)
				}
				wrs := []ib.SendWR{{Op: op, Flags: ib.Signaled, SGL: []ib.SGE{{Addr: src.Base, Length: n, LKey: src.LKey}}, Remote: ib.Remote{Addr: dst.Base, RKey: dst.RKey}}}
				recvs := []ib.RecvWR{{SGL: []ib.SGE{{Addr: dst.Base, Length: n, LKey: dst.LKey}}}}
				told := op == ib.Send || op == ib.WriteImm
				r := newRun()
				var wcs [4]ib.WC
				message := func() {
					if told {
						if _, err := q.PostRecv(recvs); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := p.Post(wrs, nil); err != nil {
						t.Fatal(err)
					}
					shuttle(a, b, r)
					if k := a.cq.Poll(wcs[:]); k != 1 || wcs[0].Status != ib.Success {
						t.Fatalf("%d completions, %v", k, wcs[0].Status)
					}
					if k := b.cq.Poll(wcs[:]); told != (k == 1) || k == 1 && wcs[0].Status != ib.Success {
						t.Fatalf("%d completions there, %v", k, wcs[0].Status)
					}
				}
				for range 600 { // rings grow where they are first used
					message()
				}
				if got := testing.AllocsPerRun(200, message); got != 0 {
					t.Errorf("%v allocations a message", got)
				}
				if !bytes.Equal(from, into) {
					t.Error("other bytes arrived")
				}
			})
		}
	}
}

// A packet to a group reaches who is attached, at both ends, with the group in
// the GRH, in each envelope; what is damaged, of another version or for nobody is
// counted.
func TestEtherGroups(t *testing.T) {
	for row, kind := range []roce.Kind{roce.V2IPv4, roce.V2IPv6, roce.V1, roce.V1} {
		t.Run(fmt.Sprintf("%v row %d", kind, row), func(t *testing.T) {
			gid := mgroup4
			if row%2 == 1 {
				gid = mgroup6
			}
			a, b := etherHost(t, addrA, addrA6, false, 0), etherHost(t, addrB, addrB6, false, 0)
			p, q, q2, deaf := a.udQP(), b.udQP(), b.udQP(), b.udQP()
			src, from := a.mr(4096)
			dst, into := b.mr(4096)
			for i := range 300 {
				from[i] = byte(i*7 + 1)
			}
			for i, x := range []*QP{q, q2, deaf} {
				if _, err := x.PostRecv([]ib.RecvWR{{ID: uint64(i), SGL: []ib.SGE{{Addr: dst.Base + uint64(i)*1024, Length: 1024, LKey: dst.LKey}}}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := p.PostRecv([]ib.RecvWR{{SGL: []ib.SGE{{Addr: src.Base + 2048, Length: 1024, LKey: src.LKey}}}}); err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct {
				h *host
				q *QP
			}{{a, p}, {b, q}, {b, q2}} {
				if err := x.h.AttachMcast(x.q, gid); err != nil {
					t.Fatal(err)
				}
			}
			a.datagram(p, gid, row, 300, src.LKey)
			var frames [][]byte
			carry(0, a, b, func(e *roce.Envelope) {
				if e.Kind != kind || !e.Verify() || e.Dst != gid {
					t.Errorf("%+v", *e)
				}
				if e.IB[5]&e.IB[6]&e.IB[7] != 0xFF {
					t.Errorf("to QPN %x", e.IB[5:8])
				}
				whole := make([]byte, e.Len()+len(e.IB))
				e.EncodeHeaders(whole, len(e.IB))
				copy(whole[e.Len():], e.IB)
				frames = append(frames, whole)
			})
			check := func(h *host, buf []byte, at, n int) {
				t.Helper()
				var got int
				for _, wc := range h.poll() {
					if wc.Op != ib.WCRecv {
						continue
					}
					got++
					m := buf[at+int(wc.ID)*1024:]
					dst := m[24:40]
					if gid == mgroup4 && kind == roce.V2IPv4 {
						dst = append(bytes.Repeat([]byte{0}, 10), 0xFF, 0xFF, m[36], m[37], m[38], m[39])
					}
					if wc.Status != ib.Success || wc.Bytes != 340 || wc.SrcQPN != p.qpn || int(wc.SGIDIndex) != row || ib.GID(dst) != gid || !bytes.Equal(m[40:340], from[:300]) {
						t.Errorf("%+v, GRH %x", wc, m[:40])
					}
				}
				if got != n {
					t.Errorf("%d received, want %d", got, n)
				}
			}
			check(a, from, 2048, 1)
			check(b, into, 0, 2)
			if len(frames) != 1 {
				t.Fatalf("%d frames", len(frames))
			}

			bad := func(name string, edit func(f []byte) []byte) {
				t.Helper()
				before := b.Stats().Get(name)
				b.Ingress(0, &frame.Rx{Data: edit(slices.Clone(frames[0]))})
				if b.Stats().Get(name) != before+1 || len(b.poll()) != 0 {
					t.Errorf("%s: not counted, or received", name)
				}
			}
			bad("drop_icrc", func(f []byte) []byte { f[len(f)-5] ^= 1; return f })
			for _, x := range []*QP{q, q2} {
				if err := b.DetachMcast(x, gid); err != nil {
					t.Fatal(err)
				}
			}
			bad("drop_multicast", func(f []byte) []byte { return f })
		})
	}
}

// A group is joined at each address once, whatever versions its rows have.
func TestEtherGroupIsJoinedOnce(t *testing.T) {
	var joins []netip.Addr
	h := newHost(t, addrA, addrA6, func(c *Config) {
		c.Wire.Encap = frame.Ethernet
		for _, g := range slices.Clone(c.GIDs) {
			g.Type = ib.GIDTypeRoCEv1
			c.GIDs = append(c.GIDs, g)
		}
		c.Join = func(at, _ netip.Addr) error { joins = append(joins, at); return nil }
	})
	if err := h.AttachMcast(h.udQP(), mgroup4); err != nil || !slices.Equal(joins, []netip.Addr{addrA}) {
		t.Errorf("%v, %v", joins, err)
	}
}
