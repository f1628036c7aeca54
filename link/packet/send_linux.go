package packet

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
	"github.com/verbena-rdma/verbena/wire/ether"
)

const (
	// txVec is how many frames one system call sends.
	txVec = frame.MaxSegments
	// roomTries and roomMs bound the wait for room in the interface's queue: the
	// device stands still meanwhile.
	roomTries = 5
	roomMs    = 1
)

// txIov is how many pieces of memory the frames of one system call have at most.
const txIov = 512

// txBatch is the gather list of one sendmmsg. A message is the note that the
// kernel wants before a frame (vnet), and the frame.
type txBatch struct {
	hdr  [txVec]mmsghdr
	msg  [txVec]txMsg
	iov  [txIov]unix.Iovec
	n    int   // messages
	iovs int   // used
	at   int   // where the next message's begin
	kind uint8 // gsoUDP
	out  unix.PollFd
}

// txMsg is a message of the batch: a frame, or a run that is to be cut.
type txMsg struct {
	buf  []byte
	seg  int                         // 0: one frame
	head [vnetLen + maxEnvelope]byte // of a run
}

func (b *txBatch) init(fd int) {
	b.out = unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT}
	b.kind = gsoUDP
}

// room reports whether a message of so many pieces fits.
func (b *txBatch) room(pieces int) bool { return b.n < txVec && b.iovs+pieces <= txIov }

// part adds a piece to the message in hand.
func (b *txBatch) part(p []byte) {
	b.iov[b.iovs].Base = &p[0]
	b.iov[b.iovs].SetLen(len(p))
	b.iovs++
}

// end ends the message in hand.
func (b *txBatch) end() {
	h := &b.hdr[b.n].hdr
	h.Iov = &b.iov[b.at]
	h.SetIovlen(b.iovs - b.at)
	b.at = b.iovs
	b.n++
}

// packets counts the packets of a message.
func (m *txMsg) packets() uint64 {
	if m.seg == 0 {
		return 1
	}
	return uint64((len(m.buf) + m.seg - 1) / m.seg)
}

// packets counts the packets of the messages from at on.
func (b *txBatch) packets(at int) (n uint64) {
	for i := at; i < b.n; i++ {
		n += b.msg[i].packets()
	}
	return n
}

// reset empties the batch.
func (b *txBatch) reset() {
	for i := range b.n {
		b.msg[i].buf = nil
	}
	clear(b.iov[:b.iovs])
	b.n, b.iovs, b.at = 0, 0, 0
}

// Reserve implements link.Link.
func (l *system) Reserve(tx []frame.Run) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	n := min(len(tx), maxReserved-l.reserved)
	for i := range tx[:n] {
		tx[i] = frame.Run{Buf: l.txPool.Get()[:l.caps.RunBytes]}
	}
	l.reserved += n
	return n
}

// Commit implements link.Link.
func (l *system) Commit(_ clock.Time, tx []frame.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range tx {
		if r := &tx[i]; r.Buf != nil && r.N != 0 && !l.closed && l.send(r) {
			r.Buf = nil // it has moved to the local queue
			l.reserved--
		}
	}
	l.flush()
	for i := range tx {
		if b := tx[i].Buf; b != nil {
			l.txPool.Put(b)
			l.reserved--
		}
		tx[i] = frame.Run{}
	}
	if l.closed {
		return link.ErrClosed
	}
	return nil
}

// send puts the frames of a run into the batch, or counts why not. It returns
// true if the buffer is not the run's any more.
func (l *system) send(r *frame.Run) (moved bool) {
	if !ring.Sane(r, l.caps.Segments) {
		l.cnt.TxRefused++
		return false
	}
	// The shortest segment must have room for a header.
	if last := r.N - (r.Segs-1)*r.Seg; last < ether.HeaderLen+ether.TagLen {
		l.cnt.TxRefused += uint64(r.Segs)
		return false
	}
	dst := ether.ControlAddr()
	if !control(r.Buf) {
		h := l.hopOf(r)
		if h == nil {
			l.cnt.TxRefused += uint64(r.Segs)
			return false
		}
		if h.local {
			return l.loop(r)
		}
		if r.Seg > h.mtu {
			l.tooLong(r, h)
			return false
		}
		if !h.known && !l.find(h) {
			l.hold(h, r)
			return false
		}
		dst = h.mac
		if h.joined {
			l.echo(r)
		}
	}
	if r.Segs > 1 {
		if env := envelopeOf(r.Buf[:r.N], r.Seg); env != 0 && !l.whole {
			l.queueRun(r, env, dst)
			return false
		} else if env != 0 {
			l.cnt.TxSplit++
		}
	}
	for off := 0; off < r.N; off += r.Seg {
		l.queue(r.Buf[off:min(off+r.Seg, r.N)], dst)
	}
	return false
}

// queue puts a frame into the batch.
func (l *system) queue(f []byte, dst ether.MAC) {
	copy(f, dst[:])
	copy(f[6:], l.mac[:])
	b := &l.tx
	if !b.room(2) {
		l.flush()
	}
	m := &b.msg[b.n]
	m.buf, m.seg = f, 0
	if l.notes {
		note := m.head[:vnetLen]
		if l.whole || !sum(note, f) {
			clear(note)
		}
		b.part(note)
	}
	b.part(f)
	b.end()
}

// hopOf returns who gets a run next, nil if nobody.
func (l *system) hopOf(r *frame.Run) *hop {
	if r.Dst != l.lastDst || l.lastHop == nil {
		l.lastHop, l.lastDst = l.hops[r.Dst.WithZone("")], r.Dst
	}
	if l.lastHop == nil || !l.own(r.Src) || r.Src.BitLen() != r.Dst.BitLen() {
		return nil
	}
	return l.lastHop
}

// own reports whether the link has an address.
func (l *system) own(a netip.Addr) bool {
	for i := range l.cfg.Addrs {
		if l.cfg.Addrs[i] == a {
			return true
		}
	}
	return false
}

// loop gives a run to this same link.
func (l *system) loop(r *frame.Run) bool {
	if r.Seg > l.caps.MTU {
		l.cnt.TxTooLong += uint64(r.Segs)
		return false
	}
	return l.push(r, r.Buf[:r.N])
}

// echo gives a copy of a run to this same link.
func (l *system) echo(r *frame.Run) {
	b := l.txPool.Get()
	if !l.push(r, b[:copy(b, r.Buf[:r.N])]) {
		l.txPool.Put(b)
	}
}

// push queues the bytes of a run for this same link, which owns them from then
// on; false if there is no room.
func (l *system) push(r *frame.Run, b []byte) bool {
	rx := frame.Rx{Data: b}
	if r.Segs > 1 {
		rx.Seg = r.Seg
	}
	if !l.local.Push(rx) {
		l.cnt.RxDropped += uint64(r.Segs)
		return false
	}
	l.localLen.Store(int32(l.local.Len()))
	l.poll.Nudge()
	return true
}

func (l *system) tooLong(r *frame.Run, h *hop) {
	l.cnt.TxTooLong += uint64(r.Segs)
	if !h.toldMTU {
		h.toldMTU = true
		l.event(link.Event{Kind: link.EventRouteMTU, Src: r.Src, Dst: r.Dst, Frame: r.Seg, MTU: h.mtu})
	}
}

func (l *system) event(e link.Event) {
	if len(l.events) < maxEvents {
		l.events = append(l.events, e)
	}
}

// flush sends the batch. What the interface cannot take soon is dropped, as a
// wire would.
func (l *system) flush() {
	b := &l.tx
	for at, tries := 0, 0; at < b.n; {
		l.cnt.SendCalls++
		n, e := sendmmsg(l.out, b.hdr[at:b.n])
		at += n
		switch e {
		case 0:
			tries = 0
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			if tries++; tries > roomTries {
				l.cnt.TxDropped += b.packets(at)
				at = b.n
				break
			}
			b.out.Revents = 0
			ask(&b.out, roomMs)
		default:
			if b.msg[at].seg != 0 && refusesCut(e) {
				l.stopCutting(at, e)
				return
			}
			if e == unix.EMSGSIZE {
				l.cnt.TxTooLong++
				at++
				break
			}
			l.cnt.TxRefused += b.msg[at].packets()
			if e != l.refused {
				l.refused = e
				l.event(link.Event{Kind: link.EventRefused, Src: l.cfg.Addrs[0], Dst: l.lastDst, Err: e})
			}
			at++
		}
	}
	b.reset()
}
