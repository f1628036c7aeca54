package rnic

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
	"github.com/verbena-rdma/verbena/wire"
)

func preset(t testing.TB, name string) dcqcn.Params {
	t.Helper()
	p, err := dcqcn.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withDCQCN is a link with bytes and the named preset.
func withDCQCN(t testing.TB, name string, edit func(*Config)) func(*Config) {
	params := preset(t, name)
	return func(c *Config) {
		c.DCQCN, c.LineRate, c.CNPPrio, c.CNPTOS = &params, lineRate, params.CNPPrio, params.CNPDSCP<<2
		if edit != nil {
			edit(c)
		}
	}
}

// markingPair is two hosts with DCQCN; carry moves and marks packets between them.
func markingPair(t testing.TB, typ ib.QPType, preset string, edit func(*Config)) *pair {
	return newPair(t, typ, asRuns, ib.MTU1024, 1<<20, withDCQCN(t, preset, edit))
}

// carry moves one run from an end, marked if it may be; the run stays in p.run.
func (p *pair) carry(from int, mark bool) bool {
	p.run.Reset()
	if !p.ends[from].Egress(p.now, &p.run) {
		return false
	}
	rx := rxOf(&p.run)
	if mark && rx.TOS&3 != 0 {
		rx.TOS |= 3
	}
	p.ends[1-from].Ingress(p.now, rx)
	return true
}

// at moves both ends to an instant.
func (p *pair) at(now time.Duration) {
	p.now = clock.Time(now)
	for _, a := range p.ends {
		a.Advance(p.now)
	}
}

// A marked packet is answered with a CNP at once, ahead of the ACK; then at most
// one in 50 µs, whatever comes (SIGCOMM'15 DCQCN §3). It is the packet of IBA
// vol.1 annex A17.9.3, on its own priority; nothing about it but that goes back
// is like the flow.
func TestMarkedPacketGivesCNP(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, phantom := range []bool{false, true} {
			p := markingPair(t, typ, "paper", func(c *Config) { c.Wire.Phantom = phantom })
			send := func() {
				wr := ib.SendWR{Op: ib.Write, Remote: p.remote, SGL: []ib.SGE{{Addr: testBase, Length: 100, LKey: p.keyA}}}
				if typ == ib.UD {
					ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB), SL: 3})
					if err != nil {
						t.Fatal(err)
					}
					wr.Op, wr.UD = ib.Send, ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}
				}
				if _, err := p.qa.Post([]ib.SendWR{wr}, nil); err != nil {
					t.Fatal(err)
				}
				for p.carry(0, true) {
				}
			}
			cnps := 0
			for i := range 25 {
				p.at(time.Duration(i) * 5 * time.Microsecond) // 0 to 120 µs
				send()
				for p.carry(1, true) {
					r := &p.run
					if wire.Opcode(r.Buf[0]) != wire.CNP {
						continue
					}
					if cnps++; i%10 != 0 {
						t.Errorf("%v: a CNP at %v", typ, p.now)
					}
					h, _ := wire.BTHOf(r.Buf)
					if h.DestQPN() != p.qa.qpn || !h.BECN() || h.FECN() || h.AckReq() || h.PSN() != 0 || r.WireLen != 32 {
						t.Errorf("%v: CNP % x, %d bytes", typ, r.Buf[:r.N], r.WireLen)
					}
					if r.Src != addrB || r.Dst != addrA || r.TOS != 48<<2 || r.Prio != 6 || !r.CNP || r.QPN != uint32(p.qb.qpn) {
						t.Errorf("%v: CNP in run %+v", typ, *r)
					}
				}
			}
			b, a := p.b.Stats(), p.a.Stats()
			if cnps != 3 || b.Get("np_cnp_sent") != 3 || b.Get("np_ecn_marked_roce_packets") != 25 {
				t.Errorf("%v: %d CNPs, sent %d, marked packets %d", typ, cnps, b.Get("np_cnp_sent"), b.Get("np_ecn_marked_roce_packets"))
			}
			if a.Get("rcvd_cnp") != 3 || a.Get("rp_cnp_handled") != 3 || a.Get("rp_cnp_ignored") != 0 {
				t.Errorf("%v: CNPs received %d, handled %d, ignored %d", typ, a.Get("rcvd_cnp"), a.Get("rp_cnp_handled"), a.Get("rp_cnp_ignored"))
			}
			if st := p.a.QueryRP(p.now, p.qa); st.Cuts != 3 {
				t.Errorf("%v: %+v", typ, st)
			}
		}
	}
}

// Marks that come while a CNP's interval runs are answered when it is over, by
// one CNP, whether or not a packet comes then; when none came, nothing is
// (SIGCOMM'15 DCQCN §3.1). Presets without that forget them.
func TestMarksWithinTheIntervalWait(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, c := range []struct {
			preset string
			marks  []time.Duration
			cnps   []time.Duration
		}{
			{"paper", []time.Duration{0}, []time.Duration{0}},
			{"paper", []time.Duration{0, 10, 20}, []time.Duration{0, 50}},
			{"paper", []time.Duration{0, 49, 60, 99, 200}, []time.Duration{0, 50, 100, 200}},
			{"mlx5", []time.Duration{0, 1, 3, 10}, []time.Duration{0, 10}},
		} {
			p := markingPair(t, typ, c.preset, nil)
			var ah ib.AH
			if typ == ib.UD {
				var err error
				if ah, err = p.a.CreateAH(p.a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB), SL: 3}); err != nil {
					t.Fatal(err)
				}
			}
			var got []time.Duration
			next := 0
			for now := range time.Duration(300) {
				if d := p.b.Deadline(); d < clock.Time(now*time.Microsecond) {
					t.Fatalf("%v %s: deadline %v is past at %d µs", typ, c.preset, d, now)
				}
				p.at(now * time.Microsecond)
				if next < len(c.marks) && c.marks[next] == now {
					next++
					wr := ib.SendWR{Op: ib.Write, Remote: p.remote, SGL: []ib.SGE{{Addr: testBase, Length: 100, LKey: p.keyA}}}
					if typ == ib.UD {
						wr.Op, wr.UD = ib.Send, ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}
					}
					if _, err := p.qa.Post([]ib.SendWR{wr}, nil); err != nil {
						t.Fatal(err)
					}
					for p.carry(0, true) {
					}
				}
				for p.carry(1, false) {
					if wire.Opcode(p.run.Buf[0]) == wire.CNP {
						got = append(got, now)
					}
				}
			}
			if !slices.Equal(got, c.cnps) {
				t.Errorf("%v %s, marks at %d µs: CNPs at %d, want %d", typ, c.preset, c.marks, got, c.cnps)
			}
		}
	}
}

// A queue pair that is gone owes nothing.
func TestDestroyedQueuePairSendsNoCNP(t *testing.T) {
	p := markingPair(t, ib.RC, "paper", nil)
	for range 2 {
		wr := ib.SendWR{Op: ib.Write, Remote: p.remote, SGL: []ib.SGE{{Addr: testBase, Length: 100, LKey: p.keyA}}}
		if _, err := p.qa.Post([]ib.SendWR{wr}, nil); err != nil {
			t.Fatal(err)
		}
		for p.carry(0, true) {
		}
		for p.carry(1, false) {
		}
	}
	if err := p.b.DestroyQP(p.now, p.qb); err != nil {
		t.Fatal(err)
	}
	p.at(time.Millisecond)
	if p.carry(1, false) || p.b.Deadline() != clock.Never {
		t.Errorf("a packet, or deadline %v", p.b.Deadline())
	}
}

// Datagrams of many senders are paced one by one.
func TestDatagramSendersAreToldApart(t *testing.T) {
	p := markingPair(t, ib.UD, "paper", nil)
	other := p.a.qp(ib.UD, nil)
	p.a.modify(other, initAttr(ib.UD))
	p.a.modify(other, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	p.a.modify(other, rtsAttr(ib.UD))
	ah, err := p.a.CreateAH(p.a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, q := range []*QP{p.qa, other} {
			if _, err := q.Post([]ib.SendWR{{Op: ib.Send, UD: ib.Datagram{AH: ah, QPN: p.qb.qpn, QKey: testQKey}}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for p.carry(0, true) {
		}
	}
	for p.carry(1, false) {
	}
	for _, q := range []*QP{p.qa, other} {
		if st := p.a.QueryRP(p.now, q); st.Cuts != 1 {
			t.Errorf("%v: %d cuts", q.qpn, st.Cuts)
		}
	}
}

// notify delivers a CNP to end 0's queue pair.
func (p *pair) notify() {
	b := make([]byte, 32)
	pkt := wire.Packet{BECN: true, PKey: ib.DefaultPKey, DestQPN: p.qa.qpn}
	pkt.SetOp(wire.CNP)
	pkt.EncodeHeaders(b)
	rx := &frame.Rx{Data: b[:28], Src: addrB, Dst: addrA, SrcPort: 0xC123}
	if !p.a.cfg.Wire.Phantom {
		f := flowOf(addrB, addrA, 0xC123)
		c := f.Header(0, true, udpLen+len(b), b[:28])
		rx.Data = b
		b[28], b[29], b[30], b[31] = byte(c), byte(c>>8), byte(c>>16), byte(c>>24)
	}
	p.a.Ingress(p.now, rx)
}

// The first CNP finds alpha at 1 and halves the rate; what leaves afterwards is
// spread by that rate.
func TestCNPHalvesTheRate(t *testing.T) {
	for _, phantom := range []bool{false, true} {
		p := markingPair(t, ib.RC, "paper", func(c *Config) {
			c.Wire.Phantom, c.Wire.Segments, c.Pacing = phantom, 1, Pacing{Burst: -1, Overhead: 26 + 20 + 8 + 20}
		})
		if st := p.a.QueryRP(0, p.qa); st.Rc != lineRate || p.a.RateNow(p.qa) != 0 {
			t.Fatalf("before: %+v, rate %d", st, p.a.RateNow(p.qa))
		}
		p.notify()
		if st := p.a.QueryRP(0, p.qa); st.Rc != lineRate/2 || p.a.RateNow(p.qa) != lineRate/2 {
			t.Fatalf("after a CNP: %+v, rate %d", st, p.a.RateNow(p.qa))
		}
		p.write(1, 20*1024)
		var at []clock.Time
		bytes := 0
		for len(at) < 10 {
			if p.carry(0, false) {
				at = append(at, p.now)
				if len(at) < 10 {
					bytes += p.run.WireLen + 26 + 20 + 8 + 20
				}
				continue
			}
			next := p.a.Deadline()
			if next <= p.now {
				t.Fatalf("deadline %d at %d", next, p.now)
			}
			p.at(time.Duration(next))
		}
		if got, want := at[9], clock.Time((bytes*8*2+99)/100); got != want { // at 50 Gb/s
			t.Errorf("phantom %v: %d bytes took %d ns, want %d", phantom, bytes, got, want)
		}
	}
}

// Of the limit that a program has set and the reaction point's rate the lower
// one holds, whichever changed last.
func TestLowerRateHolds(t *testing.T) {
	for _, limit := range []uint32{0, 1_000_000, 60_000_000, 200_000_000} { // kbit/s
		for _, first := range []bool{true, false} {
			p := markingPair(t, ib.RC, "paper", nil)
			if first {
				p.a.modify(p.qa, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: limit})
				if got := p.a.RateNow(p.qa); got != uint64(limit)*1000 {
					t.Errorf("limit %d kbit/s: rate %d", limit, got)
				}
			}
			p.notify()
			if !first {
				p.a.modify(p.qa, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: limit})
			}
			want := uint64(lineRate / 2)
			if limit != 0 {
				want = min(want, uint64(limit)*1000)
			}
			if got := p.a.RateNow(p.qa); got != want {
				t.Errorf("limit %d kbit/s, set first %v: rate %d, want %d", limit, first, got, want)
			}
		}
	}
}

// The pacer obeys the reaction point: with CNPs at any instants, a queue pair
// that always has something to send sends what R_C allows over the time, to
// within one packet; R_C is watched from outside, between all events.
func TestPacerFollowsTheReactionPoint(t *testing.T) {
	for _, name := range dcqcn.Presets() {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			p := newPhantomPair(t, ib.MTU1024, func(c *Config) {
				params := preset(t, name)
				params.Notify = dcqcn.NotifyCNP
				c.DCQCN = &params
			})
			a, q := p.hosts[0], p.qps[0]
			cnp := &frame.Rx{Data: make([]byte, 28), Src: addrB, Dst: addrA}
			pkt := wire.Packet{BECN: true, PKey: ib.DefaultPKey, DestQPN: q.qpn}
			pkt.SetOp(wire.CNP)
			pkt.EncodeHeaders(cnp.Data)

			p.write(0, 1<<30)
			a.Ingress(0, cnp)
			for a.QueryRP(p.now, q).Rc == lineRate { // until the first cut
				p.now = p.now.Add(time.Microsecond)
			}
			a.Advance(p.now)
			start, before := p.now, p.now
			rate := a.QueryRP(p.now, q).Rc
			var sent, allowed float64 // bits
			next := p.now.Add(time.Duration(rnd.IntN(200_000)))
			end := p.now.Add(5 * time.Millisecond)
			for p.now < end {
				allowed += float64(rate) * float64(p.now-before) / 1e9
				before = p.now
				if p.now >= next {
					a.Ingress(p.now, cnp)
					next = p.now.Add(time.Duration(rnd.IntN(200_000)))
				}
				for p.step(0) {
					sent += float64(8 * p.run.WireLen)
					for p.step(1) {
					}
				}
				if sent > allowed+2*8*1060 || sent < allowed-2*8*1060 {
					t.Fatalf("%s, seed %d: %.0f bits sent at %d ns, R_C allowed %.0f", name, seed, sent, p.now-start, allowed)
				}
				st := a.QueryRP(p.now, q)
				if rate = st.Rc; rate == lineRate {
					break // held by nothing any more
				}
				at := min(next, a.Deadline(), end)
				if at <= p.now {
					t.Fatalf("%s, seed %d: deadline %d at %d", name, seed, at, p.now)
				}
				p.now = at
				a.Advance(p.now)
			}
		}
	}
}

// CNPs leave before all data, and a pause holds its own class only. While theirs
// is paused they wait, those of one queue pair as one.
func TestPauseAndCNPs(t *testing.T) {
	p := markingPair(t, ib.RC, "paper", func(c *Config) { c.Wire.Segments = 1 })
	params := *p.b.cfg.DCQCN
	params.MinTimeBetweenCNPs = 0
	if err := p.b.SetDCQCN(0, DCQCN{Params: &params, LineRate: lineRate, CNPPrio: 6}); err != nil {
		t.Fatal(err)
	}
	p.write(3, 4096)
	kind := func() string {
		if !p.carry(1, false) {
			return "nothing"
		}
		if p.run.CNP {
			return "CNP"
		}
		return "other"
	}
	p.carry(0, true)
	p.b.Pause(1 << 0) // the class of data and ACKs
	if !p.b.Pending() {
		t.Error("not pending although a CNP may leave")
	}
	if got := kind(); got != "CNP" {
		t.Errorf("data class paused: %s", got)
	}
	p.b.Pause(1 << 6)
	p.at(time.Millisecond)
	for range 5 {
		p.carry(0, true)
	}
	if got := kind(); got != "other" || wire.Opcode(p.run.Buf[0]) != wire.RCAck {
		t.Errorf("CNP class paused: %s, opcode %#x", got, p.run.Buf[0])
	}
	if got := kind(); got != "nothing" || p.b.Pending() {
		t.Errorf("CNP class paused: %s, pending %v", got, p.b.Pending())
	}
	p.b.Pause(0)
	if !p.b.Pending() {
		t.Error("not pending after the pause")
	}
	if got := kind(); got != "CNP" {
		t.Errorf("after the pause: %s", got)
	}
	if got := kind(); got != "nothing" {
		t.Errorf("after the CNP: %s", got)
	}
	if n := p.b.Stats().Get("np_cnp_sent"); n != 2 {
		t.Errorf("%d CNPs counted", n)
	}
}

// With notification by acknowledgement the ACK of a marked packet carries BECN,
// the next one of unmarked packets does not, and no CNP is sent. What nobody
// acknowledges is answered with CNPs all the same.
func TestNotifyAck(t *testing.T) {
	p := markingPair(t, ib.RC, "hpcc", func(c *Config) { c.AckEvery, c.Wire.Segments = 1, 1 })
	for i, mark := range []bool{true, false, true, true, false} {
		p.at(time.Duration(i) * 10 * time.Microsecond)
		p.write(1, 64)
		p.carry(0, mark)
		before := p.a.Stats().Get("rp_cnp_handled")
		if !p.carry(1, false) || wire.Opcode(p.run.Buf[0]) != wire.RCAck {
			t.Fatalf("%d: no ACK", i)
		}
		h, _ := wire.BTHOf(p.run.Buf)
		if h.BECN() != mark || h.FECN() {
			t.Errorf("%d: marked %v, BECN %v", i, mark, h.BECN())
		}
		want := before
		if mark {
			want++
		}
		if got := p.a.Stats().Get("rp_cnp_handled"); got != want {
			t.Errorf("%d: %d notifications handled, want %d", i, got, want)
		}
		p.drain()
	}
	if st := p.a.QueryRP(p.now, p.qa); st.Cuts == 0 || st.Rc >= lineRate {
		t.Errorf("%+v", st)
	}
	if n := p.b.Stats().Get("np_cnp_sent"); n != 0 {
		t.Errorf("%d CNPs", n)
	}

	// A READ's data, and UC.
	p = markingPair(t, ib.RC, "hpcc", nil)
	rd := ib.SendWR{Op: ib.Read, SGL: []ib.SGE{{Addr: testBase, Length: 100, LKey: p.keyA}}, Remote: p.remote}
	if _, err := p.qa.Post([]ib.SendWR{rd}, nil); err != nil {
		t.Fatal(err)
	}
	p.carry(0, false)
	p.carry(1, true)
	if !p.carry(0, false) || !p.run.CNP {
		t.Error("no CNP for a marked READ response")
	}
	p = markingPair(t, ib.UC, "hpcc", nil)
	p.write(1, 100)
	p.carry(0, true)
	if !p.carry(1, false) || !p.run.CNP {
		t.Error("no CNP for a marked UC packet")
	}
}

// In the ordinary mode BECN elsewhere than in a CNP means nothing.
func TestBECNInAckIsIgnored(t *testing.T) {
	p := markingPair(t, ib.RC, "paper", nil)
	p.write(1, 64)
	p.carry(0, false)
	r := newRun()
	p.b.Egress(0, r)
	wire.BTH(r.Buf).SetBECN(true)
	f := flowOf(addrB, addrA, r.SrcPort)
	c := f.Header(0, true, udpLen+r.N, r.Buf[:r.N-4])
	copy(r.Buf[r.N-4:], []byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)})
	p.a.Ingress(0, rxOf(r))
	if p.drain() != 1 || p.a.Stats().Get("rcvd_becn") != 1 || p.a.QueryRP(0, p.qa).Cuts != 0 {
		t.Errorf("%v", p.a.Stats())
	}
}

// Notifications that no reaction point takes are counted and change nothing:
// without DCQCN, before RTS, after Error.
func TestCNPIgnored(t *testing.T) {
	off := newPair(t, ib.RC, asRuns, ib.MTU1024, 1<<20, func(c *Config) { c.ECT = true })
	failed := markingPair(t, ib.RC, "paper", nil)
	failed.a.modify(failed.qa, ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
	early := markingPair(t, ib.RC, "paper", nil)
	early.a.modify(early.qa, ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
	early.a.modify(early.qa, initAttr(ib.RC))
	early.a.modify(early.qa, rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, early.qb.qpn, ib.MTU1024))
	for name, p := range map[string]*pair{"off": off, "Error": failed, "RTR": early} {
		p.notify()
		s := p.a.Stats()
		if s.Get("rcvd_cnp") != 1 || s.Get("rp_cnp_ignored") != 1 || s.Get("rp_cnp_handled") != 0 || p.a.RateNow(p.qa) != 0 {
			t.Errorf("%s: received %d, ignored %d, handled %d, rate %d", name, s.Get("rcvd_cnp"), s.Get("rp_cnp_ignored"), s.Get("rp_cnp_handled"), p.a.RateNow(p.qa))
		}
	}
	// Without DCQCN marks are counted, and nobody is told.
	off.write(1, 64)
	off.carry(0, true)
	for off.carry(1, false) {
		if off.run.CNP {
			t.Error("a CNP without DCQCN")
		}
	}
	if s := off.b.Stats(); s.Get("np_ecn_marked_roce_packets") != 1 || s.Get("np_cnp_sent") != 0 {
		t.Error("marks without DCQCN are not counted")
	}
}

// A reaction point asks for no call while its queue pair has nothing to send;
// when it has, it has caught up: idle for ten seconds, it is back at the line.
func TestReactionPointIsLazy(t *testing.T) {
	for _, name := range dcqcn.Presets() {
		p := markingPair(t, ib.RC, name, func(c *Config) { params := *c.DCQCN; params.Notify = dcqcn.NotifyCNP; c.DCQCN = &params })
		for range 3 {
			p.notify()
		}
		if d := p.a.Deadline(); d != clock.Never {
			t.Errorf("%s: deadline %d of an idle queue pair", name, d)
		}
		p.at(10 * time.Second)
		if st := p.a.QueryRP(p.now, p.qa); st.Rc <= lineRate/4 {
			t.Errorf("%s: after ten seconds %+v", name, st)
		}
		p.write(1, 64)
		if !p.carry(0, false) {
			t.Errorf("%s: nothing leaves", name)
		}
	}
}

// A queue pair that owes a packet at the least rate does not wait for all of
// that packet's time when its rate rises meanwhile: 1,060 B at 10 Mb/s last
// 848 µs; the first increase comes after 55 µs.
func TestIncreaseMovesTheNextPacket(t *testing.T) {
	p := newPhantomPair(t, ib.MTU1024, func(c *Config) {
		params := preset(t, "paper")
		params.RPGMinRate, params.RPGMinDecFac, params.RateToSetOnFirstCNP = 10_000_000, 0, 10_000_000
		params.ClampTgtRate, params.StageBeforeEvent = false, false
		params.RPGAIRate, params.RPGThreshold = 10_000_000_000, 1 // straight to additive increase
		c.DCQCN = &params
	})
	cnp := &frame.Rx{Data: make([]byte, 28), Src: addrB, Dst: addrA}
	pkt := wire.Packet{BECN: true, PKey: ib.DefaultPKey, DestQPN: p.qps[0].qpn}
	pkt.SetOp(wire.CNP)
	pkt.EncodeHeaders(cnp.Data)
	p.hosts[0].Ingress(0, cnp)
	if st := p.hosts[0].QueryRP(0, p.qps[0]); st.Rc != 10_000_000 {
		t.Fatalf("%+v", st)
	}
	p.write(0, 3000)
	if !p.step(0) || p.step(0) {
		t.Fatal("not one packet")
	}
	if d := p.hosts[0].Deadline(); d != 55_000 {
		t.Fatalf("deadline %d, want that of the increase", d)
	}
	p.now = 55_000
	p.hosts[0].Advance(p.now)
	rate := p.hosts[0].QueryRP(p.now, p.qps[0]).Rc
	if rate < 1_000_000_000 {
		t.Fatalf("R_C %d after the increase", rate)
	}
	owed := uint64(848_000-55_000) * 10_000_000 // bits · 10^9
	if p.run.WireLen != 0 && p.hosts[0].Deadline() > p.now+clock.Time(owed/rate)+30_000 {
		t.Errorf("next packet at %d", p.hosts[0].Deadline())
	}
}

// A queue pair that goes away takes its CNP with it, and a number of its own
// begins anew.
func TestResetForgetsCongestion(t *testing.T) {
	for _, how := range []string{"reset", "destroy"} {
		p := markingPair(t, ib.RC, "paper", nil)
		p.notify()
		p.write(1, 64)
		p.carry(0, true)
		if how == "destroy" {
			if err := p.b.DestroyQP(0, p.qb); err != nil {
				t.Fatal(err)
			}
		} else {
			p.b.modify(p.qb, ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
		}
		for p.carry(1, false) {
			if p.run.CNP {
				t.Errorf("%s: a CNP left", how)
			}
		}
		if p.b.Pending() {
			t.Errorf("%s: pending", how)
		}
		p.a.modify(p.qa, ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
		if st := p.a.QueryRP(0, p.qa); st.Rc != lineRate || st.Cuts != 0 {
			t.Errorf("after Reset: %+v", st)
		}
	}
}

// Once a queue pair has its notification and reaction points, marks and CNPs
// cost no memory.
func TestCongestionDoesNotAllocate(t *testing.T) {
	p := newPhantomPair(t, ib.MTU1024, nil)
	p.mark = true
	round := func() {
		p.write(0, 64*1024)
		p.finish()
		p.now = p.now.Add(5 * time.Microsecond)
	}
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := p.hosts[0].Stats().Get("rp_cnp_handled"); n < 100 {
		t.Errorf("only %d notifications", n)
	}
}

func TestDCQCNConfigIsChecked(t *testing.T) {
	params := preset(t, "paper")
	for name, edit := range map[string]func(*Config){
		"no line rate":  func(c *Config) { c.DCQCN = &params },
		"CNP priority":  func(c *Config) { c.DCQCN, c.LineRate, c.CNPPrio = &params, 1, 8 },
		"burst":         func(c *Config) { c.Pacing.Burst = 2 * time.Second },
		"overhead":      func(c *Config) { c.Pacing.Overhead = -1 },
		"much overhead": func(c *Config) { c.Pacing.Overhead = 1 << 20 },
	} {
		cfg := Config{Name: "vrb", GIDs: gidRows(addrA), Wire: wireCaps(), Rand: seeded(1)}
		edit(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
