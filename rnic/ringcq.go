package rnic

import (
	"math/bits"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/ib"
)

// A ring allocates its completions in chunks of at least this many, and so that
// there are not more chunks than that.
const (
	cqChunk  = 32
	cqChunks = 1024
)

// cqRing is the ring between the owner, who pushes completions, and one
// consumer, who pops them. Storage appears in chunks as it is first used.
//
// Arming is exact: the armed word holds the position that the next completion
// had when the consumer armed, so that a completion which was there already,
// or which was being pushed, is never reported and never missed.
type cqRing struct {
	depth  atomic.Uint32 // changed by resize alone; read by anyone
	mask   uint32
	shift  uint8 // log2 of a chunk
	chunks [][]ib.WC

	tail  atomic.Uint32 // next to push; written by the owner
	head  atomic.Uint32 // next to pop; written by the consumer
	armed atomic.Uint64 // kind << 32 | tail when armed; 0: not armed
	bad   atomic.Bool   // overflowed
	hook  atomic.Pointer[func()]

	watched atomic.Bool
	onWatch atomic.Pointer[func()]
}

const (
	armSolicited = 1
	armAny       = 2
)

func (r *cqRing) init(depth int) {
	n := uint32(1) << bits.Len32(uint32(depth-1))
	chunk := max(cqChunk, n/cqChunks)
	r.depth.Store(uint32(depth))
	r.mask, r.shift = n-1, uint8(bits.TrailingZeros32(chunk))
	r.chunks = make([][]ib.WC, (n+chunk-1)/chunk)
}

// resize gives the ring another depth, at least len. What waits stays in order
// and under its position, so that nothing that has been armed changes. Owner,
// while there is no consumer.
func (r *cqRing) resize(depth int) {
	old := r.chunks
	mask, shift := r.mask, r.shift
	r.init(depth)
	for pos := r.head.Load(); pos != r.tail.Load(); pos++ {
		i := pos & mask
		*r.slot(pos) = old[i>>shift][i&(1<<shift-1)]
	}
}

// slot returns the place of a position, and allocates its chunk.
func (r *cqRing) slot(pos uint32) *ib.WC {
	i := pos & r.mask
	c := r.chunks[i>>r.shift]
	if c == nil {
		c = make([]ib.WC, 1<<r.shift)
		r.chunks[i>>r.shift] = c
	}
	return &c[i&(1<<r.shift-1)]
}

// push appends wc and raises the event if the ring is armed for it; false means
// that the ring is full and wc lost. Owner.
func (r *cqRing) push(wc *ib.WC, solicited bool) bool {
	t := r.tail.Load()
	if t-r.head.Load() >= r.depth.Load() {
		return false
	}
	*r.slot(t) = *wc
	r.tail.Store(t + 1)
	r.notice()

	arm := r.armed.Load()
	if arm == 0 || int32(t-uint32(arm)) < 0 {
		return true
	}
	if arm>>32 == armAny || solicited || wc.Status != ib.Success {
		if r.armed.CompareAndSwap(arm, 0) {
			r.fire()
		}
	}
	return true
}

// overflow marks the ring as broken and, since nothing will come any more,
// raises the event of an armed ring. Owner.
func (r *cqRing) overflow() {
	r.bad.Store(true)
	r.notice()
	if r.armed.Swap(0) != 0 {
		r.fire()
	}
}

// notice calls the watcher of a watched ring. Whoever starts watching and then
// looks at the ring misses nothing. Owner.
func (r *cqRing) notice() {
	if r.watched.Load() {
		if f := r.onWatch.Load(); f != nil {
			(*f)()
		}
	}
}

func (r *cqRing) fire() {
	if f := r.hook.Load(); f != nil {
		(*f)()
	}
}

// pop moves completions into wcs, oldest first. Consumer.
func (r *cqRing) pop(wcs []ib.WC) int {
	h := r.head.Load()
	n := min(int(r.tail.Load()-h), len(wcs))
	for k := range n {
		i := (h + uint32(k)) & r.mask
		wcs[k] = r.chunks[i>>r.shift][i&(1<<r.shift-1)]
	}
	if n > 0 {
		r.head.Store(h + uint32(n))
	}
	return n
}

// arm asks for one event. Consumer. A request for any completion is not
// weakened by a later one for solicited completions.
func (r *cqRing) arm(solicitedOnly bool) {
	kind := uint64(armAny)
	if solicitedOnly {
		kind = armSolicited
	}
	for {
		old := r.armed.Load()
		if old>>32 > kind {
			return
		}
		if r.armed.CompareAndSwap(old, kind<<32|uint64(r.tail.Load())) {
			return
		}
	}
}

func (r *cqRing) len() int { return int(r.tail.Load() - r.head.Load()) }
