package swtch

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// One packet of each of 32 ports to another comes in and leaves, with two
// waiting in each queue. The event queue and the links are not part of it.
func benchmarkPass(b *testing.B, change func(*Config)) {
	const ports = 32
	c := config(ports)
	c.Queue[3].ECN = ECN{KMin: 5000, KMax: 200000, PMax: 1 << 32 / 100}
	change(&c)
	x := newStar(b, 1, c, fast)
	for i := range x.w.out {
		x.w.out[i].asks = true
	}
	var held [ports]*sim.Packet
	for round := range 3 {
		for i := range ports {
			held[i] = x.packet(i, (i+7)%ports, 1086, 26)
			if round < 2 {
				x.w.Arrive(0, i, held[i])
			}
		}
	}
	now := sim.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range ports {
			held[i].Prio, held[i].ECN = 3, 2
			x.w.Arrive(now, i, held[i])
		}
		now += 100000
		for i := range ports {
			held[(i+ports-7)%ports], _ = x.w.Pull(now, i, 0)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ports, "ns/packet")
	if err := x.w.Audit(); err != nil || x.w.Stats.DropBytes > 0 {
		b.Fatal(err, x.w.Stats)
	}
}

func BenchmarkPass(b *testing.B) { benchmarkPass(b, func(*Config) {}) }

func BenchmarkPassCells(b *testing.B) {
	benchmarkPass(b, func(c *Config) { c.Buffer.Cell = 208 })
}

func BenchmarkPassLossy(b *testing.B) {
	benchmarkPass(b, func(c *Config) {
		c.Queue[3].Lossless = false
		c.Queue[3].Limit = Limit{Mode: Dynamic, Alpha: AlphaOne}
	})
}
