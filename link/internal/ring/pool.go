package ring

// BufLen is what one UDP send or one merged receive can hold at most.
const BufLen = 64 << 10

const slabBufs = 8

// Pool lends buffers of one length, the most recently returned first, since
// that one is still in cache. It grows as it is asked; its users bound how many
// they hold.
type Pool struct {
	size int
	free [][]byte
	lent int
}

// NewPool returns a pool of buffers of size bytes.
func NewPool(size int) Pool { return Pool{size: size} }

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
	if cap(b) != p.size {
		return
	}
	p.free = append(p.free, b[:p.size])
	p.lent--
}

// Lent returns how many buffers are out.
func (p *Pool) Lent() int { return p.lent }

// grow adds a slab. Buffers that began at multiples of their length would all
// compete for the same few sets of every cache; so they are further apart.
func (p *Pool) grow() {
	stride := p.size + 64
	if p.size >= 4096 {
		stride += 4096
	}
	slab := make([]byte, slabBufs*stride)
	for i := range slabBufs {
		off := i * stride
		p.free = append(p.free, slab[off:off+p.size:off+p.size])
	}
}
