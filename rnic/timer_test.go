package rnic

import (
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// Against a slow model: every queue pair is called at its deadline, never
// before, in the order of deadline and number.
func TestTimersAgainstModel(t *testing.T) {
	r := seeded(11)
	var heap timerHeap
	qps := make([]*QP, 40)
	for i := range qps {
		qps[i] = &QP{qpn: ib.QPN(i)}
		qps[i].timer = qpTimer{index: -1, due: clock.Never}
	}
	now := clock.Time(0)
	for range 20000 {
		switch q := qps[r()%40]; r() % 5 {
		case 0:
			heap.set(q, clock.Never)
		case 1:
			heap.remove(q)
			q.timer.due = clock.Never
		case 2:
			now += clock.Time(r() % 20)
			var fired, want []ib.QPN
			for _, q := range qps {
				if q.timer.due <= now {
					want = append(want, q.qpn)
				}
			}
			for q := heap.next(now); q != nil; q = heap.next(now) {
				fired = append(fired, q.qpn)
				q.timer.due = clock.Never
			}
			slices.Sort(fired)
			if !slices.Equal(fired, want) {
				t.Fatalf("at %d: fired %v, want %v", now, fired, want)
			}
		default:
			heap.set(q, now+clock.Time(r()%100))
		}
		earliest := clock.Never
		for _, q := range qps {
			earliest = min(earliest, q.timer.due)
		}
		if heap.earliest() > earliest {
			t.Fatalf("the heap sleeps until %d, something is due at %d", heap.earliest(), earliest)
		}
	}
}

func TestMovingDeadlinesLaterMovesNothing(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	f.deadline = 100
	h.look(0, q)
	f.deadline = 1000
	h.look(50, q)
	if h.Deadline() != 100 {
		t.Errorf("deadline %d", h.Deadline())
	}
	h.Advance(100) // early, as the old deadline says
	if len(f.advanced) != 0 || h.Deadline() != 1000 {
		t.Errorf("advanced %v, deadline %d", f.advanced, h.Deadline())
	}
	h.Advance(1000)
	if len(f.advanced) != 1 || h.Deadline() != clock.Never {
		t.Errorf("advanced %v, deadline %d", f.advanced, h.Deadline())
	}
	if n := testing.AllocsPerRun(100, func() {
		f.deadline = 2000
		h.look(1000, q)
		f.deadline = clock.Never
		h.look(1000, q)
		h.Advance(2000)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAnEngineThatIsAlwaysDueDoesNotHang(t *testing.T) {
	h, q, _ := connectedFake(t, nil)
	q.eng = stuck{fakeOf(q)}
	h.look(7, q)
	h.Advance(7)
	if h.Deadline() > 8 {
		t.Errorf("deadline %d", h.Deadline())
	}
}

type stuck struct{ *fake }

func (stuck) Deadline() clock.Time { return 3 }

func (stuck) Advance(clock.Time) {}

func TestSendAtInTheFutureIsATimer(t *testing.T) {
	h, q, f := connectedFake(t, nil)
	f.out, f.sendAt = packets(77, wire.RCSendOnly, 8), 500
	h.look(0, q)
	if h.Pending() || h.Deadline() != 500 {
		t.Errorf("pending %v, deadline %d", h.Pending(), h.Deadline())
	}
	h.Advance(499)
	if h.Pending() {
		t.Error("pending too early")
	}
	h.Advance(500)
	if !h.Pending() {
		t.Error("not pending")
	}
}

func TestBlockedEngineWithoutAWindowIsNotAskedForEver(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, nil)
	q := h.qp(ib.UD, nil)
	f := fakeOf(q)
	f.out, f.blocked = packets(77, wire.RCSendOnly, 8), true
	h.look(0, q)
	if h.Egress(0, newRun()) || h.Pending() {
		t.Error("still pending")
	}
}
