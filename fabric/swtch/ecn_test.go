package swtch

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// marked offers packets to a queue that holds exactly n bytes when it looks, and
// returns how many of them are marked.
func marked(t *testing.T, e ECN, n int64, draws int) int {
	t.Helper()
	x := backlog(t, func(c *Config) { c.Queue[3].ECN = e })
	const size = 100
	for range n / size {
		x.offer(3, size)
	}
	count := 0
	for range draws {
		// At enqueue the n bytes are found, at dequeue they are left behind.
		x.w.queue(0, 3).marked = 0
		x.offer(3, size)
		p := x.pull(0)
		if e.AtEnqueue {
			count += int(x.w.queue(0, 3).marked)
		} else if p.ECN == ce {
			count++
		}
	}
	return count
}

// WRED's law: 0 up to KMin, linear to PMax at KMax, 1 beyond. Twenty depths,
// chi-square with 20 degrees of freedom: 45.3 is exceeded in one run of 1,000.
func TestMarkingProbability(t *testing.T) {
	for _, atEnqueue := range []bool{false, true} {
		e := ECN{KMin: 10000, KMax: 50000, PMax: 1 << 31, AtEnqueue: atEnqueue}
		const draws = 4000
		chi := 0.0
		for i := int64(1); i <= 20; i++ {
			n := e.KMin + i*2000
			p := 0.5 * float64(i*2000) / 40000
			want := p * draws
			d := float64(marked(t, e, n, draws)) - want
			chi += d * d / want / (1 - p)
		}
		if chi > 45.3 {
			t.Errorf("at enqueue %v: chi-square %.1f over 20 depths", atEnqueue, chi)
		}
		for n, want := range map[int64]int{0: 0, 9900: 0, 10000: 0, 50100: 100, 80000: 100} {
			if got := marked(t, e, n, 100); got != want {
				t.Errorf("at enqueue %v: %d of 100 marked at %d bytes, want %d", atEnqueue, got, n, want)
			}
		}
	}
}

func TestStepMarking(t *testing.T) {
	e := ECN{KMin: 8000, KMax: 8000, PMax: 1}
	for n, want := range map[int64]int{7900: 0, 8000: 0, 8100: 50} {
		if got := marked(t, e, n, 50); got != want {
			t.Errorf("%d of 50 marked at %d bytes, want %d", got, n, want)
		}
	}
}

// A lone flow between equal links leaves nothing behind: it is never marked.
func TestLoneFlowIsNotMarked(t *testing.T) {
	c := config(2)
	c.Queue[3].ECN = ECN{KMin: 0, KMax: 1, PMax: math.MaxUint32}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 1000, 1048, 26)
	x.s.Run(1 << 50)
	var r result.PortPrio
	x.w.Count(x.s.Now(), 0, 3, &r)
	if r.Marked != 0 || x.host[0].packets != 1000 {
		t.Errorf("%d of %d marked", r.Marked, x.host[0].packets)
	}
}

func TestProbabilityIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kmin := rapid.Int64Range(0, maxBytes-1).Draw(t, "kmin")
		kmax := rapid.Int64Range(kmin+1, maxBytes).Draw(t, "kmax")
		n := rapid.Int64Range(kmin+1, kmax).Draw(t, "n")
		pmax := rapid.Uint64Range(0, 1<<32).Draw(t, "pmax")
		q := queue{kmin: kmin, kmax: kmax, pmax: pmax}
		want := new(big.Int).Mul(new(big.Int).SetUint64(pmax), big.NewInt(n-kmin))
		want.Div(want, big.NewInt(kmax-kmin))
		if got := q.probability(n); got != want.Uint64() {
			t.Fatalf("%d, want %v", got, want)
		}
	})
}

// What cannot be marked: dropped in a lossy queue, unless told otherwise, let
// through in a lossless one; CE stays and is not counted again.
func TestWhatCannotBeMarked(t *testing.T) {
	for _, tt := range []struct {
		name           string
		lossless, keep bool
		ecn            uint8
		dropped        bool
		out            uint8
		marked         uint64
	}{
		{"ECT(0)", false, false, 2, false, 3, 1},
		{"ECT(1)", false, false, 1, false, 3, 1},
		{"CE", false, false, 3, false, 3, 0},
		{"not capable, lossy", false, false, 0, true, 0, 0},
		{"not capable, kept", false, true, 0, false, 0, 0},
		{"not capable, lossless", true, false, 0, false, 0, 0},
	} {
		x := backlog(t, func(c *Config) {
			c.Queue[3] = Queue{Lossless: tt.lossless, NoDrop: tt.keep, ECN: ECN{KMin: 1000, KMax: 2000, PMax: 1, AtEnqueue: true}}
		})
		for range 30 {
			p := x.packet(1, 0, 100, 26)
			p.ECN = 3
			x.w.Arrive(0, 1, p)
		}
		p := x.packet(1, 0, 100, 26)
		p.ECN = tt.ecn
		x.w.Arrive(0, 1, p)
		var r result.PortPrio
		x.w.Count(0, 0, 3, &r)
		if dropped := len(x.book.drops) == 1 && x.book.drops[0].Reason == result.DropWRED && r.TxDrops == 1; dropped != tt.dropped {
			t.Errorf("%s: dropped %v: %+v", tt.name, dropped, x.book.drops)
		}
		if r.Marked != tt.marked {
			t.Errorf("%s: %d marked", tt.name, r.Marked)
		}
		if !tt.dropped && p.ECN != tt.out {
			t.Errorf("%s: leaves with %d", tt.name, p.ECN)
		}
	}
}
