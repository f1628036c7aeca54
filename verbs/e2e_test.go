package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// places are the ways in which two ends can lie.
var places = []struct {
	name string
	ends func(t *testing.T, typ ib.QPType) ends
}{
	{"in memory", func(t *testing.T, typ ib.QPType) ends { return newPairMem(t, typ, nil) }},
	{"two addresses", func(t *testing.T, typ ib.QPType) ends { return newPairUDP(t, typ) }},
	{"one device IPv4", func(t *testing.T, typ ib.QPType) ends { return newEndsOfOne(t, typ, addrA) }},
	{"one device IPv6", func(t *testing.T, typ ib.QPType) ends { return newEndsOfOne(t, typ, netip.IPv6Loopback()) }},
}

func newEndsOfOne(t *testing.T, typ ib.QPType, addr netip.Addr) ends {
	t.Helper()
	dev := open(t, verbs.Config{Addr: addr, Port: testPort})
	a, b := newEnd(t, dev, typ), newEnd(t, dev, typ)
	join(t, a, b)
	return ends{a, b}
}

// sizes around every boundary of a path MTU.
func sizes(mtu int, most int) []int {
	all := []int{0, 1, 2, 3, 4, 5, 63, 64, mtu - 1, mtu, mtu + 1, 2*mtu - 1, 2 * mtu, 2*mtu + 1, 64 << 10, 300_001}
	var out []int
	for _, n := range all {
		if n <= most {
			out = append(out, n)
		}
	}
	return out
}

// Every operation that a transport has, at every size that is special, moves
// exactly its bytes and completes as it should at both ends.
func TestOperations(t *testing.T) {
	for _, place := range places {
		for typ, ops := range map[ib.QPType][]ib.WROp{
			ib.RC: {ib.Write, ib.WriteImm, ib.Send, ib.SendImm, ib.Read},
			ib.UC: {ib.Write, ib.WriteImm, ib.Send, ib.SendImm},
			ib.UD: {ib.Send, ib.SendImm},
		} {
			t.Run(fmt.Sprintf("%s/%v", place.name, typ), func(t *testing.T) {
				p := place.ends(t, typ)
				mtu := p.a.peer.Path.MTU.Bytes()
				most := regionBytes / 2
				if typ == ib.UD {
					most = mtu
				}
				seed := uint64(0)
				for _, op := range ops {
					for _, n := range sizes(mtu, most) {
						for _, dir := range []ends{p, {p.b, p.a}} {
							seed++
							transfer(t, dir, op, n, seed)
							if t.Failed() {
								t.Fatalf("%v of %d bytes failed", op, n)
							}
						}
					}
				}
			})
		}
	}
}

const (
	srcOff = 0
	dstOff = regionBytes/2 + 24 // not aligned to a page
)

// transfer moves n bytes from p.a to p.b (with a READ, too) and checks bytes,
// neighbours and completions.
func transfer(t *testing.T, p ends, op ib.WROp, n int, seed uint64) {
	t.Helper()
	src, dst := p.a, p.b
	if op == ib.Read {
		src, dst = p.b, p.a
	}
	payload := src.mr.Bytes()[srcOff : srcOff+n]
	fill(payload, seed)
	grh := 0
	if p.a.qp.Type() == ib.UD {
		grh = 40
	}
	landing := dst.mr.Bytes()[dstOff-8 : dstOff+grh+n+8]
	for i := range landing {
		landing[i] = 0xEE
	}

	wr := ib.SendWR{ID: seed, Op: op, Flags: ib.Signaled, SGL: p.a.mr.SGE(srcOff, n), Imm: uint32(seed)}
	if p.a.qp.Type() == ib.UD {
		wr.UD = p.a.peer.Datagram()
	}
	switch op {
	case ib.Write, ib.WriteImm:
		wr.Remote = p.a.peer.At(dstOff)
	case ib.Read:
		wr.SGL, wr.Remote = p.a.mr.SGE(dstOff, n), p.a.peer.At(srcOff)
	}
	recv := op.IsSend() || op.HasImm()
	if recv {
		if err := p.b.qp.PostRecv(ib.RecvWR{ID: ^seed, SGL: p.b.mr.SGE(dstOff, grh+n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.a.qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	wc := p.a.await(t)
	wantOp := map[ib.WROp]ib.WCOp{ib.Write: ib.WCWrite, ib.WriteImm: ib.WCWrite, ib.Send: ib.WCSend, ib.SendImm: ib.WCSend, ib.Read: ib.WCRead}[op]
	if wc.Status != ib.Success || wc.ID != seed || wc.Op != wantOp || wc.QPN != p.a.qp.Num() {
		t.Errorf("requester's completion: %+v", wc)
	}
	if recv {
		wc := p.b.await(t)
		want := ib.WC{ID: ^seed, Op: ib.WCRecv, QPN: p.b.qp.Num(), Bytes: uint32(n + grh), SrcQPN: p.a.qp.Num()}
		if op.HasImm() {
			want.Flags, want.Imm = ib.WCWithImm, uint32(seed)
		}
		if op == ib.WriteImm {
			want.Op = ib.WCRecvImm
		}
		if grh != 0 {
			want.Flags |= ib.WCWithGRH
		} else {
			want.SrcQPN = wc.SrcQPN // means something for UD only
		}
		if wc != want {
			t.Errorf("responder's completion: %+v\nwant %+v", wc, want)
		}
	} else if p.a.qp.Type() == ib.UC {
		// A WRITE without immediate over UC tells nobody; a SEND behind it does.
		if err := p.b.qp.PostRecv(ib.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		if err := p.a.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled}); err != nil {
			t.Fatal(err)
		}
		p.a.await(t)
		p.b.await(t)
	}
	got := landing[8+grh : 8+grh+n]
	if !bytes.Equal(got, payload) {
		t.Errorf("%v of %d bytes: data differs", op, n)
	}
	for _, edge := range [][]byte{landing[:8], landing[8+grh+n:]} {
		for _, b := range edge {
			if b != 0xEE {
				t.Errorf("%v of %d bytes: a neighbour was changed", op, n)
				return
			}
		}
	}
}

func TestAtomics(t *testing.T) {
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			p := place.ends(t, ib.RC)
			word := p.b.mr.Bytes()[64:72]
			result := func() uint64 { return binary.NativeEndian.Uint64(p.a.mr.Bytes()[8:16]) }
			binary.NativeEndian.PutUint64(word, 100)
			for _, step := range []struct {
				wr     ib.SendWR
				before uint64
				after  uint64
			}{
				{ib.SendWR{Op: ib.FetchAdd, SwapAdd: 5}, 100, 105},
				{ib.SendWR{Op: ib.FetchAdd, SwapAdd: ^uint64(0)}, 105, 104},
				{ib.SendWR{Op: ib.CompareSwap, Compare: 1, SwapAdd: 7}, 104, 104},
				{ib.SendWR{Op: ib.CompareSwap, Compare: 104, SwapAdd: 7}, 104, 7},
			} {
				wr := step.wr
				wr.Flags, wr.SGL, wr.Remote = ib.Signaled, p.a.mr.SGE(8, 8), p.a.peer.At(64)
				if err := p.a.qp.PostSend(wr); err != nil {
					t.Fatal(err)
				}
				if wc := p.a.await(t); wc.Status != ib.Success || wc.Bytes != 8 {
					t.Errorf("%v: %+v", wr.Op, wc)
				}
				if got, now := result(), binary.NativeEndian.Uint64(word); got != step.before || now != step.after {
					t.Errorf("%v: fetched %d, left %d; want %d, %d", wr.Op, got, now, step.before, step.after)
				}
			}
		})
	}
}

// Lists of several elements, inline data from lists and from plain memory.
func TestListsAndInline(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		t.Run(typ.String(), func(t *testing.T) {
			p := newPairMem(t, typ, nil)
			grh := 0
			if typ == ib.UD {
				grh = 40
			}
			src := p.a.mr.Bytes()
			fill(src[:4096], 3)
			list := []ib.SGE{p.a.mr.SGE(10, 33)[0], p.a.mr.SGE(100, 0)[0], p.a.mr.SGE(500, 64)[0], p.a.mr.SGE(7, 1)[0]}
			want := append(append(append([]byte(nil), src[10:43]...), src[500:564]...), src[7])
			for _, flags := range []ib.SendFlags{ib.Signaled, ib.Signaled | ib.Inline} {
				scatter := []ib.SGE{p.b.mr.SGE(0, grh+5)[0], p.b.mr.SGE(1000, 50)[0], p.b.mr.SGE(2000, 100)[0]}
				if err := p.b.qp.PostRecv(ib.RecvWR{SGL: scatter}); err != nil {
					t.Fatal(err)
				}
				wr := ib.SendWR{Op: ib.Send, Flags: flags, SGL: list}
				if typ == ib.UD {
					wr.UD = p.a.peer.Datagram()
				}
				if err := p.a.qp.PostSend(wr); err != nil {
					t.Fatal(err)
				}
				if wc := p.b.await(t); wc.Status != ib.Success || int(wc.Bytes) != grh+len(want) {
					t.Fatalf("%+v", wc)
				}
				p.a.await(t)
				dst := p.b.mr.Bytes()
				got := append(append(append([]byte(nil), dst[grh:grh+5]...), dst[1000:1050]...), dst[2000:2000+len(want)-55]...)
				if !bytes.Equal(got, want) {
					t.Errorf("flags %b: data differs", flags)
				}
				clear(dst[:4096])
			}
			// Inline data that is not registered, changed right after posting.
			plain := []byte("not registered")
			if err := p.b.qp.PostRecv(ib.RecvWR{SGL: p.b.mr.SGE(0, 400)}); err != nil {
				t.Fatal(err)
			}
			wr := ib.SendWR{Op: ib.Send, Flags: ib.Inline | ib.Signaled, InlineData: plain}
			if typ == ib.UD {
				wr.UD = p.a.peer.Datagram()
			}
			if err := p.a.qp.PostSend(wr); err != nil {
				t.Fatal(err)
			}
			clear(plain)
			p.b.await(t)
			p.a.await(t)
			if got := string(p.b.mr.Bytes()[grh : grh+14]); got != "not registered" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Inline data is read under the QP's own protection domain, and inside the
// region; anything else is refused when posted.
func TestInlineOfForeignMemory(t *testing.T) {
	p := newPairMem(t, ib.RC, nil)
	other, err := p.a.dev.AllocPD().RegisterMR(make([]byte, 64), ib.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	for name, sgl := range map[string][]ib.SGE{
		"another domain's": other.SGE(0, 8),
		"beyond the end":   p.a.mr.SGE(regionBytes-4, 8),
		"no region's":      {{Addr: p.a.mr.Addr(), Length: 8, LKey: p.a.mr.LKey() + 1}},
	} {
		err := p.a.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: sgl})
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// One-sided traffic is served while the target's program does nothing at all.
func TestOneSidedWithoutTheTarget(t *testing.T) {
	p := newPairUDP(t, ib.RC)
	for i := range 50 {
		if err := p.a.qp.PostSend(ib.SendWR{Op: ib.Read, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 100_000), Remote: p.a.peer.At(i)}); err != nil {
			t.Fatal(err)
		}
		if wc := p.a.await(t); wc.Status != ib.Success {
			t.Fatal(wc)
		}
	}
}

// Many queue pairs of one device talk to many of another.
func TestManyQPs(t *testing.T) {
	a, b := open(t, verbs.Config{Addr: addrA, Port: testPort}), open(t, verbs.Config{Addr: addrB, Port: testPort})
	var all []ends
	for range 40 {
		p := ends{newEnd(t, a, ib.RC), newEnd(t, b, ib.RC)}
		join(t, p.a, p.b)
		all = append(all, p)
	}
	for i, p := range all {
		fill(p.a.mr.Bytes()[:10_000], uint64(i))
		if err := p.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 10_000), Remote: p.a.peer.At(0)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range all {
		if wc := p.a.await(t); wc.Status != ib.Success {
			t.Fatalf("QP %d: %+v", i, wc)
		}
		if !bytes.Equal(p.a.mr.Bytes()[:10_000], p.b.mr.Bytes()[:10_000]) {
			t.Errorf("QP %d: data differs", i)
		}
	}
}
