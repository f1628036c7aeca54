package transport

import (
	"math/bits"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/ib"
)

// chunkSlots is how many slots a ring allocates at a time, unless it has fewer:
// an unused ring costs a few pointers, a ring of one slot that slot.
const chunkSlots = 16

// SendWQE is one slot of a send queue. The application's side fills the first
// part; the rest is the engine's notebook and is zeroed by a post. It takes two
// cache lines.
type SendWQE struct {
	ID      uint64
	Remote  ib.Remote
	Compare uint64
	SwapAdd uint64
	SGL     []ib.SGE // in the ring's own storage
	Inline  []byte   // in the ring's own storage; used when Flags has Inline
	UD      ib.Datagram
	Imm     uint32
	Len     uint32 // payload bytes of the whole message
	Op      ib.WROp
	Flags   ib.SendFlags

	// Engine's notebook.
	Started  bool
	Status   ib.WCStatus
	FirstPSN ib.PSN
	LastPSN  ib.PSN
	Done     uint32 // the engine's own: progress, or how a READ is cut
}

// ring is what a send and a receive queue have in common: positions on a circle
// of 2^32, and the slots that they fall on.
//
//	head: oldest not retired (engine)        tail: next free (application)
type ring[T any] struct {
	depth     uint32
	mask      uint32
	maxSGE    uint32
	maxInline uint32 // of a send queue
	tail      atomic.Uint32
	head      atomic.Uint32
	// first holds the first slots, allocated when one is used; the rest is
	// allocated with a ring that has more.
	first []T
	rest  *ringRest[T]
}

// ringRest holds the slots beyond the first chunk, or what a ring without slots
// has instead.
type ringRest[T any] struct {
	chunks []*[chunkSlots]T
	share  *sharing
}

func (r *ring[T]) init(depth, maxSGE int) {
	n := ringSize(depth)
	r.depth, r.mask, r.maxSGE = uint32(depth), n-1, uint32(maxSGE)
	if n > chunkSlots {
		r.rest = &ringRest[T]{chunks: make([]*[chunkSlots]T, n/chunkSlots-1)}
	}
}

func ringSize(depth int) uint32 {
	if depth < 1 {
		depth = 1
	}
	return uint32(1) << bits.Len32(uint32(depth-1))
}

// at returns the slot of a position that has been used.
func (r *ring[T]) at(pos uint32) *T {
	i := pos & r.mask
	if i < chunkSlots {
		return &r.first[i]
	}
	return &r.rest.chunks[i/chunkSlots-1][i%chunkSlots]
}

// slot is at for the application's side; fresh is the chunk if it is new.
func (r *ring[T]) slot(pos uint32) (w *T, fresh []T) {
	i := pos & r.mask
	if i < chunkSlots {
		if r.first == nil {
			r.first = make([]T, min(r.mask+1, chunkSlots))
			fresh = r.first
		}
		return &r.first[i], fresh
	}
	c := &r.rest.chunks[i/chunkSlots-1]
	if *c == nil {
		*c = new([chunkSlots]T)
		fresh = (*c)[:]
	}
	return &(*c)[i%chunkSlots], fresh
}

// Depth returns the number of slots that may be in use.
func (r *ring[T]) Depth() int { return int(r.depth) }

// MaxSGE returns the most elements of a work request.
func (r *ring[T]) MaxSGE() int { return int(r.maxSGE) }

// Free returns how many more requests may be posted. Application's side.
func (r *ring[T]) Free() int { return int(r.depth - (r.tail.Load() - r.head.Load())) }

// Publish posts the first n slots after the tail. Application's side.
func (r *ring[T]) Publish(n int) { r.tail.Add(uint32(n)) }

// SendQueue is the ring between an application that posts (one at a time: the
// poster holds the queue pair's lock) and the engine that sends and retires.
// Slots stay in the ring until they are retired, in order. Make one with
// NewSendQueue, or Init.
type SendQueue struct{ ring[SendWQE] }

// NewSendQueue returns a ring of depth slots with room for maxSGE elements and
// maxInline bytes each. Storage is allocated when slots are first used.
func NewSendQueue(depth, maxSGE, maxInline int) *SendQueue {
	q := new(SendQueue)
	q.Init(depth, maxSGE, maxInline)
	return q
}

// Init makes a zero SendQueue ready, as NewSendQueue does.
func (q *SendQueue) Init(depth, maxSGE, maxInline int) {
	q.init(depth, maxSGE)
	q.maxInline = uint32(maxInline)
}

// MaxInline returns the most inline bytes of a work request.
func (q *SendQueue) MaxInline() int { return int(q.maxInline) }

// Slot returns the slot i places after the last posted one for filling; it must
// be below Free. Its SGL and Inline have length 0 and the ring's capacity, that
// of Inline once InlineRoom has been called. Application's side; Publish makes
// filled slots visible.
func (q *SendQueue) Slot(i int) *SendWQE {
	w, fresh := q.slot(q.tail.Load() + uint32(i))
	if fresh != nil {
		n := int(q.maxSGE)
		sge := make([]ib.SGE, len(fresh)*n)
		for k := range fresh {
			fresh[k].SGL = sge[k*n : k*n : (k+1)*n]
		}
	}
	*w = SendWQE{SGL: w.SGL[:0], Inline: w.Inline[:0]}
	return w
}

// InlineRoom returns the storage for inline data of the slot i places after
// the last posted one, which Slot has returned: length 0, capacity MaxInline.
// Application's side.
func (q *SendQueue) InlineRoom(i int) []byte {
	w := q.At(q.tail.Load() + uint32(i))
	if w.Inline == nil {
		w.Inline = make([]byte, 0, q.maxInline)
	}
	return w.Inline
}

// Head and Tail bound the posted, unretired slots. Engine's side.
func (q *SendQueue) Head() uint32 { return q.head.Load() }

// Tail returns the position after the last posted slot.
func (q *SendQueue) Tail() uint32 { return q.tail.Load() }

// At returns the posted slot at position pos, Head ≤ pos < Tail on the circle
// of 2^32 positions. Engine's side.
func (q *SendQueue) At(pos uint32) *SendWQE { return q.at(pos) }

// Retire frees the oldest slot. Engine's side.
func (q *SendQueue) Retire() { q.head.Add(1) }

// RecvWQE is one slot of a receive queue.
type RecvWQE struct {
	ID  uint64
	SGL []ib.SGE // in the ring's own storage
}

// RecvQueue is the ring of posted receives; like [SendQueue], with the engine
// consuming slots in order. One that has been given a [SharedQueue] has no ring
// of its own: see srq.go.
type RecvQueue struct{ ring[RecvWQE] }

// NewRecvQueue returns a ring of depth slots with room for maxSGE elements.
func NewRecvQueue(depth, maxSGE int) *RecvQueue {
	q := new(RecvQueue)
	q.Init(depth, maxSGE)
	return q
}

// Init makes a zero RecvQueue ready, as NewRecvQueue does.
func (q *RecvQueue) Init(depth, maxSGE int) { q.init(depth, maxSGE) }

// Slot returns the slot i places after the last posted one for filling.
// Application's side.
func (q *RecvQueue) Slot(i int) *RecvWQE { return recvSlot(&q.ring, i) }

func recvSlot(r *ring[RecvWQE], i int) *RecvWQE {
	w, fresh := r.slot(r.tail.Load() + uint32(i))
	if fresh != nil {
		n := int(r.maxSGE)
		sge := make([]ib.SGE, len(fresh)*n)
		for k := range fresh {
			fresh[k].SGL = sge[k*n : k*n : (k+1)*n]
		}
	}
	*w = RecvWQE{SGL: w.SGL[:0]}
	return w
}

// posted returns how many slots of a ring are in use.
func (r *ring[T]) posted() int { return int(r.tail.Load() - r.head.Load()) }

// Posted returns the number of receives waiting that belong to this queue pair
// alone: what a flush completes. Engine's side.
func (q *RecvQueue) Posted() int {
	if s := q.sharing(); s != nil {
		return s.mine()
	}
	return q.posted()
}

// Peek returns the oldest posted receive, or nil. It stays valid until Pop.
// Engine's side.
func (q *RecvQueue) Peek() *RecvWQE {
	if s := q.sharing(); s != nil {
		return s.peek()
	}
	pos := q.head.Load()
	if pos == q.tail.Load() {
		return nil
	}
	return q.at(pos)
}

// Pop frees the slot that Peek returns. Engine's side.
func (q *RecvQueue) Pop() {
	if s := q.sharing(); s != nil {
		s.pop()
		return
	}
	q.head.Add(1)
}

// Hold says that the message which has begun to fill what Peek returns goes on
// with later packets: of a shared queue nobody else gets it meanwhile. Engine's
// side.
func (q *RecvQueue) Hold() {
	if s := q.sharing(); s != nil {
		s.hold()
	}
}

// Empty forgets what is posted to this queue pair alone. Engine's side.
func (q *RecvQueue) Empty() {
	for n := q.Posted(); n > 0; n-- {
		q.Pop()
	}
}
