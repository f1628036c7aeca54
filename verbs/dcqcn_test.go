package verbs_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// newPairDCQCN connects two devices in memory. rules are for what comes in at the
// second.
func newPairDCQCN(t testing.TB, c verbs.DCQCN, rules string) ends {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	wrap := func(l link.Link) link.Link {
		if rules == "" {
			return l
		}
		parsed, err := fault.Parse(rules)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := fault.New(l, fault.Config{Rules: parsed, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return bad
	}
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x, DCQCN: c}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y, DCQCN: c, Wrap: wrap}), ib.RC)
	join(t, a, b)
	return ends{a, b}
}

// writes writes n messages of 64 KiB, one after the other.
func (p ends) writes(t testing.TB, n int) {
	t.Helper()
	for range n {
		wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 64<<10), Remote: p.a.peer.At(0)}
		if err := p.a.qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		if wc := p.a.await(t); wc.Status != ib.Success {
			t.Fatal(wc.Status)
		}
	}
}

// A fault link that marks stands in for a switch: the sender's queue pair slows
// down, and both ends tell. While they run it can be switched off, for a queue
// pair and for the device, and with other parameters on again.
func TestDCQCNOnAndOffWhileRunning(t *testing.T) {
	c := verbs.DCQCN{Preset: "paper", LineRate: 1e9, Knobs: map[string]string{"rpg_min_rate": "50Mbps"}}
	p := newPairDCQCN(t, c, "ce 50%")
	if got := p.a.qp.Congestion(); got.Rate != 1e9 || got.Rc != 1e9 || got.Phase.String() != "line rate" || got.Own {
		t.Errorf("at first %+v", got)
	}
	p.writes(t, 20)
	// The last notification may be under way: all four are read until none is.
	var a, b verbs.Congestion
	var sa, sb verbs.Stats
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); runtime.Gosched() {
		a, b, sa, sb = p.a.qp.Congestion(), p.b.qp.Congestion(), p.a.dev.Stats(), p.b.dev.Stats()
		if a.CNPsHandled == sa.Get("rp_cnp_handled") && b.CNPsSent >= a.CNPsHandled && b.Marked == sb.Get("np_ecn_marked_roce_packets") {
			break
		}
	}
	if a.CNPsHandled == 0 || a.CNPsHandled != sa.Get("rp_cnp_handled") || a.Cuts == 0 {
		t.Errorf("sender: %+v, its device handled %d", a, sa.Get("rp_cnp_handled"))
	}
	if b.Marked == 0 || b.Marked != sb.Get("np_ecn_marked_roce_packets") || b.CNPsSent < a.CNPsHandled || b.CNPsSent > b.Marked {
		t.Errorf("receiver: %+v, its device saw %d marks", b, sb.Get("np_ecn_marked_roce_packets"))
	}

	// The queue pair alone: its packets are not ECN-capable any more.
	if err := p.a.qp.SetDCQCN(&verbs.DCQCN{}); err != nil {
		t.Fatal(err)
	}
	marked := p.b.qp.Congestion().Marked
	p.writes(t, 5)
	if got := p.a.qp.Congestion(); got.Rate != 0 || got.DCQCN.On() || !got.Own || got.Phase.String() != "off" || got.Rc != 0 || got.CNPsHandled < a.CNPsHandled {
		t.Errorf("off for the queue pair: %+v", got)
	}
	if n := p.b.qp.Congestion().Marked; n != marked {
		t.Errorf("%d packets of a queue pair without DCQCN were marked", n-marked)
	}
	// Its own parameters, then those of the device, which have changed.
	if err := p.a.qp.SetDCQCN(&verbs.DCQCN{Preset: "mlx5", LineRate: 2e9}); err != nil {
		t.Fatal(err)
	}
	if got := p.a.qp.Congestion(); got.Rate != 2e9 || got.DCQCN.Preset != "mlx5" {
		t.Errorf("its own: %+v", got)
	}
	c.LineRate = 3e9
	if err := p.a.dev.SetDCQCN(c); err != nil {
		t.Fatal(err)
	}
	if got := p.a.qp.Congestion(); got.Rate != 2e9 {
		t.Errorf("its own after the device's: %+v", got)
	}
	if err := p.a.qp.SetDCQCN(nil); err != nil {
		t.Fatal(err)
	}
	if got := p.a.qp.Congestion(); got.Rate != 3e9 || got.Own || got.DCQCN.Knobs["rpg_min_rate"] != "50Mbps" {
		t.Errorf("the device's: %+v", got)
	}
	p.writes(t, 5)
	if err := p.a.dev.SetDCQCN(verbs.DCQCN{}); err != nil {
		t.Fatal(err)
	}
	if got := p.a.qp.Congestion(); got.Rate != 0 || got.DCQCN.On() || p.a.dev.DCQCN().On() {
		t.Errorf("off: %+v", got)
	}
	p.writes(t, 1)
}

// What cannot be is refused in a line with the knob, the value and the limits,
// everywhere, and changes nothing.
func TestDCQCNRefusals(t *testing.T) {
	on := verbs.DCQCN{Preset: "paper", LineRate: 1e9}
	p := newPairDCQCN(t, on, "")
	for _, c := range []struct {
		set  verbs.DCQCN
		text string
	}{
		{verbs.DCQCN{Preset: "dctcp", LineRate: 1}, `"dctcp": not one of paper, mlx5, hpcc`},
		{verbs.DCQCN{LineRate: 1e9}, "name a preset"},
		{verbs.DCQCN{Preset: "paper", LineRate: 1e9, Knobs: map[string]string{"rpg_a_rate": "1"}}, `"rpg_a_rate" is not the name of a knob`},
		{verbs.DCQCN{Preset: "paper", LineRate: 1e9, Knobs: map[string]string{"cnp_dscp": "64"}}, "cnp_dscp: 64 is not allowed: 0 to 63"},
		{verbs.DCQCN{Preset: "paper", LineRate: 2e15}, "2Pbps"},
	} {
		_, openErr := verbs.Open(verbs.Config{Addr: addrA, Port: testPort, DCQCN: c.set})
		set := c.set
		_, qpErr := p.a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.a.cq, RecvCQ: p.a.cq, DCQCN: &set})
		for what, err := range map[string]error{"open": openErr, "device": p.a.dev.SetDCQCN(c.set), "QP": p.a.qp.SetDCQCN(&set), "create": qpErr} {
			if err == nil || !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %v: %v", what, c.set, err)
			}
		}
	}
	if got := p.a.dev.DCQCN(); got.String() != "paper at 1Gbps" || p.a.qp.Congestion().Own {
		t.Errorf("changed to %v", got)
	}
	// Only here does nothing tell the rate.
	if _, err := verbs.Open(verbs.Config{Addr: addrA, Port: testPort, DCQCN: verbs.DCQCN{Preset: "paper"}}); err == nil || !strings.Contains(err.Error(), "set LineRate") {
		t.Errorf("loopback without a line rate: %v", err)
	}
}

// benchmarkPairDCQCN is 64 KiB WRITEs, sixteen packets each, between two devices
// in memory, both driven by one goroutine.
//
//	go test ./verbs -run '^$' -bench PairDCQCN -count 20
func benchmarkPairDCQCN(b *testing.B, c verbs.DCQCN) {
	p := newPairDCQCN(b, c, "")
	const outstanding = 8
	wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 64<<10), Remote: p.a.peer.At(0)}
	var wcs [outstanding]ib.WC
	posted, done := 0, 0
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	b.ResetTimer()
	for done < b.N {
		for ; posted < b.N && posted-done < outstanding; posted++ {
			if err := p.a.qp.PostSend(wr); err != nil {
				b.Fatal(err)
			}
		}
		p.b.dev.Progress()
		done += p.a.cq.Poll(wcs[:])
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(16*b.N), "ns/packet")
	if n := p.a.dev.Stats().Get("retransmitted"); n != 0 {
		b.Logf("%d packets were sent again", n)
	}
}

func BenchmarkPairDCQCNOff(b *testing.B) { benchmarkPairDCQCN(b, verbs.DCQCN{}) }

// The line rate is beyond what this can do, so that nothing waits for its turn.
func BenchmarkPairDCQCNIdle(b *testing.B) {
	benchmarkPairDCQCN(b, verbs.DCQCN{Preset: "paper", LineRate: 400e9})
}
