package transport

import (
	"math/bits"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/ib"
)

// chunkSlots is how many slots a ring allocates at a time: an unused ring costs
// a few pointers.
const chunkSlots = 16

// SendWQE is one slot of a send queue. The application's side fills the first
// part; the rest is the engine's notebook and is zeroed by a post.
type SendWQE struct {
	ID      uint64
	Op      ib.WROp
	Flags   ib.SendFlags
	Imm     uint32
	Len     uint32 // payload bytes of the whole message
	Remote  ib.Remote
	Compare uint64
	SwapAdd uint64
	UD      ib.Datagram
	SGL     []ib.SGE // in the ring's own storage
	Inline  []byte   // in the ring's own storage; used when Flags has Inline

	// Engine's notebook.
	FirstPSN ib.PSN
	LastPSN  ib.PSN
	Done     uint32 // the engine's own: progress, or how a READ is cut
	Started  bool
	Status   ib.WCStatus
}

// SendQueue is the ring between an application that posts (one at a time: the
// poster holds the queue pair's lock) and the engine that sends and retires.
// Slots stay in the ring until they are retired, in order.
//
//	head: oldest not retired (engine)        tail: next free (application)
type SendQueue struct {
	depth     uint32
	mask      uint32
	maxSGE    int
	maxInline int
	chunks    []*sendChunk
	tail      atomic.Uint32
	head      atomic.Uint32
}

type sendChunk struct {
	wqe    [chunkSlots]SendWQE
	sge    []ib.SGE
	inline []byte
}

// NewSendQueue returns a ring of depth slots with room for maxSGE elements and
// maxInline bytes each. Storage is allocated when slots are first used.
func NewSendQueue(depth, maxSGE, maxInline int) *SendQueue {
	n := ringSize(depth)
	return &SendQueue{
		depth: uint32(depth), mask: n - 1, maxSGE: maxSGE, maxInline: maxInline,
		chunks: make([]*sendChunk, (n+chunkSlots-1)/chunkSlots),
	}
}

func ringSize(depth int) uint32 {
	if depth < 1 {
		depth = 1
	}
	return uint32(1) << bits.Len32(uint32(depth-1))
}

// Depth returns the number of slots that may be in use.
func (q *SendQueue) Depth() int { return int(q.depth) }

// MaxSGE returns the most elements of a work request.
func (q *SendQueue) MaxSGE() int { return q.maxSGE }

// MaxInline returns the most inline bytes of a work request.
func (q *SendQueue) MaxInline() int { return q.maxInline }

// Free returns how many more requests may be posted. Application's side.
func (q *SendQueue) Free() int { return int(q.depth - (q.tail.Load() - q.head.Load())) }

// Slot returns the slot i places after the last posted one for filling; it must
// be below Free. Its SGL and Inline have length 0 and the ring's capacity.
// Application's side; Publish makes filled slots visible.
func (q *SendQueue) Slot(i int) *SendWQE {
	pos := q.tail.Load() + uint32(i)
	idx := pos & q.mask
	c := q.chunks[idx/chunkSlots]
	if c == nil {
		c = &sendChunk{sge: make([]ib.SGE, chunkSlots*q.maxSGE)}
		q.chunks[idx/chunkSlots] = c
	}
	k := int(idx % chunkSlots)
	w := &c.wqe[k]
	*w = SendWQE{SGL: c.sge[k*q.maxSGE : k*q.maxSGE : (k+1)*q.maxSGE]}
	return w
}

// InlineRoom returns the storage for inline data of the slot i places after
// the last posted one: length 0, capacity MaxInline. Application's side.
func (q *SendQueue) InlineRoom(i int) []byte {
	idx := (q.tail.Load() + uint32(i)) & q.mask
	c := q.chunks[idx/chunkSlots]
	if c.inline == nil {
		c.inline = make([]byte, chunkSlots*q.maxInline)
	}
	k := int(idx % chunkSlots)
	return c.inline[k*q.maxInline : k*q.maxInline : (k+1)*q.maxInline]
}

// Publish posts the first n slots after the tail. Application's side.
func (q *SendQueue) Publish(n int) { q.tail.Add(uint32(n)) }

// Head and Tail bound the posted, unretired slots. Engine's side.
func (q *SendQueue) Head() uint32 { return q.head.Load() }

// Tail returns the position after the last posted slot.
func (q *SendQueue) Tail() uint32 { return q.tail.Load() }

// At returns the posted slot at position pos, Head ≤ pos < Tail on the circle
// of 2^32 positions. Engine's side.
func (q *SendQueue) At(pos uint32) *SendWQE {
	idx := pos & q.mask
	return &q.chunks[idx/chunkSlots].wqe[idx%chunkSlots]
}

// Retire frees the oldest slot. Engine's side.
func (q *SendQueue) Retire() { q.head.Add(1) }

// RecvWQE is one slot of a receive queue.
type RecvWQE struct {
	ID  uint64
	SGL []ib.SGE // in the ring's own storage
}

// RecvQueue is the ring of posted receives; like [SendQueue], with the engine
// consuming slots in order.
type RecvQueue struct {
	depth  uint32
	mask   uint32
	maxSGE int
	chunks []*recvChunk
	tail   atomic.Uint32
	head   atomic.Uint32
}

type recvChunk struct {
	wqe [chunkSlots]RecvWQE
	sge []ib.SGE
}

// NewRecvQueue returns a ring of depth slots with room for maxSGE elements.
func NewRecvQueue(depth, maxSGE int) *RecvQueue {
	n := ringSize(depth)
	return &RecvQueue{
		depth: uint32(depth), mask: n - 1, maxSGE: maxSGE,
		chunks: make([]*recvChunk, (n+chunkSlots-1)/chunkSlots),
	}
}

// Depth returns the number of slots that may be in use.
func (q *RecvQueue) Depth() int { return int(q.depth) }

// MaxSGE returns the most elements of a work request.
func (q *RecvQueue) MaxSGE() int { return q.maxSGE }

// Free returns how many more requests may be posted. Application's side.
func (q *RecvQueue) Free() int { return int(q.depth - (q.tail.Load() - q.head.Load())) }

// Slot returns the slot i places after the last posted one for filling.
// Application's side.
func (q *RecvQueue) Slot(i int) *RecvWQE {
	idx := (q.tail.Load() + uint32(i)) & q.mask
	c := q.chunks[idx/chunkSlots]
	if c == nil {
		c = &recvChunk{sge: make([]ib.SGE, chunkSlots*q.maxSGE)}
		q.chunks[idx/chunkSlots] = c
	}
	k := int(idx % chunkSlots)
	w := &c.wqe[k]
	*w = RecvWQE{SGL: c.sge[k*q.maxSGE : k*q.maxSGE : (k+1)*q.maxSGE]}
	return w
}

// Publish posts the first n slots after the tail. Application's side.
func (q *RecvQueue) Publish(n int) { q.tail.Add(uint32(n)) }

// Posted returns the number of receives waiting. Engine's side.
func (q *RecvQueue) Posted() int { return int(q.tail.Load() - q.head.Load()) }

// Peek returns the oldest posted receive, or nil. It stays valid until Pop.
// Engine's side.
func (q *RecvQueue) Peek() *RecvWQE {
	pos := q.head.Load()
	if pos == q.tail.Load() {
		return nil
	}
	idx := pos & q.mask
	return &q.chunks[idx/chunkSlots].wqe[idx%chunkSlots]
}

// Pop frees the oldest slot. Engine's side.
func (q *RecvQueue) Pop() { q.head.Add(1) }
