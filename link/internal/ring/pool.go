package ring

// BufLen is the length of every buffer: what one UDP send or one merged
// receive can hold at most.
const BufLen = 64 << 10

// stride is the distance between two buffers of a slab. Buffers that begin at
// multiples of 64 KiB would all compete for the same few sets of every cache.
const stride = BufLen + 4096 + 64

const slabBufs = 8

// Pool lends buffers of BufLen bytes, the most recently returned first, since
// that one is still in cache. It grows as it is asked; its users bound how many
// they hold.
type Pool struct {
	free [][]byte
	lent int
}

// Get returns a buffer. Its contents are unspecified.
func (p *Pool) Get() []byte {
	if len(p.free) == 0 {
		p.grow()
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.lent++
	return b
}

// Put takes a buffer back, in any reslicing that begins at its start. Foreign
// slices are ignored.
func (p *Pool) Put(b []byte) {
	if cap(b) != BufLen {
		return
	}
	p.free = append(p.free, b[:BufLen])
	p.lent--
}

// Lent returns how many buffers are out.
func (p *Pool) Lent() int { return p.lent }

func (p *Pool) grow() {
	slab := make([]byte, slabBufs*stride)
	for i := range slabBufs {
		off := i * stride
		p.free = append(p.free, slab[off:off+BufLen:off+BufLen])
	}
}
