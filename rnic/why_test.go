package rnic

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// Every cause that a program or a peer can bring about.
func TestWhy(t *testing.T) {
	quick := func(c *Config) { c.AckEvery = 1 }
	send := func(p *phantomPair, op ib.WROp, flags ib.SendFlags, size int) {
		p.t.Helper()
		wr := ib.SendWR{Op: op, Flags: flags, Remote: ib.Remote{Addr: testBase, RKey: p.mrs[1].RKey}}
		wr.SGL = []ib.SGE{{Addr: testBase, Length: uint32(size), LKey: p.mrs[0].LKey}}
		if _, err := p.qps[0].Post([]ib.SendWR{wr}, nil); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(p *phantomPair)
		want Silence
	}{
		{"nothing posted", func(*phantomPair) {}, Silence{CauseIdle, clock.Never}},
		{"posted, the doorbell not answered", func(p *phantomPair) { send(p, ib.Write, 0, 10) }, Silence{CauseReady, clock.Never}},
		{"posted", func(p *phantomPair) { p.write(0, 10) }, Silence{CauseReady, clock.Never}},
		{"paused", func(p *phantomPair) { p.hosts[0].Pause(1); p.write(0, 10) }, Silence{CausePaused, clock.Never}},
		{"another priority paused", func(p *phantomPair) { p.hosts[0].Pause(0xFE); p.write(0, 10) }, Silence{CauseReady, clock.Never}},
		{"paced", func(p *phantomPair) {
			p.hosts[0].modify(p.qps[0], ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 8_000})
			p.write(0, 3000)
			p.step(0)
		}, Silence{CausePaced, 1_056_000}}, // 1,024 + 32 B, 1 µs each
		{"not acknowledged", func(p *phantomPair) { p.write(0, 10); p.step(0) }, Silence{CauseAck, clock.Time(ib.AckTimeout(14))}},
		{"acknowledged", func(p *phantomPair) { p.write(0, 10); p.finish() }, Silence{CauseIdle, clock.Never}},
		{"no receive at the peer", func(p *phantomPair) {
			if _, err := p.qps[1].PostRecv([]ib.RecvWR{{}}); err != nil {
				p.t.Fatal(err)
			}
			p.hosts[1].modify(p.qps[1], ib.QPAttr{Mask: ib.AttrState, State: ib.Error}) // the receive is gone
			p.hosts[1].modify(p.qps[1], ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
			p.hosts[1].connect(p.qps[1], ib.GIDFromAddr(addrA), 0, p.qps[0].qpn, ib.MTU1024)
			send(p, ib.Send, 0, 0)
			p.step(0)
			p.step(1)
		}, Silence{CauseRNR, 10_000}}, // timer code 1: 10 µs
		{"fence", func(p *phantomPair) {
			send(p, ib.Read, 0, 10)
			send(p, ib.Write, ib.Fence, 10)
			p.step(0)
		}, Silence{CauseReads, clock.Time(ib.AckTimeout(14))}},
		{"stopped", func(p *phantomPair) {
			p.hosts[0].modify(p.qps[0], ib.QPAttr{Mask: ib.AttrState, State: ib.SQD})
			send(p, ib.Write, 0, 10)
			p.hosts[0].Advance(0)
		}, Silence{CauseState, clock.Never}},
	} {
		p := newPhantomPair(t, ib.MTU1024, quick)
		for i, h := range p.hosts { // room for two requests
			if err := h.DestroyQP(0, p.qps[i]); err != nil {
				t.Fatal(err)
			}
			p.qps[i] = h.qp(ib.RC, nil)
		}
		p.hosts[0].connect(p.qps[0], ib.GIDFromAddr(addrB), 0, p.qps[1].qpn, ib.MTU1024)
		p.hosts[1].connect(p.qps[1], ib.GIDFromAddr(addrA), 0, p.qps[0].qpn, ib.MTU1024)
		tt.do(p)
		if got := p.hosts[0].Why(p.qps[0]); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A window that is full, credits that are used up, a completion that waits.
func TestWhyOfWindowAndCredits(t *testing.T) {
	p := newPair(t, ib.RC, asRuns, ib.MTU4096, 1<<20, func(c *Config) { c.Wire.RxBytes = 64 << 10 })
	p.write(4, 256<<10)
	for p.a.Egress(0, newRun()) {
	}
	if got := p.a.Why(p.qa); got.Cause != CauseWindow {
		t.Errorf("full window: %v", got)
	}

	p = newPair(t, ib.RC, asRuns, ib.MTU4096, 1<<20, nil)
	sends := []ib.SendWR{{Op: ib.Send}, {Op: ib.Send}, {Op: ib.Send}}
	if _, err := p.qb.PostRecv([]ib.RecvWR{{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.qa.Post(sends[:1], nil); err != nil {
		t.Fatal(err)
	}
	p.settle() // the ACK says that no receive is left
	if _, err := p.qa.Post(sends, nil); err != nil {
		t.Fatal(err)
	}
	for p.a.Egress(0, newRun()) {
	}
	if got := p.a.Why(p.qa); got.Cause != CauseCredits || got.Until == clock.Never {
		t.Errorf("no credits: %v", got)
	}

	p = newPair(t, ib.UC, asRuns, ib.MTU4096, 1<<20, func(c *Config) { c.Wire.Segments = 1 })
	p.write(1, 100)
	p.a.Egress(0, newRun())
	if got := p.a.Why(p.qa); got != (Silence{CauseAck, 0}) {
		t.Errorf("UC, completion due: %v", got)
	}
}

func TestWhyNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range NumCauses {
		if seen[c.String()] || c.String() == "" {
			t.Errorf("cause %d is %q", c, c)
		}
		seen[c.String()] = true
	}
	for w := range transport.NumWaits {
		if w != transport.WaitNothing && waitCauses[w] == CauseUnknown {
			t.Errorf("%v has no cause", w)
		}
	}
	if got := (Silence{CausePaced, clock.Time(1500 * time.Nanosecond)}).String(); got != "paced until 1500 ns" {
		t.Error(got)
	}
}
