package transport

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/ib"
)

// A shared queue against the obvious model: a list that waits, and what each
// queue pair has taken out of it.
func TestSharedQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 40).Draw(t, "depth")
		events, wantEvents := 0, 0
		var s SharedQueue
		s.Init(1, depth, 3, func() { events++ })
		var qs [3]RecvQueue
		for i := range qs {
			qs[i].InitShared(&s)
		}
		var waiting []uint64
		var held [3][]uint64
		limit, next := 0, uint64(1)
		check := func() {
			if limit > len(waiting) {
				limit = 0
				wantEvents++
			}
		}
		peek := func(i int) (uint64, bool) {
			if len(held[i]) > 0 {
				return held[i][0], true
			}
			if len(waiting) > 0 {
				return waiting[0], true
			}
			return 0, false
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "qp")
			switch rapid.SampledFrom([]string{"post", "post", "pop", "hold", "arm", "resize", "empty"}).Draw(t, "do") {
			case "post":
				if s.Free() != depth-len(waiting) {
					t.Fatalf("%d free of %d with %d waiting", s.Free(), depth, len(waiting))
				}
				if s.Free() == 0 {
					continue
				}
				w := s.Slot(0)
				w.ID = next
				for k := range next % 4 {
					w.SGL = append(w.SGL, ib.SGE{Addr: next<<8 | k})
				}
				s.Publish(1)
				waiting = append(waiting, next)
				next++
			case "pop":
				if _, ok := peek(i); !ok {
					continue
				}
				qs[i].Pop()
				if len(held[i]) > 0 {
					held[i] = nil
				} else {
					waiting = waiting[1:]
					check()
				}
			case "hold":
				if _, ok := peek(i); !ok {
					continue
				}
				qs[i].Hold()
				if len(held[i]) == 0 {
					held[i], waiting = waiting[:1:1], waiting[1:]
					check()
				}
			case "arm":
				limit = rapid.IntRange(0, depth).Draw(t, "limit")
				s.Arm(limit)
				check()
			case "resize":
				depth = rapid.IntRange(max(1, len(waiting)), 60).Draw(t, "depth")
				s.Resize(depth)
			case "empty":
				qs[i].Empty()
				held[i] = nil
			}
			if events != wantEvents || s.Limit() != limit || s.Posted() != len(waiting) {
				t.Fatalf("%d events, limit %d, %d waiting; want %d, %d, %d", events, s.Limit(), s.Posted(), wantEvents, limit, len(waiting))
			}
			for i := range qs {
				id, ok := peek(i)
				w := qs[i].Peek()
				if ok != (w != nil) || ok && w.ID != id || qs[i].Posted() != len(held[i]) {
					t.Fatalf("queue pair %d sees %+v, want %d, %v", i, w, id, ok)
				}
				if ok && !slices.EqualFunc(w.SGL, make([]struct{}, id%4), func(e ib.SGE, _ struct{}) bool { return e.Addr>>8 == id }) {
					t.Fatalf("receive %d has the list %+v", id, w.SGL)
				}
			}
		}
	})
}

func TestSharedQueueDoesNotAllocate(t *testing.T) {
	var s SharedQueue
	s.Init(1, 64, 4, nil)
	var q RecvQueue
	q.InitShared(&s)
	post := func() {
		for i := range 32 {
			w := s.Slot(i)
			w.SGL = append(w.SGL, ib.SGE{}, ib.SGE{}, ib.SGE{}, ib.SGE{})
		}
		s.Publish(32)
	}
	for range 4 {
		post()
		for range 32 {
			q.Hold()
			q.Pop()
		}
	}
	if n := testing.AllocsPerRun(50, func() {
		post()
		for range 32 {
			q.Hold()
			q.Pop()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d := cmp.Diff(0, s.Posted()); d != "" {
		t.Error(d)
	}
}
