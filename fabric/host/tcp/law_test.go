package tcp

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// warm is when the first cycles of slow start are long over.
const warm = 300 * sim.Millisecond

// meanWindow returns the mean window in segments of a connection that delivers so
// many bytes in a span: by Little's law, what is delivered in a round trip.
func (r *rig) meanWindow(bytes int64, span sim.Time) float64 {
	return float64(bytes) / 1000 * float64(r.rtt()) / float64(span)
}

// Reno's law (Mathis, Semke, Mahdavi and Ott, CCR July 1997, §2): when one of n
// segments is lost at equal distances, the window goes from W/2 to W by one a
// round trip. A cycle has W/2 + 1 round trips with 3/4·W segments on average, and
// one more in which the loss is repaired and W/2 new segments leave, so that
//
//	n = (W/2 + 1)·3/4·W + W/2    and the mean is n / (W/2 + 2)
//
// which is the law's sqrt(3/2·n) = 1.22·sqrt(n) for large n.
func TestPeriodicLossGivesTheSquareRootLaw(t *testing.T) {
	for _, n := range []int64{200, 1000, 2000} {
		r := newRig(t, 500*sim.Microsecond, Config{Kind: Reno})
		c := r.dial(t, Spec{RTT: 2 * r.delay})
		count := int64(0)
		r.p[1].Lose = func(p *sim.Packet) bool {
			if p.Ack {
				return false
			}
			count++
			return count%n == 0
		}
		c.Send(0, 0, -1)
		r.s.Run(warm)
		from := r.b.delivered[0]
		span := 20 * sim.Time(math.Sqrt(float64(n))) * r.rtt()
		r.s.Run(warm + span)
		got := r.meanWindow(r.b.delivered[0]-from, span)
		w := (-1.25 + math.Sqrt(1.25*1.25+1.5*float64(n))) / 0.75
		want := float64(n) / (w/2 + 2)
		t.Logf("one of %d: mean window %.2f, want %.2f, for large n %.2f", n, got, want, math.Sqrt(1.5*float64(n)))
		if math.Abs(got/want-1) > 0.03 || r.b.timeouts > 0 {
			t.Errorf("one of %d lost: mean window %.2f segments, the law says %.2f; %d timeouts", n, got, want, r.b.timeouts)
		}
	}
}

// The same with independent losses, where 1.22/sqrt(p) is the law's usual form.
func TestRandomLossGivesTheSquareRootLaw(t *testing.T) {
	for _, n := range []int64{200, 700} {
		r := newRig(t, 500*sim.Microsecond, Config{Kind: Reno, MinRTO: 3 * sim.Millisecond})
		c := r.dial(t, Spec{RTT: 2 * r.delay})
		rnd := sim.NewRand(7, "loss")
		r.p[1].Lose = func(p *sim.Packet) bool { return !p.Ack && rnd.Below(1<<32/uint64(n)) }
		c.Send(0, 0, -1)
		r.s.Run(warm)
		from := r.b.delivered[0]
		const span = 3 * sim.Second
		r.s.Run(warm + span)
		got := r.meanWindow(r.b.delivered[0]-from, span)
		want := 1.22 * math.Sqrt(float64(n))
		t.Logf("one of %d: mean window %.2f, law %.2f (%.3f), %d timeouts", n, got, want, got/want, r.b.timeouts)
		if math.Abs(got/want-1) > 0.10 {
			t.Errorf("one of %d lost: mean window %.2f segments, the law says %.2f", n, got, want)
		}
	}
}
