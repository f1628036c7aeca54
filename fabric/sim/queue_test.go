package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type seen struct {
	at  Time
	arg uint64
}

// noting is a handler that writes down its events and schedules others.
type noting struct {
	s     *Sim
	got   []seen
	delay func(arg uint64) []Time
	next  uint64
	want  []seen
}

func (n *noting) Handle(now Time, arg uint64) {
	n.got = append(n.got, seen{now, arg})
	for _, d := range n.delay(uint64(uint32(arg))) {
		n.schedule(now.Add(d))
	}
}

func (n *noting) schedule(t Time) {
	n.next++
	arg := n.next
	if arg%2 == 1 { // arguments of 32 bits and of more
		arg |= arg << 32
	}
	n.want = append(n.want, seen{t, arg})
	n.s.At(t, n, arg)
}

// Events are handled in the order of their instants, those of one instant in
// the order in which they were scheduled, whatever their distance.
func TestEventsComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := rapid.OneOf(
			rapid.Int64Range(0, 3), rapid.Int64Range(0, 2000), rapid.Int64Range(0, 100_000), rapid.Int64Range(30_000_000, 40_000_000),
			rapid.Int64Range(0, int64(Second)), rapid.SampledFrom([]int64{1 << slotBits, numSlots << slotBits, numSlots<<slotBits - 1}),
		)
		plan := rapid.SliceOfN(rapid.SliceOfN(delay, 0, 3), 1, 60).Draw(t, "delays")
		n := &noting{s: New(1)}
		n.delay = func(arg uint64) (d []Time) {
			if int(arg) < len(plan) {
				for _, x := range plan[arg] {
					d = append(d, Time(x))
				}
			}
			return d
		}
		for _, x := range plan[0] {
			n.schedule(Time(x))
		}
		// In pieces, as a caller does who looks at the run from time to time, and
		// schedules something there.
		steps := rapid.SliceOfN(delay, 0, 10).Draw(t, "steps")
		until := Time(0)
		for _, x := range steps {
			until = until.Add(Time(x))
			n.s.Run(until)
			if next := n.s.Next(); next <= until {
				t.Fatalf("%v is left at %v", next, until)
			}
			n.schedule(until.Add(Time(x / 2)))
		}
		if n.s.Run(Never) || n.s.Pending() != 0 {
			t.Fatal("events are left")
		}
		slices.SortStableFunc(n.want, func(a, b seen) int {
			switch {
			case a.at < b.at:
				return -1
			case a.at > b.at:
				return 1
			}
			return 0
		})
		if !slices.Equal(n.got, n.want) {
			t.Fatalf("got  %v\nwant %v", n.got, n.want)
		}
	})
}

// ticker schedules itself again and again at several distances.
type ticker struct {
	s *Sim
	d []Time
}

func (k *ticker) Handle(now Time, arg uint64) { k.s.At(now+k.d[arg%uint64(len(k.d))], k, arg+1) }

func ticking(n int) *Sim {
	s := New(1)
	for i := range n {
		// Serialisation, propagation, a CNP timer, a retransmission timer.
		k := &ticker{s, []Time{83840, 1000 * Nanosecond, 83840, 5120, 1000 * Nanosecond}}
		if i%16 == 0 {
			k.d = append(k.d, 55*Microsecond)
		}
		s.At(Time(i)*7919, k, uint64(i))
	}
	return s
}

func TestEventsDoNotAllocate(t *testing.T) {
	s := ticking(500)
	s.Run(Millisecond)
	if n := testing.AllocsPerRun(10, func() { s.RunSome(Never, 10_000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, n := range []int{10, 300, 10_000} {
		b.Run(map[int]string{10: "10", 300: "300", 10_000: "10000"}[n], func(b *testing.B) {
			s := ticking(n)
			s.Run(10 * Microsecond)
			b.ReportAllocs()
			b.ResetTimer()
			s.RunSome(Never, uint64(b.N))
		})
	}
}
