package tcp

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// steady is a connection with a loss now and then that has run for a while.
func steady(t testing.TB, kind Kind) *rig {
	const delay = 20 * sim.Microsecond
	r := newRig(t, delay, Config{Kind: kind, MaxWindow: 200_000})
	c := r.dial(t, Spec{RTT: 2 * delay})
	rnd := sim.NewRand(1, "loss")
	r.p[1].Lose = func(p *sim.Packet) bool { return !p.Ack && rnd.Below(1<<32/1000) }
	c.Send(0, 0, -1)
	r.s.Run(20 * sim.Millisecond)
	return r
}

// In steady state, with losses that are repaired, a segment costs no allocation.
func TestSegmentsDoNotAllocate(t *testing.T) {
	for _, kind := range []Kind{DCTCP, Reno} {
		r := steady(t, kind)
		before := r.b.again
		if n := testing.AllocsPerRun(5, func() { r.s.RunSome(sim.Never, 20_000) }); n != 0 {
			t.Errorf("kind %d: %v allocations", kind, n)
		}
		if r.b.again == before {
			t.Errorf("kind %d: nothing was lost meanwhile", kind)
		}
	}
}

func BenchmarkSegments(b *testing.B) {
	r := steady(b, Reno)
	b.ReportAllocs()
	b.ResetTimer()
	for at := r.b.segments; r.b.segments < at+b.N; {
		r.s.RunSome(sim.Never, 100)
	}
}
