package swtch

import (
	"math"
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ce is the code point of congestion experienced (RFC 3168 §5).
const ce = 3

// marks draws whether the queue, with what it has in it now, marks a packet.
func (q *queue) marks(w *Switch, _ *sim.Packet) bool {
	n := q.fifo.Bytes()
	switch {
	case n <= q.ecn.KMin:
		return false
	case n > q.ecn.KMax:
		return true
	}
	return w.rand.Below(q.ecn.probability(n))
}

// probability returns the chance of a mark between KMin and KMax, of 2^32.
func (e *ECN) probability(n int64) uint64 {
	p := uint64(e.PMax)
	if e.PMax == math.MaxUint32 {
		p = 1 << 32
	}
	if e.KMax == e.KMin {
		return p
	}
	hi, lo := bits.Mul64(p, uint64(n-e.KMin))
	r, _ := bits.Div64(hi, lo, uint64(e.KMax-e.KMin))
	return r
}

func (q *queue) mark(p *sim.Packet) {
	if p.ECN == 1 || p.ECN == 2 {
		p.ECN = ce
		q.marked++
	}
}
