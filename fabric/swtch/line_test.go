package swtch

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// One packet through an idle switch. Stored, it takes both delays, the latency
// and two transmissions; cut through, one transmission and the time of the head.
// It is stored, too, where the way out is faster than the way in.
func TestTimeThroughASwitch(t *testing.T) {
	const latency = 300 * sim.Nanosecond
	slow := link{rate: 25 * sim.Gbps, delay: 2 * sim.Microsecond}
	for _, tt := range []struct {
		name    string
		cut     bool
		in, out link
		stored  bool
	}{
		{"store and forward", false, fast, fast, true},
		{"cut through", true, fast, fast, false},
		{"to a slower link", true, fast, slow, false},
		{"to a faster link", true, slow, fast, true},
	} {
		for _, bytes := range []int{64, 65, 1500, 9216} {
			for _, lat := range []sim.Time{0, latency} {
				c := config(2)
				c.CutThrough, c.Latency = tt.cut, lat
				x := newStar(t, 1, c, tt.out, tt.in)
				x.greedy(1, 0, 1, bytes, 26)
				x.s.Run(sim.Second)
				first := tt.in.rate.For(bytes + port.GapBytes)
				if !tt.stored {
					first = tt.in.rate.For(64 + port.GapBytes)
				}
				want := tt.in.delay + tt.out.delay + lat + first + tt.out.rate.For(bytes+port.GapBytes)
				if got := x.host[0].last; got != want {
					t.Errorf("%s, %d bytes, latency %v: %v, by arithmetic %v", tt.name, bytes, lat, got, want)
				}
				x.audit(t)
			}
		}
	}
}

// Behind a frame that is being sent there is no cutting through.
func TestBusyEgressStores(t *testing.T) {
	c := config(3)
	c.CutThrough = true
	x := newStar(t, 1, c, fast)
	frame := fast.rate.For(1500 + port.GapBytes)
	head := fast.rate.For(64 + port.GapBytes)
	x.greedy(1, 0, 1, 1500, 26)
	x.at(head, func() { x.greedy(2, 0, 1, 1500, 26) })
	x.s.Run(sim.Second)
	// The first leaves a head after it came, the second when it is whole.
	if want := 2*fast.delay + head + 2*frame; x.host[0].last != want {
		t.Errorf("%v, by arithmetic %v", x.host[0].last, want)
	}
	x.audit(t)
}

// A frame with a wrong FCS passes a switch that cuts through, which counts it
// and cannot hold it back; one that had to wait is dropped.
func TestBadFramesCutThrough(t *testing.T) {
	c := config(3)
	c.CutThrough = true
	x := newStar(t, 1, c, fast)
	for i := 1; i < 3; i++ {
		left := 1
		x.host[i].choose(func(uint8) *sim.Packet {
			if left == 0 {
				return nil
			}
			left--
			p := x.packet(i, 0, 1500, 26)
			p.Bad = true
			return p
		})
	}
	x.s.Run(sim.Second)
	if len(x.book.drops) != 1 || x.book.drops[0].Reason != result.DropError || x.book.drops[0].Port != 2 {
		t.Errorf("%+v", x.book.drops)
	}
	if x.host[0].lost != 1 || x.w.out[1].port.Stats.Errors != 1 || x.w.out[2].port.Stats.Errors != 1 {
		t.Errorf("the host lost %d, ports counted %d and %d", x.host[0].lost, x.w.out[1].port.Stats.Errors, x.w.out[2].port.Stats.Errors)
	}
	x.audit(t)
}

// Whatever comes when, with or without latency, cut through or not: packets of
// one ingress and class keep their order, and none leaves before its latency,
// nor its last bit before that has come.
func TestLinesKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := []sim.Rate{10 * sim.Gbps, 40 * sim.Gbps, 100 * sim.Gbps}
		links := make([]link, 4)
		for i := range links {
			links[i] = link{rate: rapid.SampledFrom(rates).Draw(t, "rate"), delay: sim.Time(rapid.IntRange(0, 99999).Draw(t, "delay"))}
		}
		c := config(4)
		c.CutThrough = rapid.Bool().Draw(t, "cut")
		c.Latency = sim.Time(rapid.IntRange(0, 400_000).Draw(t, "latency"))
		x := newStar(t, 1, c, links...)
		r := sim.NewRand(rapid.Uint64().Draw(t, "seed"), "lines")
		came := map[*sim.Packet]sim.Time{}
		x.host[0].got = func(now sim.Time, p *sim.Packet) {
			// Seq counts the packets of a source.
			if p.Seq != x.host[p.Src].sent {
				t.Fatalf("packet %d of port %d after %d", p.Seq, p.Src, x.host[p.Src].sent-1)
			}
			x.host[p.Src].sent++
		}
		for i := range 4 {
			x.w.out[i].port.Tap = func(now sim.Time, p *sim.Packet, out bool) {
				if p.Kind == sim.KindPFC {
					return
				}
				if !out {
					came[p] = now
					return
				}
				if now < came[p]+c.Latency {
					t.Fatalf("leaves at %v, came at %v, latency %v", now, came[p], c.Latency)
				}
				if ends := x.w.out[i].port.Busy(); ends < p.Tail {
					t.Fatalf("has left at %v, is there at %v", ends, p.Tail)
				}
			}
		}
		for i := 1; i < 4; i++ {
			var seq int64
			h := x.host[i]
			idle := sim.Time(r.N(300_000))
			h.make = func(now sim.Time, stopped uint8) *sim.Packet {
				if seq == 100 || stopped != 0 {
					return nil
				}
				if r.Below(1 << 31) {
					x.at(now+idle, func() { h.port.Kick(x.s.Now()) })
					return nil
				}
				p := x.packet(i, 0, 64+int(r.N(1500)), 26)
				p.Seq = seq
				seq++
				return p
			}
			h.port.Kick(0)
		}
		x.s.Run(sim.Second)
		if x.host[0].packets != 300 || len(x.book.drops) != 0 {
			t.Fatalf("%d arrived, %d drops", x.host[0].packets, len(x.book.drops))
		}
		if err := x.w.Audit(); err != nil {
			t.Fatal(err)
		}
	})
}
