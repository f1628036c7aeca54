package pcap

import (
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

// Port is RoCEv2's UDP port.
const Port = 4791

// Config says how a link appears in the file.
type Config struct {
	// Name is the interface's name; "" is "verbena".
	Name string
	// Port is the UDP port that packets go to; 0 is 4791.
	Port uint16
}

// Link is the middleware. It implements link.Link and owns the link inside.
type Link struct {
	inner link.Link
	w     *Writer
	own   bool // the writer is closed with the link
	iface int
	port  uint16
	ether bool
	ident bool // the inner link's segments have known Identifications

	mu     sync.Mutex
	cur    *batch
	missed uint64    // not yet told to the goroutine
	epoch  time.Time // of the instants that Recv and Commit are told
	closed bool
}

// New records one link into w, which is closed with the link.
func New(inner link.Link, w io.WriteCloser, cfg Config) (*Link, error) {
	pw, err := NewWriter(w)
	if err != nil {
		return nil, err
	}
	l, err := pw.Wrap(inner, cfg)
	if err != nil {
		_ = pw.Close()
		return nil, err
	}
	l.own = true
	return l, nil
}

// Caps implements link.Link.
func (l *Link) Caps() link.Caps { return l.inner.Caps() }

// Path implements link.Link.
func (l *Link) Path(src, dst netip.Addr, srcPort uint16) (link.Path, error) {
	return l.inner.Path(src, dst, srcPort)
}

// Recv implements link.Link.
func (l *Link) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := l.inner.Recv(now, rx)
	if n == 0 {
		return n, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range rx[:n] {
		x := &rx[i]
		l.record(record{
			at: l.wall(now), seg: x.Seg, src: x.Src, dst: x.Dst, srcPort: x.SrcPort, tos: x.TOS, ttl: x.TTL,
		}, x.Data)
	}
	l.handOver(false)
	return n, err
}

// Release implements link.Link.
func (l *Link) Release(rx []frame.Rx) { l.inner.Release(rx) }

// Reserve implements link.Link.
func (l *Link) Reserve(tx []frame.Run) int { return l.inner.Reserve(tx) }

// Commit implements link.Link. What is recorded is what was asked to leave; a
// link may still drop it.
func (l *Link) Commit(now clock.Time, tx []frame.Run) error {
	l.mu.Lock()
	for i := range tx {
		r := &tx[i]
		if r.N <= 0 || !ring.Sane(r, l.inner.Caps().Segments) {
			continue
		}
		l.record(record{
			at: l.wall(now), seg: r.Seg, src: r.Src, dst: r.Dst, srcPort: r.SrcPort, tos: r.TOS, ttl: r.TTL,
			out: true, idents: l.ident,
		}, r.Buf[:r.N])
	}
	l.handOver(false)
	l.mu.Unlock()
	return l.inner.Commit(now, tx)
}

// wall turns an instant of the caller's clock into the time of day. The first
// one ties the two.
func (l *Link) wall(now clock.Time) time.Time {
	if l.epoch.IsZero() {
		c := clock.NewReal()
		l.epoch = c.At(c.Now()).Add(-time.Duration(now))
	}
	return l.epoch.Add(time.Duration(now))
}

// record keeps a piece, or counts it as missed.
func (l *Link) record(r record, data []byte) {
	r.dstPort, r.ether = l.port, l.ether
	if r.seg <= 0 || r.seg > len(data) {
		r.seg = len(data)
	}
	if len(data) == 0 {
		return
	}
	if l.cur != nil && !l.cur.room(len(data)) {
		l.handOver(true)
	}
	if l.cur == nil {
		if l.cur = l.w.take(); l.cur == nil {
			n := uint64((len(data) + r.seg - 1) / r.seg)
			l.missed += n
			l.w.missed.Add(n)
			return
		}
		l.cur.iface, l.cur.missed = l.iface, l.missed
		l.missed = 0
	}
	if !l.cur.room(len(data)) {
		return // longer than a batch: no link has such frames
	}
	l.cur.add(r, data)
}

// handOver gives what is recorded to the goroutine: when it must, or when the
// goroutine has nothing else to do, so that the file follows slow traffic at
// once and fast traffic in batches.
func (l *Link) handOver(must bool) {
	if l.cur != nil && (must || l.w.idle()) {
		l.w.give(l.cur)
		l.cur = nil
	}
}

// Counters implements link.Link.
func (l *Link) Counters() link.Counters { return l.inner.Counters() }

// Event implements link.Link.
func (l *Link) Event() (link.Event, bool) { return l.inner.Event() }

// Wait implements link.Link.
func (l *Link) Wait(now, until clock.Time) error {
	l.mu.Lock()
	l.handOver(true)
	l.mu.Unlock()
	return l.inner.Wait(now, until)
}

// Wake implements link.Link.
func (l *Link) Wake() { l.inner.Wake() }

// Close closes the link inside and hands over what is recorded. If the link
// has the file to itself, it closes the file too and returns what could not be
// written.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.handOver(true)
	l.mu.Unlock()
	err := l.inner.Close()
	if !l.own {
		return err
	}
	if werr := l.w.Close(); err == nil {
		err = werr
	}
	return err
}

// Stats returns the counts of the file that the link writes to.
func (l *Link) Stats() Stats { return l.w.Stats() }

var _ link.Link = (*Link)(nil)
