package probe

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// fate is what becomes of a packet in a test.
type fate uint8

const (
	arrives  fate = iota
	lost          // on the way
	kept          // not let out: EPERM
	filtered      // heard by the packet socket alone: the receiver's firewall
)

// fated is a way on which decide says what becomes of the nth packet.
func fated(rec *record, decide func(n int, x Probe) fate) *way {
	n := 0
	var got map[uint32]*Sighting
	w := &way{rec: rec, interval: 2 * time.Millisecond}
	w.send = func(_ context.Context, probes []Probe, _ time.Duration) ([]Sent, error) {
		var out []Sent
		got = map[uint32]*Sighting{}
		for _, x := range probes {
			at := int64(n) * 1000
			s := Sent{Seq: x.Seq, At: at, Port: firstPort + uint16(x.Path)}
			g := &Sighting{Seq: x.Seq, At: at + 500, Order: uint32(n), Path: x.Path, TOS: x.TOS, TTL: 64, Size: x.Size, Port: s.Port, Socket: 1, Capture: 1, DF: 1, ICRC: 1}
			switch decide(n, x) {
			case kept:
				s.Err = "EPERM"
			case filtered:
				g.Socket = 0
				got[x.Seq] = g
			case arrives:
				got[x.Seq] = g
			case lost:
			}
			out = append(out, s)
			n++
		}
		return out, nil
	}
	w.seen = func(_ context.Context, first uint32, n, _ int) ([]Sighting, error) {
		var out []Sighting
		for i := range uint32(n) {
			if s := got[first+i]; s != nil {
				out = append(out, *s)
			}
		}
		return out, nil
	}
	return w
}

// measureBy does all phases forwards on such a way, and judges.
func measureBy(t *testing.T, seed uint64, decide func(n int, x Probe) fate) *prober {
	t.Helper()
	p := measured(t)
	var err error
	if p.cfg, err = (Config{}).filled(); err != nil {
		t.Fatal(err)
	}
	p.chance = rand.New(rand.NewPCG(seed, 7))
	p.fwd = record{}
	p.rev.reach = sendAll(p.reachPlan([]uint8{0, 1, 2, 3}, p.cfg.Count, false))
	p.rev.mtus = slices.Repeat([]pathMTU{{lo: 1500}}, 4)
	w := fated(&p.fwd, decide)
	if err := p.tryPaths(t.Context(), w, p.r.There, false); err != nil {
		t.Fatal(err)
	}
	if err := p.tryRest(t.Context(), w, p.r.Here, p.r.There); err != nil {
		t.Fatal(err)
	}
	p.judge()
	return p
}

// What is wrong for one kind of packets, or at one end, is told as that.
func TestFates(t *testing.T) {
	ecn := func(x Probe) ip.ECN { return ip.TOS(x.TOS).ECN() }
	coin := func() func() int { r := rand.New(rand.NewPCG(3, 4)); return func() int { return r.IntN(100) } }
	d := coin()
	for _, c := range []struct {
		name   string
		decide func(n int, x Probe) fate
		want   string
	}{
		{"nothing", func(int, Probe) fate { return arrives }, ""},
		{"the network was away while the first were sent", func(n int, _ Probe) fate { return when(n < 100, lost) }, "loss forward fail"},
		{"nothing comes ever", func(int, Probe) fate { return lost }, "port-blocked forward fail"},
		{"nothing is let out", func(int, Probe) fate { return kept }, "port-blocked forward fail"},
		{"the sender keeps one path", func(_ int, x Probe) fate { return when(x.Path == 2, kept) }, "path-blocked forward fail"},
		{"the sender keeps a third", func(int, Probe) fate { return when(d() < 33, kept) }, "loss forward fail"},
		{"the sender keeps a class", func(_ int, x Probe) fate { return when(ip.TOS(x.TOS).DSCP() == 46, kept) }, "dscp-dropped forward fail"},
		{"the receiver filters one path", func(_ int, x Probe) fate { return when(x.Path == 2, filtered) }, "path-blocked forward fail"},
		{"the receiver filters a third", func(int, Probe) fate { return when(d() < 33, filtered) }, "loss forward fail"},
		{"the receiver filters a class", func(_ int, x Probe) fate { return when(ip.TOS(x.TOS).DSCP() == 46, filtered) }, "dscp-dropped forward fail"},
		{"the receiver filters half of the bursts", func(_ int, x Probe) fate { return when(x.Size > smallSize && x.Size == 1088 && d() < 50, filtered) }, "burst-loss forward fail"},
		{"marks are lost", func(_ int, x Probe) fate { return when(ecn(x) == ip.CE, lost) }, "ecn-dropped forward fail"},
		{"what is not ECT is lost", func(_ int, x Probe) fate { return when(ecn(x) == ip.NotECT, lost) }, "ecn-dropped forward fail"},
		{"large packets are lost by half", func(_ int, x Probe) fate { return when(x.Size > 600 && d() < 50, lost) }, "burst-loss forward fail"},
	} {
		p := measureBy(t, 1, c.decide)
		if got := ids(&p.r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	p := measureBy(t, 1, func(_ int, x Probe) fate { return when(ip.TOS(x.TOS).DSCP() == 26, lost) })
	if got := ids(&p.r); got != "port-blocked forward fail" || !slices.Contains([]string{p.r.Findings[0].Evidence[1]}, p.r.Forward.Why) {
		t.Errorf("the class alone is dropped: %s", got)
	}
	const said = "it is the class (DSCP 26 with ECT(0)) that is dropped"
	if why := p.r.Forward.Why; len(why) < len(said) || why[len(why)-len(said):] != said {
		t.Errorf("the class alone is dropped: %q", why)
	}
}

func when(is bool, f fate) fate {
	if is {
		return f
	}
	return arrives
}

// Packets that are lost by chance alone, whatever part of them, are loss and nothing else.
func TestChanceIsLoss(t *testing.T) {
	const runs = 40
	for _, share := range []float64{0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7} {
		other := map[string]int{}
		few := 0 // failures where the true part is far below the limit
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, uint64(share*1000)))
			p := measureBy(t, seed, func(int, Probe) fate { return when(r.Float64() < share, lost) })
			for _, f := range p.r.Findings {
				switch {
				case f.ID != "loss":
					other[f.ID]++
				case share < 0.003 && f.Status == Fail:
					few++
				}
			}
		}
		for id, n := range other {
			if n > runs/20 {
				t.Errorf("%v of the packets are lost: %s in %d of %d runs", share, id, n, runs)
			}
		}
		if few > runs/20 {
			t.Errorf("%v of the packets are lost: a failure in %d of %d runs", share, few, runs)
		}
	}
}

// What the probe's own socket drops fails nothing; a wrong ICRC is none of its doing.
func TestOverrunIsNoLoss(t *testing.T) {
	for _, c := range []struct {
		lost, overrun, badICRC int
		want                   string
	}{
		{10, 0, 0, "loss forward fail"},
		{10, 10, 0, "loss forward unknown"},
		{10, 3, 0, "loss forward fail"},
		{10, 10, 1, "loss forward fail, icrc forward fail"},
	} {
		p := measured(t)
		for i := range c.lost {
			p.fwd.reach[i*7].seen = nil
		}
		for i := range c.badICRC {
			p.fwd.reach[3+i].seen.ICRC = 0
		}
		p.fwd.overrun = c.overrun
		p.judge()
		if got := ids(&p.r); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The closest bound of the clocks' difference counts, whatever it comes from.
func TestClosestClockCounts(t *testing.T) {
	var c Clock
	c.better(echo{0, 100, 100, 200}, "control")
	c.better(echo{0, 30e6, 30e6, 40e6}, "echo") // the host stood
	if c.Source != "control" || c.Error != 100 {
		t.Errorf("%+v", c)
	}
	c.better(echo{0, 50, 50, 100}, "echo")
	if c.Source != "echo" || c.Error != 50 {
		t.Errorf("%+v", c)
	}
}
