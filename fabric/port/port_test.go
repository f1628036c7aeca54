package port

import (
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// end is a node of one port: it sends what is in its queue, by class, and writes
// down what happens.
type end struct {
	s       *sim.Sim
	p       *Port
	q       [8]sim.Queue
	left    []sim.Time
	arrived []sim.Time
	tails   []sim.Time
	stopped []uint8
	at      []sim.Time // of stopped
	lost    []result.DropReason
}

func (e *end) Pull(now sim.Time, _ int, stopped uint8) (*sim.Packet, bool) {
	for c := range e.q {
		if stopped&(1<<c) != 0 {
			continue
		}
		if k := e.q[c].Pop(); k != nil {
			e.left = append(e.left, now)
			return k, true
		}
	}
	return nil, false
}

func (e *end) Arrive(now sim.Time, _ int, k *sim.Packet) {
	e.arrived, e.tails = append(e.arrived, now), append(e.tails, k.Tail)
	e.s.Pool.Put(k)
}

func (e *end) Stopped(now sim.Time, _ int, classes uint8) {
	e.stopped, e.at = append(e.stopped, classes), append(e.at, now)
}

func (e *end) Lost(_ sim.Time, _ int, k *sim.Packet, why result.DropReason) {
	e.lost = append(e.lost, why)
	e.s.Pool.Put(k)
}

func (e *end) queue(now sim.Time, class uint8, sizes ...int32) {
	for _, n := range sizes {
		k := e.s.Pool.Get()
		k.Bytes, k.Prio = n, class
		e.q[class].Push(k)
	}
	e.p.Kick(now)
}

func link(cfg Config, fc func() FlowControl) (s *sim.Sim, a, b *end) {
	s = sim.New(1)
	a, b = &end{s: s}, &end{s: s}
	for i, e := range []*end{a, b} {
		var f FlowControl
		if fc != nil {
			f = fc()
		}
		e.p = New(s, e, 0, uint64(i), cfg, f)
	}
	Connect(a.p, b.p)
	return s, a, b
}

// at calls f at an instant.
type at struct{ f func(now sim.Time) }

func (h at) Handle(now sim.Time, _ uint64) { h.f(now) }

// A frame takes (bytes + 20) × 8 bit times and then the delay; frames follow each
// other without a gap of their own. In whole picoseconds: 1,000 B at 400 Gb/s with
// the gap are 20.4 ns, 64 B without it 1.28 ns.
func TestSerialisationIsExact(t *testing.T) {
	for _, c := range []struct {
		rate  sim.Rate
		gap   int
		bytes int32
		each  sim.Time
	}{
		{400 * sim.Gbps, GapBytes, 1000, 20_400},
		{400 * sim.Gbps, 0, 64, 1280},
		{100 * sim.Gbps, 0, 1048, 83_840},
		{25 * sim.Gbps, GapBytes, 1500, 486_400},
		{3 * sim.Gbps, 0, 1, 2667}, // 2,666.67: rounded up
	} {
		const delay = 1_234_567
		s, a, b := link(Config{Rate: c.rate, Delay: delay, Gap: c.gap}, nil)
		a.queue(0, 0, c.bytes, c.bytes, c.bytes)
		s.Run(sim.Never)
		want := []sim.Time{c.each + delay, 2*c.each + delay, 3*c.each + delay}
		if !slices.Equal(b.arrived, want) || !slices.Equal(a.left, []sim.Time{0, c.each, 2 * c.each}) {
			t.Errorf("%d B at %v: left %v, arrived %v, want %v", c.bytes, c.rate, a.left, b.arrived, want)
		}
		if a.p.Sending() != 3*c.each || s.Pool.Live() != 0 {
			t.Errorf("busy %v, %d packets live", a.p.Sending(), s.Pool.Live())
		}
	}
}

// A pause of q quanta lasts q × 512 bit times from the arrival of its last bit and
// ends by itself; 0 ends it at once; a new one begins anew. A frame that is being
// sent is not interrupted.
func TestPauseLastsItsQuanta(t *testing.T) {
	const rate, delay = 100 * sim.Gbps, sim.Microsecond
	frame := rate.For(ControlBytes) // 5.12 ns
	quantum := sim.Time(5120)       // 512 bits at 100 Gb/s, in ps
	for _, c := range []struct {
		name   string
		quanta []uint16 // sent 1 us apart
		until  sim.Time // class 3 goes on; from the first pause's arrival
	}{
		{"1,000 quanta are 5.12 us", []uint16{1000}, 1000 * quantum},
		{"65,535 quanta are 335.5 us", []uint16{65535}, 65535 * quantum},
		{"0 ends it", []uint16{65535, 0}, sim.Microsecond},
		{"a second one counts from its own arrival", []uint16{1000, 1000}, sim.Microsecond + 1000*quantum},
		{"a shorter one shortens", []uint16{65535, 100}, sim.Microsecond + 100*quantum},
	} {
		s, a, b := link(Config{Rate: rate, Delay: delay}, func() FlowControl { return &PFC{Obeys: 1 << 3} })
		for i, q := range c.quanta {
			s.At(sim.Time(i)*sim.Microsecond, at{func(now sim.Time) {
				k := s.Pool.Get()
				k.Kind, k.Bytes, k.Enable = sim.KindPFC, ControlBytes, 1<<3|1<<5 // 5 is not obeyed
				k.SetQuanta(3, q)
				k.SetQuanta(5, q)
				b.p.Control(now, k)
			}}, 0)
		}
		stop := frame + delay
		// One frame of class 3 is under way when the pause comes, one waits.
		s.At(stop-sim.Nanosecond, at{func(now sim.Time) { a.queue(now, 3, 1000, 1000) }}, 0)
		s.At(stop+2*sim.Nanosecond, at{func(now sim.Time) { a.queue(now, 5, 64) }}, 0)
		s.Run(sim.Never)
		begun := stop - sim.Nanosecond
		want := []sim.Time{begun, begun + rate.For(1000), stop + c.until}
		if !slices.Equal(a.left, want) {
			t.Errorf("%s: frames left at %v, want %v", c.name, a.left, want)
		}
		if !slices.Equal(a.stopped, []uint8{1 << 3, 0}) || a.p.PausedFor(s.Now(), 3) != c.until {
			t.Errorf("%s: classes %v at %v, paused for %v", c.name, a.stopped, a.at, a.p.PausedFor(s.Now(), 3))
		}
	}
}

// What stays stopped is told again when half of its quanta are over, and so never
// goes on by itself.
func TestStopIsRefreshed(t *testing.T) {
	const rate, delay = 100 * sim.Gbps, sim.Microsecond
	for _, global := range []bool{false, true} {
		s, a, b := link(Config{Rate: rate, Delay: delay, Global: global}, func() FlowControl { return &PFC{Obeys: 0xFF, ObeysPause: true} })
		var told []sim.Time
		b.p.Refreshed = func(now sim.Time, classes uint8) {
			if classes != 1<<3 {
				t.Errorf("classes %08b", classes)
			}
			told = append(told, now)
		}
		b.p.Stop(0, 3)
		const on = 2 * sim.Millisecond
		s.At(on, at{func(now sim.Time) { b.p.Resume(now, 3) }}, 0)
		s.At(10*sim.Microsecond, at{func(now sim.Time) { a.queue(now, 3, 500) }}, 0)
		s.Run(5 * sim.Millisecond)
		want := uint8(1 << 3)
		if global {
			want = 0xFF
		}
		frame := rate.For(ControlBytes)
		if !slices.Equal(a.stopped, []uint8{want, 0}) || !slices.Equal(a.left, []sim.Time{on + frame + delay}) {
			t.Errorf("global %v: classes %v at %v, left %v", global, a.stopped, a.at, a.left)
		}
		half := rate.For(65535*QuantaBits/8) / 2
		for i, now := range told {
			if now != sim.Time(i+1)*half {
				t.Errorf("told again at %v, want each %v", told, half)
				break
			}
		}
		if len(told) != int(on/half) {
			t.Errorf("told again %d times, want %d", len(told), on/half)
		}
	}
}

// A response delay holds off the pause, and the resume, by as much.
func TestResponseDelay(t *testing.T) {
	const rate, delay, response = 100 * sim.Gbps, sim.Microsecond, 700 * sim.Nanosecond
	s, a, b := link(Config{Rate: rate, Delay: delay}, func() FlowControl { return &PFC{Obeys: 0xFF, Response: response} })
	b.p.Stop(0, 3)
	s.At(5*sim.Microsecond, at{func(now sim.Time) { b.p.Resume(now, 3) }}, 0)
	s.Run(sim.Millisecond)
	first := rate.For(ControlBytes) + delay + response
	if !slices.Equal(a.at, []sim.Time{first, first + 5*sim.Microsecond}) {
		t.Errorf("classes %v at %v, want the first at %v", a.stopped, a.at, first)
	}
}

// A link that goes down loses what is on its way and forgets pauses; what waits
// goes when it is up again. Packets are conserved.
func TestDownAndUp(t *testing.T) {
	s, a, b := link(Config{Rate: 100 * sim.Gbps, Delay: 10 * sim.Microsecond}, func() FlowControl { return &PFC{Obeys: 0xFF} })
	a.queue(0, 0, 1000, 1000, 1000)
	b.p.Stop(0, 1)
	s.At(100*sim.Nanosecond, at{func(now sim.Time) { a.p.SetDown(now, true) }}, 0) // the second has begun to leave
	s.At(sim.Microsecond, at{func(now sim.Time) { b.p.Control(now, b.s.Pool.Get()) }}, 0)
	s.At(50*sim.Microsecond, at{func(now sim.Time) { b.p.SetDown(now, false) }}, 0)
	s.Run(sim.Second)
	if len(b.lost) != 3 || len(b.arrived) != 1 || s.Pool.Live() != 0 {
		t.Errorf("lost %v, arrived %v, %d live", b.lost, b.arrived, s.Pool.Live())
	}
	for _, why := range b.lost {
		if why != result.DropDown {
			t.Errorf("lost: %v", why)
		}
	}
	if len(a.stopped) != 0 || b.p.Stops() != 0 || a.p.DownFor(s.Now()) != 50*sim.Microsecond-100*sim.Nanosecond {
		t.Errorf("stopped %v, stops %b, down for %v", a.stopped, b.p.Stops(), a.p.DownFor(s.Now()))
	}
}

// A cut-through end has a frame when 64 bytes of it are there, and is told when
// the rest will be.
func TestEarlyArrival(t *testing.T) {
	const rate, delay = 100 * sim.Gbps, sim.Microsecond
	s, a, b := link(Config{Rate: rate, Delay: delay, Gap: GapBytes, Early: true}, nil)
	a.queue(0, 0, 1000, 64)
	s.Run(sim.Never)
	head, whole := rate.For(64+GapBytes), rate.For(1000+GapBytes)
	if !slices.Equal(b.arrived, []sim.Time{head + delay, whole + head + delay}) || !slices.Equal(b.tails, []sim.Time{whole + delay, whole + head + delay}) {
		t.Errorf("arrived %v, ends %v", b.arrived, b.tails)
	}
}

// The share of corrupted frames is what was asked for, within five standard
// errors; they never arrive.
func TestErrorRate(t *testing.T) {
	const n = 20_000
	s, a, b := link(Config{Rate: 100 * sim.Gbps, ErrorRate: 1 << 28, Rand: sim.NewRand(7, "x")}, nil) // 1/16
	for range n {
		a.queue(0, 0, 64)
	}
	s.Run(sim.Never)
	const mean, sd = n / 16, 34.2 // sqrt(n · 1/16 · 15/16)
	if k := len(b.lost); float64(k) < mean-5*sd || float64(k) > mean+5*sd || len(b.arrived) != n-k || b.p.Stats.Errors != uint64(k) {
		t.Errorf("%d of %d lost, %d arrived", k, n, len(b.arrived))
	}
}

func TestPortsDoNotAllocate(t *testing.T) {
	s, a, b := link(Config{Rate: 100 * sim.Gbps, Delay: sim.Microsecond}, func() FlowControl { return &PFC{Obeys: 8} })
	a.left, b.arrived, b.tails = make([]sim.Time, 0, 1<<20), make([]sim.Time, 0, 1<<20), make([]sim.Time, 0, 1<<20)
	a.stopped, a.at = make([]uint8, 0, 1<<16), make([]sim.Time, 0, 1<<16)
	round := func() {
		now := s.Now()
		for range 100 {
			a.queue(now, 3, 1000)
		}
		b.p.Stop(now, 3)
		s.Run(now + 5*sim.Microsecond)
		b.p.Resume(s.Now(), 3)
		s.Run(now + 500*sim.Microsecond)
	}
	round()
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
