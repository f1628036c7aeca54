package swtch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func flowHash(i int) *sim.Packet {
	return &sim.Packet{Src: int32(i % 64), Dst: int32(i / 64 % 64), Hash: uint32(sim.Mix(uint64(i)))}
}

// Flows spread evenly: chi-square below what is exceeded in one run of 100,000.
func TestECMPIsEven(t *testing.T) {
	for n, limit := range map[int]float64{2: 19.51, 3: 23.03, 8: 35.26, 16: 50.49, 64: 122.73} {
		for seed := range uint64(5) {
			e := ECMP{Seed: seed}
			const flows = 20_000
			count := make([]float64, n)
			for i := range flows {
				count[e.Pick(flowHash(i), n)]++
			}
			want, chi := float64(flows)/float64(n), 0.0
			for _, c := range count {
				chi += (c - want) * (c - want) / want
			}
			if chi > limit {
				t.Errorf("seed %d, %d ways: chi-square %.1f", seed, n, chi)
			}
		}
	}
}

// With one seed everywhere a second tier sees only flows that all choose alike
// (polarisation): one of its four ways carries everything. With seeds of their
// own all four are used evenly.
func TestPolarisation(t *testing.T) {
	for _, same := range []bool{true, false} {
		first, second := ECMP{Seed: 5}, ECMP{Seed: 6}
		if same {
			second = first
		}
		var used [4]int
		total := 0
		for i := range 40_000 {
			p := flowHash(i)
			if first.Pick(p, 4) != 2 {
				continue
			}
			used[second.Pick(p, 4)]++
			total++
		}
		if same && used != [4]int{2: total} {
			t.Errorf("one seed: %v", used)
		}
		for _, n := range used {
			if !same && (n < total/4-300 || n > total/4+300) {
				t.Errorf("two seeds: %v", used)
			}
		}
	}
}

// The ports matter to the five-tuple and not to the addresses.
func TestECMPFields(t *testing.T) {
	five, addr := ECMP{}, ECMP{Fields: Addresses}
	a, b := map[int]bool{}, map[int]bool{}
	for i := range 200 {
		p := &sim.Packet{Src: 1, Dst: 2, Hash: uint32(sim.Mix(uint64(i)))}
		a[five.Pick(p, 8)] = true
		b[addr.Pick(p, 8)] = true
	}
	if len(a) != 8 || len(b) != 1 {
		t.Errorf("200 source ports use %d ways by five-tuple, %d by addresses", len(a), len(b))
	}
}

// ways sends every endpoint over ports 1 to 4.
type ways struct{}

func (ways) Ports(_, dst int32) []uint16 {
	if dst < 0 {
		return nil
	}
	return []uint16{1, 2, 3, 4}
}

func TestLinkDown(t *testing.T) {
	x := still(t, 5, func(c *Config) { c.Buffer.Group[3].Limit = Limit{Mode: Static, Bytes: 1 << 20} })
	x.w.routes = ways{}
	choose := func() (out []int) {
		for i := range 400 {
			p := flowHash(i)
			out = append(out, x.w.route(p))
		}
		return out
	}
	before := choose()
	for i := range 400 {
		p := x.packet(0, i%64, 1000, 26)
		p.Hash = flowHash(i).Hash
		x.w.Arrive(0, 0, p)
	}
	queued := x.w.QueueBytes(3, 3) / 1000
	x.w.out[3].port.SetDown(0, true)
	x.w.SetDown(0, 3, true)
	x.w.SetDown(0, 3, true)
	if n := int64(len(x.book.drops)); n != queued || n == 0 || x.book.drops[0].Reason != result.DropDown {
		t.Errorf("%d drops, %d had waited", n, queued)
	}
	x.audit(t)
	moved := [5]int{}
	for i, out := range choose() {
		switch {
		case out == 3:
			t.Fatalf("flow %d still goes to the link that is down", i)
		case before[i] == 3:
			moved[out]++
		case before[i] != out:
			t.Fatalf("flow %d went from %d to %d", i, before[i], out)
		}
	}
	if moved[1] == 0 || moved[2] == 0 || moved[4] == 0 {
		t.Errorf("the flows of the lost way go to %v", moved)
	}
	for _, i := range []int{1, 2, 4} {
		x.w.SetDown(0, i, true)
	}
	x.book.drops = nil
	x.w.Arrive(0, 0, x.packet(0, 1, 1000, 26))
	if len(x.book.drops) != 1 || x.book.drops[0].Reason != result.DropDown {
		t.Errorf("all ways down: %+v", x.book.drops)
	}
	for i := range 5 {
		x.w.SetDown(0, i, false)
	}
	if d := cmp.Diff(before, choose()); d != "" {
		t.Error("all up again:", d)
	}
	x.audit(t)
}

// A flap while the neighbour is stopped: both forget it, and it is stopped again
// when it goes on sending.
func TestFlapWhileStopped(t *testing.T) {
	c := config(3)
	c.Buffer.Group[3] = Group{Headroom: 60000, Limit: Limit{Mode: Static, Bytes: 20000}}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 2000, 1048, 26)
	x.greedy(2, 0, 2000, 1048, 26)
	x.host[0].port.Stop(0, 3)
	for i := range sim.Time(4) {
		at := (20 + 10*i) * sim.Microsecond
		x.at(at, func() {
			x.w.out[1].port.SetDown(at, i%2 == 0)
			x.w.SetDown(at, 1, i%2 == 0)
		})
	}
	x.at(100*sim.Microsecond, func() {
		if x.w.out[1].port.Stops() != 1<<3 {
			t.Error("the neighbour is not stopped")
		}
		x.host[0].port.Resume(100*sim.Microsecond, 3)
	})
	x.s.Run(sim.Second)
	x.audit(t)
	n := x.host[0].packets + len(x.book.drops) + x.host[1].lost
	if n != 4000 {
		t.Errorf("%d packets arrived or dropped, of 4000", n)
	}
	for _, d := range x.book.drops {
		if d.Reason != result.DropDown {
			t.Fatalf("%+v", d)
		}
	}
	if x.w.out[1].port.Stops() != 0 || x.w.out[2].port.Stops() != 0 {
		t.Error("somebody is stopped for ever")
	}
}
