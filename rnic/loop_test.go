package rnic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// post posts one request and lets everything settle.
func (p *pair) post(w ib.SendWR) {
	p.t.Helper()
	w.Flags |= ib.Signaled
	if _, err := p.qa.Post([]ib.SendWR{w}, nil); err != nil {
		p.t.Fatal(err)
	}
	p.settle()
}

// settleAll also lets due timers fire: the engines of unreliable services
// complete with the call after the last packet.
func (p *pair) settleAll() {
	for {
		p.cable.settle()
		if p.a.Deadline() > p.now && p.b.Deadline() > p.now {
			return
		}
		p.a.Advance(p.now)
		p.b.Advance(p.now)
	}
}

func (p *pair) sgl(off, n int) []ib.SGE {
	return []ib.SGE{{Addr: testBase + uint64(off), Length: uint32(n), LKey: p.keyA}}
}

func (p *pair) recv(id uint64, n int) {
	p.t.Helper()
	key := ib.LKey(p.remote.RKey)
	if _, err := p.qb.PostRecv([]ib.RecvWR{{ID: id, SGL: []ib.SGE{{Addr: testBase, Length: uint32(n), LKey: key}}}}); err != nil {
		p.t.Fatal(err)
	}
}

func wantWC(t *testing.T, got []ib.WC, want ...ib.WC) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("completions\n got %+v\nwant %+v", got, want)
	}
}

var loopSizes = []int{0, 1, 2, 3, 4, 63, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 5000, 65536, 65537, 300001}

// Every operation of every service carries its bytes, whichever way packets
// arrive and whatever the path MTU.
func TestEveryOperationCarriesItsBytes(t *testing.T) {
	for _, mode := range []cableMode{asRuns, asPackets, copied} {
		for _, mtu := range []ib.MTU{ib.MTU256, ib.MTU1024, ib.MTU4096} {
			for _, typ := range []ib.QPType{ib.RC, ib.UC} {
				t.Run(fmt.Sprintf("%v/mtu=%v/mode=%d", typ, mtu, mode), func(t *testing.T) {
					p := newPair(t, typ, mode, mtu, 1<<19, nil)
					for i, n := range loopSizes {
						for j := range p.bufA {
							p.bufA[j] = byte(j*7 + i + n)
						}
						same := func(what string) {
							t.Helper()
							if !bytes.Equal(p.bufA[:n], p.bufB[:n]) {
								t.Fatalf("%s of %d bytes: different", what, n)
							}
							clear(p.bufB)
						}
						done := ib.WC{ID: 7, QPN: p.qa.qpn}
						p.post(ib.SendWR{ID: 7, Op: ib.Write, SGL: p.sgl(0, n), Remote: p.remote})
						p.settleAll()
						done.Op = ib.WCWrite
						wantWC(t, p.a.poll(), done)
						same("WRITE")

						p.recv(3, 0)
						p.post(ib.SendWR{ID: 7, Op: ib.WriteImm, SGL: p.sgl(0, n), Remote: p.remote, Imm: 0xA1B2C3D4})
						p.settleAll()
						wantWC(t, p.a.poll(), done)
						got := p.b.poll()
						if len(got) != 1 || got[0].Op != ib.WCRecvImm || got[0].Imm != 0xA1B2C3D4 || got[0].Flags != ib.WCWithImm || got[0].ID != 3 || got[0].Bytes != uint32(n) {
							t.Fatalf("WRITE with immediate of %d bytes: %+v", n, got)
						}
						same("WRITE with immediate")

						p.recv(4, 1<<19)
						p.post(ib.SendWR{ID: 7, Op: ib.SendImm, SGL: p.sgl(0, n), Imm: 5})
						p.settleAll()
						done.Op = ib.WCSend
						wantWC(t, p.a.poll(), done)
						got = p.b.poll()
						if len(got) != 1 || got[0].Op != ib.WCRecv || got[0].Imm != 5 || got[0].Bytes != uint32(n) || got[0].QPN != p.qb.qpn {
							t.Fatalf("SEND of %d bytes: %+v", n, got)
						}
						same("SEND")

						if typ != ib.RC {
							continue
						}
						copy(p.bufB, p.bufA[:n])
						clear(p.bufA)
						p.post(ib.SendWR{ID: 7, Op: ib.Read, SGL: p.sgl(0, n), Remote: p.remote})
						done.Op, done.Bytes = ib.WCRead, uint32(n)
						wantWC(t, p.a.poll(), done)
						same("READ")
					}
					for _, h := range []*host{p.a, p.b} {
						if d := dropsOf(h.Adapter); len(d) != 0 || h.Stats().Get("icrc_solved") > 2 || h.Stats().Get("retransmitted") != 0 {
							t.Errorf("drops %v, solved %d", d, h.Stats().Get("icrc_solved"))
						}
					}
					sent, rcvd := p.a.Stats(), p.b.Stats()
					if sent.Get("sent_pkts") != rcvd.Get("rcvd_pkts") || sent.Get("sent_bytes") != rcvd.Get("rcvd_bytes") || sent.Get("tx_copied_bytes") != rcvd.Get("rx_copied_bytes") {
						t.Errorf("sent %d packets, received %d", sent.Get("sent_pkts"), rcvd.Get("rcvd_pkts"))
					}
				})
			}
		}
	}
}

func TestAtomics(t *testing.T) {
	p := newPair(t, ib.RC, asRuns, ib.MTU1024, 4096, nil)
	word := func(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
	binary.NativeEndian.PutUint64(p.bufB, 40)
	p.post(ib.SendWR{Op: ib.FetchAdd, SGL: p.sgl(0, 8), Remote: p.remote, SwapAdd: 2})
	p.post(ib.SendWR{Op: ib.CompareSwap, SGL: p.sgl(8, 8), Remote: p.remote, Compare: 42, SwapAdd: 99})
	p.post(ib.SendWR{Op: ib.CompareSwap, SGL: p.sgl(16, 8), Remote: p.remote, Compare: 1, SwapAdd: 7})
	got := p.a.poll()
	if len(got) != 3 || got[0].Op != ib.WCFetchAdd || got[1].Op != ib.WCCompareSwap || got[2].Status != ib.Success {
		t.Fatalf("%+v", got)
	}
	if word(p.bufA) != 40 || word(p.bufA[8:]) != 42 || word(p.bufA[16:]) != 99 || word(p.bufB) != 99 {
		t.Errorf("%d %d %d, %d at the peer", word(p.bufA), word(p.bufA[8:]), word(p.bufA[16:]), word(p.bufB))
	}
}

func TestDatagramArrivesBehindItsGRH(t *testing.T) {
	for row, dst := range []ib.GID{ib.GIDFromAddr(addrB), ib.GIDFromAddr(addrB6)} {
		p := newPair(t, ib.UD, asRuns, 0, 1<<16, nil)
		ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: dst, SGIDIndex: row})
		if err != nil {
			t.Fatal(err)
		}
		copy(p.bufA, payload(4096))
		for _, n := range []int{0, 1, 33, 4096} {
			p.recv(9, 40+4096)
			p.post(ib.SendWR{ID: 1, Op: ib.Send, SGL: p.sgl(0, n), UD: ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}})
			p.settleAll()
			wantWC(t, p.a.poll(), ib.WC{ID: 1, Op: ib.WCSend, QPN: p.qa.qpn})
			got := p.b.poll()
			if len(got) != 1 || got[0].Bytes != uint32(40+n) || got[0].SrcQPN != p.qa.qpn || got[0].Flags&ib.WCWithGRH == 0 || got[0].SGIDIndex != uint16(row) {
				t.Fatalf("%d bytes: %+v; %v", n, got, dropsOf(p.b.Adapter))
			}
			if !bytes.Equal(p.bufB[40:40+n], p.bufA[:n]) {
				t.Errorf("%d bytes: different", n)
			}
			if v := p.bufB[20*(1-row)] >> 4; int(v) != 4+2*row {
				t.Errorf("IP version %d in the GRH", v)
			}
		}
	}
}

func TestLoopbackTakesTheRoadOfTheWire(t *testing.T) {
	h := newHost(t, addrA, addrA6, nil)
	q1, q2 := h.qp(ib.RC, nil), h.qp(ib.RC, nil)
	h.connect(q1, ib.GIDFromAddr(addrA), 0, q2.qpn, ib.MTU1024)
	h.connect(q2, ib.GIDFromAddr(addrA), 0, q1.qpn, ib.MTU1024)
	mr, buf := h.mr(8192)
	copy(buf, payload(4000))
	c := newCable(t, h.Adapter, h.Adapter, asRuns)
	_, err := q1.Post([]ib.SendWR{{
		Op: ib.Write, Flags: ib.Signaled, SGL: []ib.SGE{{Addr: mr.Base, Length: 4000, LKey: mr.LKey}},
		Remote: ib.Remote{Addr: mr.Base + 4096, RKey: mr.RKey},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	if wcs := h.poll(); len(wcs) != 1 || wcs[0].Status != ib.Success || !bytes.Equal(buf[:4000], buf[4096:8096]) {
		t.Errorf("%+v", wcs)
	}
	if s := h.Stats(); s.Get("sent_pkts") == 0 || s.Get("sent_pkts") != s.Get("rcvd_pkts") {
		t.Errorf("%d packets sent, %d received", s.Get("sent_pkts"), s.Get("rcvd_pkts"))
	}
}

// Loss is repaired by timers and NAKs, all through Advance and Deadline.
func TestLossIsRepaired(t *testing.T) {
	for _, typ := range []ib.WROp{ib.Write, ib.Send, ib.Read} {
		for drop := range 24 {
			p := newPair(t, ib.RC, asRuns, ib.MTU256, 1<<14, nil)
			n := 0
			p.tap = func(int, []byte) bool { n++; return n != drop+1 }
			copy(p.bufA, payload(4000))
			if typ == ib.Read {
				copy(p.bufB, payload(4000))
				clear(p.bufA)
			}
			p.recv(1, 4000)
			p.post(ib.SendWR{Op: typ, SGL: p.sgl(0, 4000), Remote: p.remote})
			for len(p.a.poll()) == 0 {
				next := clock.Min(p.a.Deadline(), p.b.Deadline())
				if next == clock.Never || next > clock.Time(time.Minute) {
					t.Fatalf("%v, packet %d dropped: no completion", typ, drop)
				}
				p.now = max(p.now, next)
				p.settle()
			}
			if !bytes.Equal(p.bufA[:4000], p.bufB[:4000]) {
				t.Errorf("%v, packet %d dropped: different bytes", typ, drop)
			}
		}
	}
}

// A packet with a wrong ICRC changes no byte of memory, and is repaired like a
// lost one.
func TestCorruptionChangesNothing(t *testing.T) {
	p := newPair(t, ib.RC, asRuns, ib.MTU256, 1<<14, nil)
	n := 0
	p.tap = func(from int, b []byte) bool {
		if n++; n%5 != 0 {
			return true
		}
		b[len(b)/2] ^= 0x10
		bufs := [2][]byte{slices.Clone(p.bufA), slices.Clone(p.bufB)}
		to, src, dst := p.b, addrA, addrB
		if from == 1 {
			to, src, dst = p.a, addrB, addrA
		}
		to.Ingress(p.now, &frame.Rx{Data: b, Src: src, Dst: dst, SrcPort: p.run.SrcPort})
		if !bytes.Equal(bufs[0], p.bufA) || !bytes.Equal(bufs[1], p.bufB) {
			t.Errorf("packet %d: memory has changed", n)
		}
		return false
	}
	copy(p.bufA, payload(4000))
	p.post(ib.SendWR{Op: ib.Write, SGL: p.sgl(0, 4000), Remote: p.remote})
	for len(p.a.poll()) == 0 {
		p.now = max(p.now, clock.Min(p.a.Deadline(), p.b.Deadline()))
		if p.now == clock.Never {
			t.Fatal("stuck")
		}
		p.settle()
	}
	if !bytes.Equal(p.bufA[:4000], p.bufB[:4000]) {
		t.Error("different bytes")
	}
	if p.b.Stats().Get("drop_icrc") == 0 {
		t.Error("nothing dropped")
	}
}

// The same conversation with bytes and with phantom memory has the same
// headers.
func TestPhantomMemoryGivesTheSameTranscript(t *testing.T) {
	talk := func(phantom bool) []string {
		p := newPair(t, ib.RC, asPackets, ib.MTU1024, 1<<16, nil)
		ka, rb := p.keyA, p.remote
		if phantom {
			ra, err := p.a.RegisterPhantomMR(p.a.pd, 1<<16, testBase, ib.LocalWrite|ib.RemoteAll)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.b.RegisterPhantomMR(p.b.pd, 1<<16, testBase, ib.LocalWrite|ib.RemoteAll)
			if err != nil {
				t.Fatal(err)
			}
			ka, rb = ra.LKey, ib.Remote{Addr: r.Base, RKey: r.RKey}
		}
		var log []string
		drop := 0
		p.tap = func(from int, b []byte) bool {
			var w wire.Packet
			w.Decode(b[:len(b)-4])
			n := len(w.Payload)
			w.Payload, w.RETH.RKey, w.Atomic.RKey, w.Info = nil, 0, 0, nil
			log = append(log, fmt.Sprintf("%d %v %d", from, w, n))
			drop++
			return drop%7 != 0
		}
		for _, op := range []ib.WROp{ib.Write, ib.Read, ib.Send, ib.WriteImm} {
			if _, err := p.qb.PostRecv([]ib.RecvWR{{SGL: []ib.SGE{{Addr: testBase, Length: 1 << 15, LKey: ib.LKey(rb.RKey)}}}}); err != nil {
				t.Fatal(err)
			}
			sgl := []ib.SGE{{Addr: testBase + 5, Length: 9001, LKey: ka}}
			p.post(ib.SendWR{Op: op, SGL: sgl, Remote: rb})
			for len(p.a.poll()) == 0 {
				p.now = max(p.now, clock.Min(p.a.Deadline(), p.b.Deadline()))
				if p.now == clock.Never {
					t.Fatal("stuck")
				}
				p.settle()
			}
		}
		return log
	}
	real, phantom := talk(false), talk(true)
	if !slices.Equal(real, phantom) {
		t.Errorf("%d and %d packets differ", len(real), len(phantom))
		for i := range min(len(real), len(phantom)) {
			if real[i] != phantom[i] {
				t.Fatalf("packet %d\n%s\n%s", i, real[i], phantom[i])
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	type work struct {
		typ   ib.QPType
		n     int
		batch int
		wr    ib.SendWR
	}
	write := ib.SendWR{Op: ib.Write}
	for name, w := range map[string]work{
		"RC WRITE 64 KiB":      {ib.RC, 64 << 10, 1, write},
		"RC WRITE 64 B × 32":   {ib.RC, 64, 32, write},
		"RC SEND 4 KiB":        {ib.RC, 4096, 1, ib.SendWR{Op: ib.Send}},
		"RC READ 64 KiB":       {ib.RC, 64 << 10, 1, ib.SendWR{Op: ib.Read}},
		"RC FETCH_ADD":         {ib.RC, 8, 1, ib.SendWR{Op: ib.FetchAdd}},
		"RC WRITE 64 B inline": {ib.RC, 64, 1, ib.SendWR{Op: ib.Write, Flags: ib.Inline}},
		"UC WRITE 64 KiB":      {ib.UC, 64 << 10, 1, write},
		"UC SEND 64 KiB":       {ib.UC, 64 << 10, 1, ib.SendWR{Op: ib.Send}},
		"UD SEND 1 KiB × 32":   {ib.UD, 1024, 32, ib.SendWR{Op: ib.Send}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, w.typ, asRuns, ib.MTU4096, 128<<10, func(c *Config) { c.Wire.RxBytes = 200 << 10 })
			w.wr.Remote = p.remote
			w.wr.Flags |= ib.Signaled
			if w.wr.Flags&ib.Inline != 0 {
				w.wr.InlineData = p.bufA[:w.n]
			} else {
				w.wr.SGL = p.sgl(0, w.n)
			}
			if w.typ == ib.UD {
				ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
				if err != nil {
					t.Fatal(err)
				}
				w.wr.UD = ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}
			}
			wrs, rrs := make([]ib.SendWR, w.batch), make([]ib.RecvWR, w.batch)
			for i := range wrs {
				wrs[i] = w.wr
				rrs[i] = ib.RecvWR{SGL: []ib.SGE{{Addr: testBase, Length: uint32(w.n) + 40, LKey: ib.LKey(p.remote.RKey)}}}
			}
			batch := func() {
				if w.wr.Op.IsSend() {
					if _, err := p.qb.PostRecv(rrs); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := p.qa.Post(wrs, nil); err != nil {
					t.Fatal(err)
				}
				p.settleAll()
				if n := p.drain(); n != w.batch {
					t.Fatalf("%d completions of %d", n, w.batch)
				}
				if n := p.b.cq.Poll(p.wcs[:]); w.wr.Op.IsSend() && n != w.batch {
					t.Fatalf("%d of %d received; %v", n, w.batch, dropsOf(p.b.Adapter))
				}
			}
			for range 5000/w.batch + 1 { // rings allocate where they are first used
				batch()
			}
			if n := testing.AllocsPerRun(100, batch); n != 0 {
				t.Errorf("%v allocations a batch", n)
			}
		})
	}
}
