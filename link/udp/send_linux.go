package udp

import (
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ident"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

const (
	// patience is how long a run waits for room in the system's send queue.
	patience = 5 * time.Millisecond
	// maxOdd bounds the table of destinations with a difficulty.
	maxOdd = 1024
)

// waitingRun is a run that met a full send queue.
type waitingRun struct {
	run   frame.Run
	since clock.Time
}

// oddPeer is a destination towards which something failed.
type oddPeer struct {
	whole    bool // do not ask the system to cut
	mtu      int  // the longest frame the route carried when one was refused
	reported [8]bool
}

// txMsg is the argument of one sendmsg.
type txMsg struct {
	hdr unix.Msghdr
	iov unix.Iovec
	sa4 unix.RawSockaddrInet4
	sa6 unix.RawSockaddrInet6
	ctl [ctlWords]uint64
}

func (m *txMsg) init() {
	m.hdr.Iov = &m.iov
	m.hdr.SetIovlen(1)
	m.sa4.Family = unix.AF_INET
	m.sa6.Family = unix.AF_INET6
}

// Path implements link.Link.
func (l *system) Path(src, dst netip.Addr, srcPort uint16) (link.Path, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	src, dst = src.Unmap().WithZone(""), dst.Unmap().WithZone("")
	switch {
	case l.closed:
		return link.Path{}, link.ErrClosed
	case src.BitLen() != dst.BitLen():
		return link.Path{}, fmt.Errorf("no route from %v to %v: addresses of two families", src, dst)
	}
	e := l.endpoint(src)
	if e == nil {
		return link.Path{}, fmt.Errorf("no route from %v to %v: %v is not an address of this link", src, dst, src)
	}
	mtu := l.caps.MTU
	if l.endpoint(dst) == nil {
		m, err := e.routeMTU(dst, l.port)
		if err != nil {
			return link.Path{}, fmt.Errorf("no route from %v to %v: %w", src, dst, err)
		}
		mtu = min(m, maxFrame)
	}
	return link.Path{SrcPort: l.source(e, srcPort).port, MTU: mtu}, nil
}

// routeMTU returns the longest frame that the route to dst carries. Only a
// connected socket can be asked; this one is not for data.
func (e *endpoint) routeMTU(dst netip.Addr, port uint16) (int, error) {
	s, err := e.open(0, false)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s.fd)
	if err := unix.Connect(s.fd, e.sockaddr(dst, port)); err != nil {
		return 0, err
	}
	level, name := unix.IPPROTO_IP, unix.IP_MTU
	if dst.Is6() {
		level, name = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(s.fd, level, name)
	return mtu - headers(dst), err
}

// source returns the socket for a wanted source port: one bound to it if that
// can be had, else one of those there are, always the same.
func (l *system) source(e *endpoint, want uint16) sock {
	if want == e.main.port {
		return e.main
	}
	if s, ok := e.bound(want); ok {
		return s
	}
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	port := want
	for range portTries {
		if len(e.out.socks()) == maxOut {
			break
		}
		if s, ok := e.bound(port); ok {
			// Taken by ourselves, on behalf of another wish: share it.
			return s
		}
		s, err := e.open(port, false)
		if err == nil {
			if l.watch(s.fd) != nil {
				_ = unix.Close(s.fd)
				break
			}
			e.out.add(s)
			return s
		}
		if port++; port < firstSrcPort {
			port = firstSrcPort
		}
	}
	out := e.out.socks()
	if len(out) == 0 {
		return e.main
	}
	return out[int(want)%len(out)]
}

// watch makes all shards able to wait for room in a socket.
func (l *system) watch(fd int) error {
	if l.set == nil {
		return l.poll.Add(fd)
	}
	for _, o := range l.set.links {
		if err := o.poll.Add(fd); err != nil {
			return err
		}
	}
	return nil
}

// bound returns the socket with exactly this source port.
func (e *endpoint) bound(port uint16) (sock, bool) {
	for _, s := range e.out.socks() {
		if s.port == port {
			return s, true
		}
	}
	if port == e.main.port {
		return e.main, true
	}
	return sock{}, false
}

// Reserve implements link.Link.
func (l *system) Reserve(tx []frame.Run) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.waiting) != 0 {
		return 0
	}
	n := min(len(tx), maxReserved-l.reserved)
	for i := range tx[:n] {
		tx[i] = frame.Run{Buf: l.pool.Get()[:l.caps.RunBytes]}
	}
	l.reserved += n
	return n
}

// Commit implements link.Link.
func (l *system) Commit(now clock.Time, tx []frame.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) != 0 {
		l.flush(now)
	}
	for i := range tx {
		r := &tx[i]
		if r.Buf == nil {
			continue
		}
		l.reserved--
		switch {
		case r.N == 0 || l.closed:
			l.pool.Put(r.Buf)
		case len(l.waiting) != 0 || !l.send(r):
			l.waiting = append(l.waiting, waitingRun{*r, now})
		}
		*r = frame.Run{}
	}
	if l.closed {
		return link.ErrClosed
	}
	return nil
}

// flush tries again what met a full queue, in order, and gives up on what has
// waited too long.
func (l *system) flush(now clock.Time) {
	done := 0
	for i := range l.waiting {
		w := &l.waiting[i]
		if !l.send(&w.run) {
			if now.Sub(w.since) < patience {
				break
			}
			l.cnt.TxDropped += uint64(w.run.Segs)
			l.pool.Put(w.run.Buf)
		}
		done++
	}
	n := copy(l.waiting, l.waiting[done:])
	clear(l.waiting[n:])
	if l.waiting = l.waiting[:n]; n > 0 {
		return
	}
	l.poll.GotRoom()
}

// send sends a run and disposes of its buffer, unless it returns false: then
// the send queue is full and the run is to be kept.
func (l *system) send(r *frame.Run) bool {
	if !ring.Sane(r, l.caps.Segments) {
		l.cnt.TxRefused++
		l.pool.Put(r.Buf)
		return true
	}
	e := l.endpoint(r.Src)
	if e == nil || r.Dst.BitLen() != r.Src.BitLen() {
		l.cnt.TxRefused += uint64(r.Segs)
		l.pool.Put(r.Buf)
		return true
	}
	if l.endpoint(r.Dst) != nil {
		l.sendLocal(r)
		return true
	}
	s, ok := e.bound(r.SrcPort)
	if !ok {
		l.cnt.TxNoPort += uint64(r.Segs)
		l.pool.Put(r.Buf)
		return true
	}
	odd := l.oddPeer(r.Dst)
	if odd != nil && odd.whole && r.Segs > 1 {
		return l.sendSplit(e, s, r)
	}
	l.cnt.SendCalls++
	errno := l.tx.send(e, s.fd, l.port, r, r.Buf[:r.N], r.Segs > 1)
	switch errno {
	case 0:
		l.pool.Put(r.Buf)
		return true
	case unix.EAGAIN:
		l.poll.WantRoom(s.fd)
		return false
	default:
		return l.refused(e, s, r, errno)
	}
}

// sendLocal moves the run's buffer to this link's own way in.
func (l *system) sendLocal(r *frame.Run) {
	switch {
	case r.Seg > l.caps.MTU:
		l.cnt.TxTooLong += uint64(r.Segs)
		l.pool.Put(r.Buf)
	case l.set != nil:
		rx := ring.Received(r)
		to := l.set.of(rx.Data)
		free, ok := to.inbox.push(&rx)
		if !ok {
			l.cnt.RxDropped += uint64(r.Segs)
			free = r.Buf
		}
		l.pool.Put(free)
		to.poll.Nudge()
	case !l.local.Push(ring.Received(r)):
		l.cnt.RxDropped += uint64(r.Segs)
		l.pool.Put(r.Buf)
	default:
		l.localLen.Store(int32(l.local.Len()))
		l.poll.Nudge()
	}
}

// send makes one system call for data, cut into segments or not.
func (m *txMsg) send(e *endpoint, fd int, port uint16, r *frame.Run, data []byte, cut bool) unix.Errno {
	m.iov.Base = &data[0]
	m.iov.SetLen(len(data))
	n := 0
	if r.Dst.Is4() {
		m.sa4.Port, m.sa4.Addr = ntohs(port), r.Dst.As4()
		m.hdr.Name, m.hdr.Namelen = (*byte)(unsafe.Pointer(&m.sa4)), unix.SizeofSockaddrInet4
		if r.TOS != 0 {
			n = m.int(n, unix.IPPROTO_IP, unix.IP_TOS, int32(r.TOS))
		}
		if r.TTL != 0 && r.TTL != ring.DefaultTTL {
			n = m.int(n, unix.IPPROTO_IP, unix.IP_TTL, int32(r.TTL))
		}
	} else {
		m.sa6.Port, m.sa6.Addr, m.sa6.Scope_id = ntohs(port), r.Dst.As16(), 0
		if r.Dst.IsLinkLocalUnicast() || r.Dst.IsLinkLocalMulticast() {
			m.sa6.Scope_id = uint32(e.zone)
		}
		m.hdr.Name, m.hdr.Namelen = (*byte)(unsafe.Pointer(&m.sa6)), unix.SizeofSockaddrInet6
		if r.TOS != 0 {
			n = m.int(n, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int32(r.TOS))
		}
		if r.TTL != 0 && r.TTL != ring.DefaultTTL {
			n = m.int(n, unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, int32(r.TTL))
		}
	}
	if cut {
		n = m.uint16(n, unix.IPPROTO_UDP, unix.UDP_SEGMENT, uint16(r.Seg))
	}
	m.hdr.Control = nil
	if n > 0 {
		m.hdr.Control = (*byte)(unsafe.Pointer(&m.ctl))
	}
	m.hdr.SetControllen(n)
	return sendmsg(fd, &m.hdr)
}

// cmsg writes a control message's header at offset off, and returns where its
// value goes and where the next message begins.
func (m *txMsg) cmsg(off, level, typ, size int) (unsafe.Pointer, int) {
	p := unsafe.Add(unsafe.Pointer(&m.ctl), off)
	c := (*unix.Cmsghdr)(p)
	c.Level, c.Type = int32(level), int32(typ)
	c.SetLen(cmsgHeader + size)
	return unsafe.Add(p, cmsgHeader), off + cmsgSpace(cmsgHeader+size)
}

func (m *txMsg) int(off, level, typ int, v int32) int {
	p, next := m.cmsg(off, level, typ, 4)
	*(*int32)(p) = v
	return next
}

func (m *txMsg) uint16(off, level, typ int, v uint16) int {
	p, next := m.cmsg(off, level, typ, 2)
	*(*uint16)(p) = v
	return next
}

// sendSplit sends the segments of a run one by one. Each then has
// Identification 0, so the ICRCs are moved there from their place in the run.
// It returns false as send does, with r holding what is left.
func (l *system) sendSplit(e *endpoint, s sock, r *frame.Run) bool {
	l.cnt.TxSplit++
	for i := range r.Segs {
		seg := r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]
		l.moveICRC(r, seg, i, 0)
		l.cnt.SendCalls++
		switch errno := l.tx.send(e, s.fd, l.port, r, seg, false); errno {
		case 0:
		case unix.EAGAIN:
			l.moveICRC(r, seg, 0, i)
			l.shift(r, i)
			l.poll.WantRoom(s.fd)
			return false
		case unix.ENOBUFS:
			l.cnt.TxDropped++
		default:
			l.cnt.TxRefused++
		}
	}
	l.pool.Put(r.Buf)
	return true
}

func (l *system) moveICRC(r *frame.Run, seg []byte, from, to int) {
	if r.Dst.Is4() {
		ident.Move(seg, uint16(from), uint16(to))
	}
}

// shift takes the first n segments off a run.
func (l *system) shift(r *frame.Run, n int) {
	for i := n; i < r.Segs; i++ {
		l.moveICRC(r, r.Buf[i*r.Seg:min((i+1)*r.Seg, r.N)], i, i-n)
	}
	copy(r.Buf, r.Buf[n*r.Seg:r.N])
	r.N -= n * r.Seg
	r.Segs -= n
}

// refused handles what the system would not send for another reason than a
// full queue.
func (l *system) refused(e *endpoint, s sock, r *frame.Run, errno unix.Errno) bool {
	switch errno {
	case unix.ENOBUFS:
		// The queue below the socket dropped it; that is congestion, not refusal.
		l.cnt.TxDropped += uint64(r.Segs)
	case unix.EMSGSIZE, unix.EINVAL, unix.EIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		// Too long, or the route cannot cut: kernels differ in which error says
		// which, so look.
		odd := l.makeOdd(r.Dst)
		if odd.mtu == 0 || r.Seg <= odd.mtu {
			odd.mtu, _ = e.routeMTU(r.Dst, l.port)
		}
		switch {
		case odd.mtu > 0 && r.Seg > odd.mtu:
			l.cnt.TxTooLong += uint64(r.Segs)
			l.report(odd, link.Event{Kind: link.EventRouteMTU, Src: r.Src, Dst: r.Dst, Frame: r.Seg, MTU: odd.mtu, Err: errno})
		case r.Segs > 1:
			odd.whole = true
			l.report(odd, link.Event{Kind: link.EventNoSegmentation, Src: r.Src, Dst: r.Dst, Err: errno})
			return l.sendSplit(e, s, r)
		default:
			l.cnt.TxRefused++
			l.report(odd, link.Event{Kind: link.EventRefused, Src: r.Src, Dst: r.Dst, Err: errno})
		}
	default:
		l.cnt.TxRefused += uint64(r.Segs)
		l.report(l.makeOdd(r.Dst), link.Event{Kind: link.EventRefused, Src: r.Src, Dst: r.Dst, Err: errno})
	}
	l.pool.Put(r.Buf)
	return true
}

func (l *system) oddPeer(dst netip.Addr) *oddPeer {
	if len(l.odd) == 0 {
		return nil
	}
	return l.odd[dst]
}

func (l *system) makeOdd(dst netip.Addr) *oddPeer {
	o := l.odd[dst]
	if o == nil {
		if len(l.odd) >= maxOdd {
			clear(l.odd)
		}
		o = &oddPeer{}
		l.odd[dst] = o
	}
	return o
}

// report keeps an event, once a kind and destination.
func (l *system) report(o *oddPeer, ev link.Event) {
	if o.reported[ev.Kind] || len(l.events) == maxEvents {
		return
	}
	o.reported[ev.Kind] = true
	l.events = append(l.events, ev)
}
