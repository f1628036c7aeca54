package fault

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// Recv implements link.Link.
func (l *Link) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	l.since(now)
	l.expireOut(now)
	if len(l.in.stages) == 0 {
		return l.inner.Recv(now, rx)
	}
	if l.lent == 0 && l.head == len(l.ready) {
		if err := l.receive(now); err != nil {
			return 0, err
		}
	}
	l.in.expire(now, l.emitIn)
	n := 0
	for n < len(rx) && l.head < len(l.ready) {
		it := &l.ready[l.head]
		rx[n] = it.rx
		if it.own != nil {
			l.handed = append(l.handed, it.own)
		}
		*it = item{}
		l.head++
		n++
	}
	l.readyLen.Store(int32(len(l.ready) - l.head))
	l.updateDue()
	return n, nil
}

// maxSwallowed bounds how many batches in a row one Recv takes of which nothing
// is handed on.
const maxSwallowed = 64

// receive takes a batch from the link inside. A batch of which nothing is left
// is given back at once and the next one taken: a caller that is handed nothing
// has nothing to release, and takes 0 for "nothing has arrived".
func (l *Link) receive(now clock.Time) error {
	l.ready, l.head = l.ready[:0], 0
	for range maxSwallowed {
		n, err := l.inner.Recv(now, l.scratch)
		if err != nil {
			return err
		}
		for i := range l.scratch[:n] {
			l.arrive(now, &l.scratch[i])
		}
		if n == 0 || len(l.ready) > 0 {
			l.lent = n
			return nil
		}
		l.inner.Release(l.scratch[:n])
		clear(l.scratch[:n])
	}
	return nil
}

// arrive cuts a piece where something happens to a packet, and queues the
// parts.
func (l *Link) arrive(now clock.Time, piece *frame.Rx) {
	n := len(piece.Data)
	if n == 0 {
		l.queue(piece, 0, 0)
		return
	}
	seg := piece.Seg
	if seg == 0 {
		seg = n
	}
	p := passer{peer: piece.Src, tos: piece.TOS, at: l.since(now)}
	from := 0 // where the stretch begins to which nothing happened
	for off := 0; off < n; off += seg {
		end := min(off+seg, n)
		var v verdict
		if l.packet(&p, piece.Data[off:end]) {
			if l.ether {
				p.peer = l.env.Src.Addr()
			}
			p.local = destQPN(p.b)
			v = l.judge(&l.in, &p)
		}
		if !v.touched() && len(l.in.reordered) == 0 {
			continue
		}
		if from < off {
			l.queue(piece, from, off)
		}
		l.deliver(now, piece, off, end, &v)
		from = end
	}
	if from < n {
		l.queue(piece, from, n)
	}
}

// queue hands on the bytes from one offset to another.
func (l *Link) queue(piece *frame.Rx, from, to int) {
	rx := *piece
	rx.Data = piece.Data[from:to]
	if rx.Seg >= len(rx.Data) {
		rx.Seg = 0
	}
	l.ready = append(l.ready, item{rx: rx})
}

// deliver does to one packet what was decided.
func (l *Link) deliver(now clock.Time, piece *frame.Rx, off, end int, v *verdict) {
	if v.drop {
		return
	}
	it := item{rx: *piece}
	it.rx.Data, it.rx.Seg = piece.Data[off:end], 0
	if v.ce {
		it.rx.TOS |= ecnCE
	}
	if v.corrupt || v.ce && l.ether {
		it.own = l.copyOf(it.rx.Data)
		it.rx.Data = it.own[:end-off]
		l.spoil(it.rx.Data, v)
	}
	held := v.held()
	if held {
		l.hold(&l.in, now, it.rx, v)
	}
	// Of a packet that is held and doubled, one goes ahead.
	copies := 1
	if v.dup {
		copies++
	}
	if held {
		copies--
	}
	for range copies {
		l.ready = append(l.ready, it)
		if it.own != nil {
			it.own = l.copyOf(it.rx.Data)
			it.rx.Data = it.own[:end-off]
		}
	}
	if it.own != nil {
		l.pool.Put(it.own)
	}
	if !held {
		l.in.passed(1, l.emitIn)
	}
}

// emitIn queues a packet that was held.
func (l *Link) emitIn(p heldPacket) {
	l.ready = append(l.ready, item{rx: p.rx, own: p.own})
}

// Release implements link.Link.
func (l *Link) Release(rx []frame.Rx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.in.stages) == 0 {
		l.inner.Release(rx)
		return
	}
	for i, b := range l.handed {
		l.pool.Put(b)
		l.handed[i] = nil
	}
	l.handed = l.handed[:0]
	if l.lent != 0 && l.head == len(l.ready) {
		l.inner.Release(l.scratch[:l.lent])
		clear(l.scratch[:l.lent])
		l.lent = 0
	}
}
