package swtch

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ce is the code point of congestion experienced (RFC 3168 §5).
const ce = 3

// marks draws whether the queue, with what it holds now, marks a packet.
func (q *queue) marks(r *sim.Rand) bool {
	n := q.fifo.Bytes()
	switch {
	case n <= q.kmin:
		return false
	case n > q.kmax:
		return true
	}
	return r.Below(q.probability(n))
}

// probability returns the chance of a mark at n bytes, kmin < n ≤ kmax, of 2^32.
func (q *queue) probability(n int64) uint64 {
	hi, lo := bits.Mul64(q.pmax, uint64(n-q.kmin))
	p, _ := bits.Div64(hi, lo, uint64(q.kmax-q.kmin))
	return p
}

// mark marks a packet that can be marked.
func (q *queue) mark(p *sim.Packet) {
	if p.ECN == 1 || p.ECN == 2 {
		p.ECN = ce
		q.marked++
	}
}
