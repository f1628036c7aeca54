package tcp

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Under any loss of segments and acknowledgements, any marks, pauses and
// configuration, every byte of every flow is delivered once and in order, every
// flow is acknowledged once, nothing is left, and it all ends: between any two
// events the state of the connections makes sense, and what is in flight has a
// timer.
func TestEverythingArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Kind: rapid.SampledFrom([]Kind{DCTCP, Reno}).Draw(t, "kind"), MSS: rapid.SampledFrom([]int{1, 100, 1000, 1460}).Draw(t, "mss"),
			InitWindow: rapid.IntRange(1, 40).Draw(t, "window"), MaxWindow: int64(rapid.SampledFrom([]int{0, 0, 1, 5000, 50_000}).Draw(t, "max")),
			MinRTO:   sim.Time(rapid.SampledFrom([]int{1, 50, 1000}).Draw(t, "rto")) * sim.Microsecond,
			AckEvery: rapid.IntRange(1, 4).Draw(t, "ack every"), AckDelay: 30 * sim.Microsecond,
		}
		r := newRig(&fatal{T: t}, sim.Time(rapid.IntRange(0, 20).Draw(t, "delay"))*sim.Microsecond, cfg)
		rnd := sim.NewRand(rapid.Uint64().Draw(t, "seed"), "loss")
		loss, marks := rapid.Uint64Range(0, 1<<32/3).Draw(t, "loss"), rapid.Uint64Range(0, 1<<32).Draw(t, "marks")
		for i := range r.p {
			r.p[i].Lose = func(p *sim.Packet) bool {
				if p.Kind != sim.KindTCP {
					return false
				}
				if p.ECN != 0 && rnd.Below(marks) {
					p.ECN = 3
				}
				return rnd.Below(loss)
			}
		}
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 60_000), 1, 6).Draw(t, "flows")
		share := rapid.Bool().Draw(t, "one connection")
		var conns []*Conn
		for i, n := range sizes {
			if cfg.MSS == 1 {
				sizes[i] = n%500 + 1
			}
			if i == 0 || !share {
				c, err := Dial(r.k[i%2], r.k[1-i%2], Spec{Prio: uint8(i % 3), RTT: 2 * r.delay, Rate: sim.Rate(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "rate")) * sim.Gbps})
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, c)
			}
			conns[len(conns)-1].Send(0, int32(i), sizes[i])
		}
		if rapid.Bool().Draw(t, "pause") {
			r.p[1].Stop(0, 1)
			r.s.Run(100 * sim.Microsecond)
			r.p[1].Resume(100*sim.Microsecond, 1)
		}
		for n := 0; r.s.Next() < 1000*sim.Second && len(r.b.acked) < len(sizes); n++ {
			r.s.RunSome(sim.Never, 1)
			for _, c := range conns {
				if err := c.check(); err != nil {
					t.Fatalf("at %v: %v", r.s.Now(), err)
				}
			}
			if n > 3_000_000 {
				t.Fatal("no end")
			}
		}
		r.s.Run(r.s.Now() + 2000*sim.Second)
		for i, n := range sizes {
			if r.b.delivered[int32(i)] != n || r.b.acked[int32(i)] == 0 {
				t.Fatalf("flow %d: %d of %d bytes, acknowledged at %v", i, r.b.delivered[int32(i)], n, r.b.acked[int32(i)])
			}
		}
		if live, left := r.s.Pool.Live(), r.s.Pending(); live != 0 || left != 0 {
			t.Fatalf("%d packets and %d events are left", live, left)
		}
	})
}

// fatal makes a property's test what newRig wants.
type fatal struct {
	testing.TB
	T *rapid.T
}

func (f *fatal) Helper()           {}
func (f *fatal) Fatal(args ...any) { f.T.Fatal(args...) }
