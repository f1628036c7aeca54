package port

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

// counting is a node that counts what it is given, by priority.
type counting struct {
	end
	rx, dropped [8]count
	acks        uint64
}

func (c *counting) Arrive(_ sim.Time, _ int, k *sim.Packet) {
	c.rx[k.Prio].add(k)
	c.s.Pool.Put(k)
}

func (c *counting) Lost(_ sim.Time, _ int, k *sim.Packet, _ result.DropReason) {
	if k.Kind != sim.KindPFC {
		c.dropped[k.Prio].add(k)
	}
	c.s.Pool.Put(k)
}

// The counters of a port are those of a slow model, at any moment, whatever is in
// the air, lost by errors, by faults and with the link, of any priority and length,
// heads ahead or not; and so is the time spent sending.
func TestCountersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sim.New(rapid.Uint64().Draw(t, "seed"))
		rate := rapid.SampledFrom([]sim.Rate{100 * sim.Gbps, 3 * sim.Gbps}).Draw(t, "rate")
		cfg := Config{
			Rate: rate, Delay: sim.Time(rapid.IntRange(0, 2_000_000).Draw(t, "delay")), Gap: rapid.SampledFrom([]int{0, GapBytes}).Draw(t, "gap"),
			Early: rapid.Bool().Draw(t, "early"), Rand: s.Rand("errors"), ErrorRate: 1 << 28,
		}
		var n [2]*counting
		var tx [2][8]count
		var sending [2]sim.Time
		for i := range n {
			n[i] = &counting{end: end{s: s}}
			n[i].p = New(s, n[i], 0, uint64(i), cfg, &PFC{Obeys: 1 << 3})
			n[i].p.Tap = func(_ sim.Time, k *sim.Packet, out bool) {
				if !out {
					return
				}
				sending[i] += rate.For(int(k.Bytes) + cfg.Gap)
				if k.Kind == sim.KindRoCE {
					tx[i][k.Prio].add(k)
					if k.Ack {
						n[i].acks++
					}
				}
			}
			n[i].p.Lose = func(k *sim.Packet) bool { return k.Bytes%16 == 0 }
		}
		Connect(n[0].p, n[1].p)
		now := sim.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += sim.Time(rapid.IntRange(0, 500_000).Draw(t, "wait"))
			s.Run(now)
			i := rapid.IntRange(0, 1).Draw(t, "end")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				n[i].p.SetDown(now, !n[i].p.Down())
			case 1:
				n[i].p.Stop(now, 3)
			case 2:
				n[i].p.Resume(now, 3)
			default:
				for range rapid.IntRange(1, 5).Draw(t, "frames") {
					k := s.Pool.Get()
					k.Bytes, k.Prio, k.Ack = int32(rapid.IntRange(64, 1500).Draw(t, "bytes")), uint8(rapid.IntRange(2, 4).Draw(t, "priority")), rapid.Bool().Draw(t, "ack")
					n[i].q[k.Prio].Push(k)
				}
				n[i].p.Kick(now)
			}
			for i, e := range n {
				data := uint64(0)
				for q := range uint8(8) {
					got := e.p.Prio(q)
					if sent := (count{got.TxBytes, got.TxPackets}); sent != tx[i][q] {
						t.Fatalf("port %d, priority %d: counts %v sent, it was %v", i, q, sent, tx[i][q])
					}
					if came := (count{got.RxBytes, got.RxPackets}); came != e.rx[q] {
						t.Fatalf("port %d, priority %d: counts %v received, it was %v", i, q, came, e.rx[q])
					}
					data += tx[i][q].packets
				}
				if e.p.DataTx() != data-e.acks || e.p.Stats.AckTx != e.acks {
					t.Fatalf("port %d: counts %d data packets and %d others, it was %d and %d", i, e.p.DataTx(), e.p.Stats.AckTx, data-e.acks, e.acks)
				}
				if got := e.p.Sending(); got != sending[i] {
					t.Fatalf("port %d: sent for %v, it was %v", i, got, sending[i])
				}
			}
		}
	})
}

// A link that goes down and up again, over and over within the time that a frame
// takes, loses what was on its way, once, and nothing else.
func TestLinkThatFlapsWhileFramesAreInTheAir(t *testing.T) {
	s, a, b := link(Config{Rate: 100 * sim.Gbps, Delay: sim.Millisecond}, nil)
	const flaps = 300
	for i := range sim.Time(flaps) {
		s.At(i*sim.Microsecond, at{func(now sim.Time) {
			a.p.SetDown(now, true)
			b.p.SetDown(now, false)
			a.queue(now, 0, 1000)
		}}, 0)
	}
	s.Run(sim.Never)
	// The last frame left when the link had gone down for the last time.
	if len(b.lost) != flaps-1 || len(b.arrived) != 1 || s.Pool.Live() != 0 {
		t.Errorf("%d lost, %d arrived, %d live", len(b.lost), len(b.arrived), s.Pool.Live())
	}
}
