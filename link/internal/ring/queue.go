package ring

import "github.com/verbena-rdma/verbena/frame"

// DefaultTTL is the TTL of runs that name none.
const DefaultTTL = 64

// Queue is a bounded first-in first-out queue of received pieces.
type Queue struct {
	items []frame.Rx
	head  int
	n     int
}

// NewQueue returns a queue that holds depth pieces.
func NewQueue(depth int) Queue { return Queue{items: make([]frame.Rx, depth)} }

// Len returns how many pieces wait.
func (q *Queue) Len() int { return q.n }

// Push appends a piece, or returns false if the queue is full.
func (q *Queue) Push(rx frame.Rx) bool {
	if q.n == len(q.items) {
		return false
	}
	i := q.head + q.n
	if i >= len(q.items) {
		i -= len(q.items)
	}
	q.items[i] = rx
	q.n++
	return true
}

// Front returns the oldest piece in place; the queue is not empty.
func (q *Queue) Front() *frame.Rx { return &q.items[q.head] }

// Pop removes the oldest piece; the queue is not empty.
func (q *Queue) Pop() frame.Rx {
	rx := q.items[q.head]
	q.items[q.head] = frame.Rx{}
	if q.head++; q.head == len(q.items) {
		q.head = 0
	}
	q.n--
	return rx
}

// Received returns the run as the other side sees it, over the same buffer.
func Received(r *frame.Run) frame.Rx {
	rx := frame.Rx{
		Data: r.Buf[:r.N], Src: r.Src, Dst: r.Dst,
		SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL,
	}
	if r.Segs > 1 {
		rx.Seg = r.Seg
	}
	if rx.TTL == 0 {
		rx.TTL = DefaultTTL
	}
	return rx
}

// Sane reports whether the lengths of a run agree with each other and with
// the link's limit of segments.
func Sane(r *frame.Run, segments int) bool {
	return r.N <= len(r.Buf) && r.Seg > 0 && r.Segs >= 1 && r.Segs <= segments &&
		(r.Segs-1)*r.Seg < r.N && r.N <= r.Segs*r.Seg
}
