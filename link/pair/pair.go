package pair

import (
	"net/netip"
	"sync"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

// maxReserved bounds the runs that one end may have reserved at a time.
const maxReserved = 64

// Config says how the two ends behave. The zero value is a good link.
type Config struct {
	// Caps is what both ends claim. Zero fields take the values of UDP over
	// loopback: MTU 65,507, 64 segments, 65,507 bytes a run. Idents is taken as
	// it is.
	Caps link.Caps
	// Depth is how many runs wait in each direction before further ones are
	// dropped; 0 is 256.
	Depth int
	// Singles makes the receiver see one packet a piece, as from a peer whose
	// packets the kernel does not merge.
	Singles bool
}

// Link is one end.
type Link struct {
	w      *wire
	peer   *Link
	in     ring.Queue
	lent   [][]byte // buffers that the last Recv handed out whole
	off    int      // Singles: bytes of the front piece already handed out
	tx     int      // runs reserved
	cnt    link.Counters
	woken  bool
	closed bool

	gate ring.Gate // opens when something changed for a Wait
}

// wire is what both ends share.
type wire struct {
	mu      sync.Mutex
	caps    link.Caps
	singles bool
	pool    ring.Pool
}

// New returns the two ends. Each must be closed.
func New(cfg Config) (a, b *Link) {
	c := cfg.Caps
	if c.MTU == 0 {
		c.MTU = 65507
	}
	if c.Segments == 0 {
		c.Segments = frame.MaxSegments
	}
	if c.RunBytes == 0 || c.RunBytes > ring.BufLen {
		c.RunBytes = 65507
	}
	if cfg.Depth <= 0 {
		cfg.Depth = 256
	}
	w := &wire{caps: c, singles: cfg.Singles, pool: ring.NewPool(ring.BufLen)}
	a = &Link{w: w, in: ring.NewQueue(cfg.Depth), gate: ring.NewGate()}
	b = &Link{w: w, in: ring.NewQueue(cfg.Depth), gate: ring.NewGate()}
	a.peer, b.peer = b, a
	return a, b
}

// Caps implements link.Link.
func (l *Link) Caps() link.Caps { return l.w.caps }

// Path implements link.Link: every address is at the other end.
func (l *Link) Path(_, _ netip.Addr, srcPort uint16) (link.Path, error) {
	return link.Path{SrcPort: srcPort, MTU: l.w.caps.MTU}, nil
}

// Recv implements link.Link.
func (l *Link) Recv(_ clock.Time, rx []frame.Rx) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	n := 0
	for n < len(rx) && l.in.Len() > 0 {
		if l.w.singles && l.in.Front().Seg != 0 {
			rx[n] = l.nextSegment()
		} else {
			rx[n] = l.in.Pop()
			l.lent = append(l.lent, rx[n].Data)
		}
		n++
	}
	return n, nil
}

// nextSegment cuts one packet off the merged piece at the front.
func (l *Link) nextSegment() frame.Rx {
	rx := *l.in.Front()
	end := min(l.off+rx.Seg, len(rx.Data))
	seg := rx.Data[l.off:end:end]
	if l.off = end; end == len(rx.Data) {
		l.lent = append(l.lent, rx.Data)
		l.in.Pop()
		l.off = 0
	}
	rx.Data, rx.Seg = seg, 0
	return rx
}

// Release implements link.Link.
func (l *Link) Release([]frame.Rx) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for i, b := range l.lent {
		l.w.pool.Put(b)
		l.lent[i] = nil
	}
	l.lent = l.lent[:0]
}

// Reserve implements link.Link.
func (l *Link) Reserve(tx []frame.Run) int {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.closed {
		return 0
	}
	n := min(len(tx), maxReserved-l.tx)
	for i := range tx[:n] {
		tx[i] = frame.Run{Buf: l.w.pool.Get()[:l.w.caps.RunBytes]}
	}
	l.tx += n
	return n
}

// Commit implements link.Link.
func (l *Link) Commit(_ clock.Time, tx []frame.Run) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	sent := false
	for i := range tx {
		r := &tx[i]
		if r.Buf == nil {
			continue
		}
		if r.N == 0 || l.closed || !l.send(r) {
			l.w.pool.Put(r.Buf)
		} else {
			sent = true
		}
		*r = frame.Run{}
		l.tx--
	}
	if sent {
		l.peer.gate.Open()
	}
	if l.closed {
		return link.ErrClosed
	}
	return nil
}

// send moves the run's buffer to the other end, or counts why not.
func (l *Link) send(r *frame.Run) bool {
	switch {
	case !ring.Sane(r, l.w.caps.Segments):
		l.cnt.TxRefused++
	case l.w.caps.Encap == frame.UDPPayload && (!r.Src.IsValid() || r.Src.BitLen() != r.Dst.BitLen()):
		l.cnt.TxRefused += uint64(r.Segs)
	case r.Seg > l.w.caps.MTU:
		l.cnt.TxTooLong += uint64(r.Segs)
	case l.peer.closed:
	case !l.peer.in.Push(ring.Received(r)):
		l.peer.cnt.RxDropped += uint64(r.Segs)
	default:
		return true
	}
	return false
}

// Counters implements link.Link.
func (l *Link) Counters() link.Counters {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.cnt
}

// Event implements link.Link: there are none.
func (l *Link) Event() (link.Event, bool) { return link.Event{}, false }

// Wait implements link.Link.
func (l *Link) Wait(now, until clock.Time) error {
	l.w.mu.Lock()
	closed, ready := l.closed, l.woken || l.in.Len() > 0
	l.woken = false
	l.w.mu.Unlock()
	if closed {
		return link.ErrClosed
	}
	if ready {
		return nil
	}
	l.gate.Wait(now, until)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.woken = false
	if l.closed {
		return link.ErrClosed
	}
	return nil
}

// Wake implements link.Link.
func (l *Link) Wake() {
	l.w.mu.Lock()
	l.woken = true
	l.w.mu.Unlock()
	l.gate.Open()
}

// Close implements link.Link. The other end stays open; what it sends is lost.
func (l *Link) Close() error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for l.in.Len() > 0 {
		l.w.pool.Put(l.in.Pop().Data)
	}
	l.gate.Open()
	return nil
}

var _ link.Link = (*Link)(nil)
