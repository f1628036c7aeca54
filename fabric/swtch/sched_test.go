package swtch

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// backlog is a switch of which port 0 is asked by hand.
func backlog(t rapid.TB, change func(*Config)) *star {
	c := config(2)
	for i := range c.Queue {
		c.Queue[i].Lossless = false
	}
	c.Buffer.Total = 1 << 30
	change(&c)
	x := newStar(t, 1, c, fast)
	x.w.out[0].asks = true
	return x
}

func (x *star) offer(prio uint8, bytes int) {
	x.w.Arrive(x.s.Now(), 1, x.packet(1, 0, bytes, prio<<3))
}

func (x *star) pull(stopped uint8) *sim.Packet {
	p, _ := x.w.Pull(x.s.Now(), 0, stopped)
	x.w.out[0].asks = true
	return p
}

// SIGCOMM'95 DRR, theorem 2: between classes that always have packets, a round
// gives each its quantum but for less than one frame. So after any number of
// pulls what class i has had, over its weight, differs from every other's by
// less than one quantum (the round that is under way) and a frame of each.
func TestDWRRShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "classes")
		weight := rapid.SliceOfN(rapid.IntRange(1, 40), n, n).Draw(t, "weights")
		size := rapid.SliceOfN(rapid.IntRange(64, 9216), n, n).Draw(t, "frames")
		x := backlog(t, func(c *Config) {
			for i, v := range weight {
				c.Queue[i].Weight = v
			}
		})
		for i := range n {
			x.offer(uint8(i), size[i])
			x.offer(uint8(i), size[i])
		}
		sent := make([]int64, n)
		for range rapid.IntRange(500, 4000).Draw(t, "pulls") {
			p := x.pull(0)
			sent[p.Prio] += int64(p.Bytes)
			x.offer(p.Prio, size[p.Prio])
		}
		least := weight[0]
		for _, v := range weight {
			least = min(least, v)
		}
		q := float64((minQuantum + least - 1) / least)
		for i := range n {
			for k := range n {
				a, b := float64(sent[i])/float64(weight[i]), float64(sent[k])/float64(weight[k])
				if bound := q + float64(size[i])/float64(weight[i]) + float64(size[k])/float64(weight[k]); a-b > bound {
					t.Fatalf("per weight, class %d has had %.0f bytes and class %d %.0f; they may differ by %.0f", i, a, k, b, bound)
				}
			}
		}
	})
}

func TestDWRRLongRun(t *testing.T) {
	x := backlog(t, func(c *Config) { c.Queue[1].Weight, c.Queue[2].Weight, c.Queue[3].Weight = 1, 3, 6 })
	size := [4]int{0, 1500, 300, 700}
	for i := uint8(1); i < 4; i++ {
		x.offer(i, size[i])
		x.offer(i, size[i])
	}
	var sent [4]float64
	total := 0.0
	for range 200_000 {
		p := x.pull(0)
		sent[p.Prio] += float64(p.Bytes)
		total += float64(p.Bytes)
		x.offer(p.Prio, size[p.Prio])
	}
	for i, want := range []float64{0, 0.1, 0.3, 0.6} {
		if got := sent[i] / total; got < want*0.998 || got > want*1.002 {
			t.Errorf("class %d has %.5f of the link; weight %.1f", i, got, want)
		}
	}
}

// The quantum sets how much a class sends at a stretch, whether it is less than
// a frame or several, and leaves the shares alone (SIGCOMM'95 DRR, theorem 2).
func TestDWRRQuantum(t *testing.T) {
	for _, quantum := range []int{100, 1000, 5000} {
		x := backlog(t, func(c *Config) {
			c.Quantum = quantum
			c.Queue[1].Weight, c.Queue[2].Weight = 1, 2
		})
		const frame = 1000
		for i := uint8(1); i < 3; i++ {
			x.offer(i, frame)
			x.offer(i, frame)
		}
		var sent [3]int
		most, run, last := 0, 0, uint8(0)
		for range 30_000 {
			p := x.pull(0)
			sent[p.Prio]++
			if p.Prio != last {
				run = 0
			}
			run, last = run+1, p.Prio
			most = max(most, run)
			x.offer(p.Prio, frame)
		}
		if d := sent[2] - 2*sent[1]; d < -3*max(1, quantum/frame) || d > 3*max(1, quantum/frame) {
			t.Errorf("quantum %d: classes of weight 1 and 2 sent %d and %d", quantum, sent[1], sent[2])
		}
		if want := max(2, 2*quantum/frame); most != want {
			t.Errorf("quantum %d: %d packets of one class in a row, want %d", quantum, most, want)
		}
	}
}

func TestStrictFirstStoppedNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		strict := rapid.Uint8().Draw(t, "strict")
		x := backlog(t, func(c *Config) {
			for i := range c.Queue {
				c.Queue[i].Strict = strict&(1<<i) != 0
			}
		})
		var waiting [8]int
		for range 300 {
			if rapid.Bool().Draw(t, "arrive") {
				c := rapid.Uint8Range(0, 7).Draw(t, "class")
				waiting[c]++
				x.offer(c, 64)
				continue
			}
			stopped := rapid.Uint8().Draw(t, "stopped")
			best, other := -1, false
			for c, n := range waiting {
				if n == 0 || stopped&(1<<c) != 0 {
					continue
				}
				if strict&(1<<c) != 0 {
					best = c
				} else {
					other = true
				}
			}
			p := x.pull(stopped)
			switch {
			case p == nil:
				if best >= 0 || other {
					t.Fatalf("nothing sent; waiting %v, stopped %08b", waiting, stopped)
				}
				continue
			case best >= 0 && int(p.Prio) != best, stopped&(1<<p.Prio) != 0, waiting[p.Prio] == 0:
				t.Fatalf("class %d sent; waiting %v, stopped %08b, strict %08b", p.Prio, waiting, stopped, strict)
			}
			waiting[p.Prio]--
		}
	})
}

// A queue is first in, first out, whatever ingress its packets came in by.
func TestQueuesKeepOrder(t *testing.T) {
	x := backlog(t, func(*Config) {})
	r := x.s.Rand("order")
	next := map[uint8]int32{}
	var seq [8]int32
	for range 5000 {
		if r.Below(1 << 31) {
			c := uint8(r.N(8))
			p := x.packet(1, 0, 64, c<<3)
			p.Flow = seq[c]
			seq[c]++
			x.w.Arrive(0, int(r.N(2)), p)
		} else if p := x.pull(0); p != nil {
			if p.Flow != next[p.Prio] {
				t.Fatalf("class %d: number %d after %d", p.Prio, p.Flow, next[p.Prio]-1)
			}
			next[p.Prio]++
		}
	}
}
