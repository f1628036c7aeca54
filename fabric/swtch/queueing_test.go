package swtch

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// exponential draws from the exponential distribution of mean 2^32, in
// integers: von Neumann's method of 1951, which only compares.
func exponential(r *sim.Rand) uint64 {
	for k := uint64(0); ; k++ {
		first := r.Uint32()
		last, n := first, 1
		for {
			u := r.Uint32()
			if u >= last {
				break
			}
			last, n = u, n+1
		}
		if n%2 == 1 {
			return k<<32 | uint64(first)
		}
	}
}

func TestExponential(t *testing.T) {
	r := sim.NewRand(1, "exp")
	const n = 200_000
	var sum, above float64
	for range n {
		x := float64(exponential(r)) / (1 << 32)
		sum += x
		if x > 2 {
			above++
		}
	}
	if m := sum / n; math.Abs(m-1) > 0.01 {
		t.Errorf("mean %.4f", m)
	}
	if p := above / n; math.Abs(p-math.Exp(-2)) > 0.003 {
		t.Errorf("P(x > 2) = %.4f", p)
	}
}

// arrivals gives the switch packets at random instants, not through a link.
type arrivals struct {
	x     *star
	r     *sim.Rand
	mean  sim.Time
	left  int
	bytes int
}

func (a *arrivals) Handle(now sim.Time, _ uint64) {
	if a.left == 0 {
		return
	}
	a.left--
	p := a.x.packet(1, 0, a.bytes, 8)
	p.Seq = int64(now)
	a.x.w.Arrive(now, 1, p)
	hi, lo := exponential(a.r)>>16, uint64(a.mean)
	a.x.s.At(now+sim.Time(hi*lo>>16), a, 0)
}

// M/D/1: the mean wait is ρ / (2(1 − ρ)) service times (Pollaczek–Khinchine).
// Twenty batches give the standard error; t with 19 degrees of freedom is within
// ±3.88 in 999 of 1,000 runs. By Little's law the mean of the queue over time is
// the arrival rate times the wait, here to the last bit.
func TestMD1(t *testing.T) {
	const bytes = 1230 // 100 ns with the gap
	service := (100 * sim.Gbps).For(bytes + port.GapBytes)
	for _, rho := range []float64{0.5, 0.8, 0.9} {
		c := config(2)
		c.Buffer.Total = 1 << 37
		x := newStar(t, 11, c, fast)
		const batches, n = 20, 10_000
		var sum [batches]float64
		var waits, count int64
		x.w.out[0].port.Tap = func(now sim.Time, p *sim.Packet, out bool) {
			if out {
				w := now - sim.Time(p.Seq) // when it arrived
				waits += int64(w)
				sum[count/n] += float64(w) / float64(service) / n
				count++
			}
		}
		x.s.At(0, &arrivals{x, x.s.Rand("poisson"), sim.Time(float64(service) / rho), batches * n, bytes}, 0)
		x.s.Run(sim.Second)
		var mean, ss float64
		for _, m := range sum {
			mean += m / batches
		}
		for _, m := range sum {
			ss += (m - mean) * (m - mean)
		}
		se := math.Sqrt(ss / (batches - 1) / batches)
		want := rho / (2 * (1 - rho))
		if count != batches*n || math.Abs(mean-want) > 3.88*se {
			t.Errorf("ρ %.1f: mean wait %.4f ± %.4f service times, %.4f by the formula", rho, mean, se, want)
		}
		var r result.PortPrio
		x.w.Count(x.s.Now(), 0, 1, &r)
		area := float64(waits) * bytes / float64(x.s.Now())
		if math.Abs(r.MeanQueue-area) > 1e-9*area {
			t.Errorf("ρ %.1f: mean queue %.3f bytes, by Little's law %.3f", rho, r.MeanQueue, area)
		}
	}
}

// Over many years in 128 bits: nothing overflows.
func TestMeanOfLongTimes(t *testing.T) {
	var q queue
	const year = 90 * 24 * 3600 * sim.Second // 3 months, near the end of time
	q.fifo.Push(&sim.Packet{Bytes: 1 << 30})
	if got := q.mean(year); math.Abs(got-(1<<30)) > 1 {
		t.Errorf("mean %.0f", got)
	}
}
