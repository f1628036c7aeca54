package transport

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
	"pgregory.net/rapid"
)

// startAt moves an empty ring to a position, to test the wrap of positions.
func (q *SendQueue) startAt(pos uint32) { q.head.Store(pos); q.tail.Store(pos) }
func (q *RecvQueue) startAt(pos uint32) { q.head.Store(pos); q.tail.Store(pos) }

// A ring is a queue of at most depth requests, for any depth, any position and
// any order of posts and retirements.
func TestSendQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		depth := rapid.IntRange(1, 70).Draw(rt, "depth")
		sges := rapid.IntRange(0, 3).Draw(rt, "sges")
		inline := rapid.IntRange(0, 9).Draw(rt, "inline")
		q := NewSendQueue(depth, sges, inline)
		q.startAt(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 1, 1<<32 - 64, 1<<31 - 3}).Draw(rt, "start"))
		if q.Depth() != depth || q.MaxSGE() != sges || q.MaxInline() != inline {
			rt.Fatalf("sizes %d, %d, %d", q.Depth(), q.MaxSGE(), q.MaxInline())
		}
		var model []uint64
		next := uint64(1)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if q.Free() != depth-len(model) || int(q.Tail()-q.Head()) != len(model) {
				rt.Fatalf("free %d, posted %d; want %d, %d", q.Free(), q.Tail()-q.Head(), depth-len(model), len(model))
			}
			if n := rapid.IntRange(0, q.Free()).Draw(rt, "post"); rapid.Bool().Draw(rt, "posting") {
				for i := range n {
					fillSend(rt, q, i, next)
					model = append(model, next)
					next++
				}
				q.Publish(n)
			} else {
				for range rapid.IntRange(0, len(model)).Draw(rt, "retire") {
					q.At(q.Head()).Done = 99 // the notebook must not reach the next user
					q.Retire()
					model = model[1:]
				}
			}
			for i, id := range model {
				checkSend(rt, q.At(q.Head()+uint32(i)), id, sges, inline)
			}
		}
	})
}

func fillSend(t *rapid.T, q *SendQueue, i int, id uint64) {
	w := q.Slot(i)
	if w.ID != 0 || w.Done != 0 || w.Started || len(w.SGL) != 0 || cap(w.SGL) != q.MaxSGE() || len(w.Inline) != 0 {
		t.Fatalf("slot is not clean: %+v", w)
	}
	w.ID = id
	for k := range q.MaxSGE() {
		w.SGL = append(w.SGL, ib.SGE{Addr: id, Length: uint32(k)})
	}
	b := q.InlineRoom(i)
	if len(b) != 0 || cap(b) != q.MaxInline() {
		t.Fatalf("inline room %d of %d", len(b), cap(b))
	}
	w.Inline = append(b, bytes.Repeat([]byte{byte(id)}, q.MaxInline())...)
}

func checkSend(t *rapid.T, w *SendWQE, id uint64, sges, inline int) {
	if w.ID != id || len(w.SGL) != sges || len(w.Inline) != inline || w.Done != 0 {
		t.Fatalf("slot of %d is %+v", id, w)
	}
	for k, e := range w.SGL {
		if e != (ib.SGE{Addr: id, Length: uint32(k)}) {
			t.Fatalf("element %d of %d is %+v", k, id, e)
		}
	}
	for _, b := range w.Inline {
		if b != byte(id) {
			t.Fatalf("inline data of %d is % x", id, w.Inline)
		}
	}
}

func TestRecvQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		depth := rapid.IntRange(1, 70).Draw(rt, "depth")
		sges := rapid.IntRange(0, 3).Draw(rt, "sges")
		q := NewRecvQueue(depth, sges)
		q.startAt(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 1, 1<<32 - 64, 1<<31 - 3}).Draw(rt, "start"))
		var model []uint64
		next := uint64(1)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if q.Free() != depth-len(model) || q.Posted() != len(model) || q.Depth() != depth || q.MaxSGE() != sges {
				rt.Fatalf("free %d, posted %d; want %d, %d", q.Free(), q.Posted(), depth-len(model), len(model))
			}
			w := q.Peek()
			switch {
			case (w == nil) != (len(model) == 0):
				rt.Fatalf("peek %v of %v", w, model)
			case w != nil && (w.ID != model[0] || len(w.SGL) != sges):
				rt.Fatalf("peek %+v, want %d", w, model[0])
			}
			if n := rapid.IntRange(0, q.Free()).Draw(rt, "post"); rapid.Bool().Draw(rt, "posting") {
				for i := range n {
					s := q.Slot(i)
					if s.ID != 0 || len(s.SGL) != 0 || cap(s.SGL) != sges {
						rt.Fatalf("slot is not clean: %+v", s)
					}
					s.ID = next
					for range sges {
						s.SGL = append(s.SGL, ib.SGE{Addr: next})
					}
					model = append(model, next)
					next++
				}
				q.Publish(n)
			} else if w != nil {
				q.Pop()
				model = model[1:]
			}
		}
	})
}

// The application posts in batches while the engine retires: every request
// arrives once, in order and whole. The race detector watches.
func TestQueuesBetweenTwoGoroutines(t *testing.T) {
	const total = 4000
	for _, depth := range []int{1, 3, 16, 17, 100} {
		t.Run(fmt.Sprint("send ", depth), func(t *testing.T) {
			q := NewSendQueue(depth, 1, 8)
			q.startAt(1<<32 - total/2)
			var wg sync.WaitGroup
			wg.Go(func() {
				for id := uint64(0); id < total; {
					n := min(q.Free(), int(id%7)+1, int(total-id))
					for i := range n {
						w := q.Slot(i)
						w.ID = id
						w.SGL = append(w.SGL, ib.SGE{Addr: id})
						w.Inline = append(q.InlineRoom(i), byte(id), byte(id>>8))
						id++
					}
					q.Publish(n)
					if n == 0 {
						runtime.Gosched()
					}
				}
			})
			for id := uint64(0); id < total; {
				if q.Head() == q.Tail() {
					runtime.Gosched()
					continue
				}
				w := q.At(q.Head())
				if w.ID != id || w.SGL[0].Addr != id || w.Inline[0] != byte(id) || w.Inline[1] != byte(id>>8) {
					t.Fatalf("request %d is %+v", id, w)
				}
				w.Started, w.Done = true, 1
				q.Retire()
				id++
			}
			wg.Wait()
		})
		t.Run(fmt.Sprint("receive ", depth), func(t *testing.T) {
			q := NewRecvQueue(depth, 1)
			q.startAt(1<<32 - total/2)
			var wg sync.WaitGroup
			wg.Go(func() {
				for id := uint64(0); id < total; {
					n := min(q.Free(), int(id%7)+1, int(total-id))
					for i := range n {
						w := q.Slot(i)
						w.ID = id
						w.SGL = append(w.SGL, ib.SGE{Addr: id})
						id++
					}
					q.Publish(n)
					if n == 0 {
						runtime.Gosched()
					}
				}
			})
			for id := uint64(0); id < total; {
				w := q.Peek()
				if w == nil {
					runtime.Gosched()
					continue
				}
				if w.ID != id || w.SGL[0].Addr != id {
					t.Fatalf("receive %d is %+v", id, w)
				}
				q.Pop()
				id++
			}
			wg.Wait()
		})
	}
}

// An unused ring costs a few pointers; slots appear in chunks as they are used,
// and inline storage only where there is inline data.
func TestRingGrowsByChunks(t *testing.T) {
	const depth = 500
	chunks := func(q *SendQueue) (n int) {
		if q.first != nil {
			n++
		}
		for _, c := range q.rest.chunks {
			if c != nil {
				n++
			}
		}
		return n
	}
	q := NewSendQueue(depth, 2, 64)
	if got := int(unsafe.Sizeof(*q)+unsafe.Sizeof(*q.rest)) + 8*cap(q.rest.chunks); got > 512 {
		t.Errorf("an unused ring of %d slots takes %d bytes", depth, got)
	}
	for i := range 2 * depth {
		w := q.Slot(0)
		if cap(w.Inline) != 0 && i < depth {
			t.Fatalf("slot %d has inline storage", i)
		}
		if i == chunkSlots {
			q.InlineRoom(0)
		}
		q.Publish(1)
		q.Retire()
		if want := min((i+chunkSlots)/chunkSlots, 512/chunkSlots); chunks(q) != want {
			t.Fatalf("after %d posts: %d chunks, want %d", i+1, chunks(q), want)
		}
	}
	if w := q.At(chunkSlots); cap(w.Inline) != 64 {
		t.Error("inline storage is not kept")
	}
	r := NewRecvQueue(depth, 1)
	if got := int(unsafe.Sizeof(*r)+unsafe.Sizeof(*r.rest)) + 8*cap(r.rest.chunks); got > 512 {
		t.Errorf("an unused ring of %d receives takes %d bytes", depth, got)
	}
	for i := range chunkSlots + 1 {
		r.Slot(i)
	}
	if len(r.first) != chunkSlots || r.rest.chunks[0] == nil || r.rest.chunks[1] != nil {
		t.Error("receives do not grow by chunks")
	}
}

// A ring with few slots has no more than it needs.
func TestSmallRing(t *testing.T) {
	for depth, want := range map[int]int{1: 1, 2: 2, 3: 4, 8: 8, 9: 16, 16: 16} {
		q, r := NewSendQueue(depth, 1, 0), NewRecvQueue(depth, 1)
		q.Slot(0)
		r.Slot(0)
		if len(q.first) != want || len(r.first) != want || q.rest != nil || r.rest != nil {
			t.Errorf("depth %d: %d and %d slots, want %d", depth, len(q.first), len(r.first), want)
		}
	}
	if n := unsafe.Sizeof(SendWQE{}); n > 128 {
		t.Errorf("a slot takes %d bytes", n)
	}
}

func TestRingSize(t *testing.T) {
	for depth, want := range map[int]uint32{-1: 1, 0: 1, 1: 1, 2: 2, 3: 4, 16: 16, 17: 32, 1 << 15: 1 << 15, 1<<15 + 1: 1 << 16} {
		if got := ringSize(depth); got != want {
			t.Errorf("depth %d: %d, want %d", depth, got, want)
		}
	}
}

func TestQueuesDoNotAllocate(t *testing.T) {
	s, r := NewSendQueue(100, 2, 32), NewRecvQueue(100, 2)
	round := func() {
		for range 3 {
			w := s.Slot(0)
			w.SGL = append(w.SGL, ib.SGE{}, ib.SGE{})
			w.Inline = append(s.InlineRoom(0), 1, 2, 3)
			s.Publish(1)
			s.At(s.Head()).Started = true
			s.Retire()
			v := r.Slot(0)
			v.SGL = append(v.SGL, ib.SGE{})
			r.Publish(1)
			r.Peek()
			r.Pop()
		}
	}
	for range 200 {
		round() // every chunk has been used
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSendQueue(b *testing.B) {
	q := NewSendQueue(128, 1, 0)
	for b.Loop() {
		w := q.Slot(0)
		w.SGL = append(w.SGL, ib.SGE{Addr: 1, Length: 2})
		q.Publish(1)
		q.At(q.Head()).Started = true
		q.Retire()
	}
}
