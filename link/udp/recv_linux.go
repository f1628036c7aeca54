package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

const (
	// rxVec is how many pieces one system call asks for.
	rxVec = 8
	// askMin is how many the first call asks for: a message, and the ACK that
	// its sender sent behind the message before.
	askMin = 2
	// rxBytes ends a Recv: more than that would push what was received first
	// out of the cache before anybody looks at it.
	rxBytes = 256 << 10
)

// rxBatch is the scatter list of one recvmmsg.
type rxBatch struct {
	hdr  [rxVec]mmsghdr
	iov  [rxVec]unix.Iovec
	name [rxVec]unix.RawSockaddrInet6 // room for both families
	ctl  [rxVec][ctlWords]uint64
	buf  [rxVec][]byte // nil: was handed out
}

// Recv implements link.Link.
func (l *system) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	if len(l.waiting) != 0 {
		l.flush(now)
	}
	l.poll.Received()
	// The order changes from call to call so that nobody starves.
	l.turn++
	n, bytes := 0, 0
	if l.turn&1 == 0 {
		n = l.recvLocal(rx, &bytes)
	}
	for i := range l.rxs {
		if n == len(rx) || bytes >= rxBytes {
			return n, nil
		}
		e := l.rxs[(i+l.turn)%len(l.rxs)]
		n += l.recvFrom(e, rx[n:], &bytes)
	}
	if l.turn&1 != 0 {
		n += l.recvLocal(rx[n:], &bytes)
	}
	return n, nil
}

// recvLocal takes what this link sent to itself.
func (l *system) recvLocal(rx []frame.Rx, bytes *int) int {
	if l.set != nil {
		return l.recvInbox(rx, bytes)
	}
	n := 0
	for n < len(rx) && l.local.Len() > 0 && *bytes < rxBytes {
		rx[n] = l.local.Pop()
		l.lent = append(l.lent, rx[n].Data)
		*bytes += len(rx[n].Data)
		n++
	}
	if n > 0 {
		l.localLen.Store(int32(l.local.Len()))
	}
	return n
}

// recvFrom takes what waits in the socket of one address.
func (l *system) recvFrom(e *endpoint, rx []frame.Rx, bytes *int) int {
	n := 0
	for n < len(rx) && *bytes < rxBytes {
		want := min(max(e.ask, askMin), len(rx)-n)
		l.cnt.RecvCalls++
		got := l.rx.receive(e.main.fd, want, l.pool.Get)
		for i := range got {
			if l.rx.hdr[i].hdr.Flags&unix.MSG_TRUNC != 0 {
				l.cnt.RxForeign++
				continue
			}
			drops, ok := l.rx.read(i, &rx[n])
			if ok {
				l.setDrops(e, drops)
			}
			rx[n].Dst = e.addr
			*bytes += len(rx[n].Data)
			if l.set != nil && l.misdirected(e, &rx[n]) {
				n += l.sortOut(rx[n : len(rx)-(got-1-i)])
				continue // its bytes have been copied
			}
			l.lent = append(l.lent, l.rx.buf[i])
			l.rx.buf[i] = nil
			n++
		}
		// To ask for more than there is delays what there is. So ask for few as
		// long as few come, and for more when that was not all.
		if got < want {
			e.ask = got
			break
		}
		e.ask = min(2*want, rxVec)
		if want <= askMin {
			break
		}
	}
	return n
}

// receive fills up to want messages and returns how many. It never blocks.
func (b *rxBatch) receive(fd, want int, get func() []byte) int {
	for i := range want {
		h := &b.hdr[i].hdr
		if b.buf[i] == nil {
			b.buf[i] = get()
			b.iov[i].Base = &b.buf[i][0]
			b.iov[i].SetLen(len(b.buf[i]))
			h.Iov = &b.iov[i]
			h.SetIovlen(1)
			h.Name = (*byte)(unsafe.Pointer(&b.name[i]))
			h.Control = (*byte)(unsafe.Pointer(&b.ctl[i]))
		}
		h.Namelen = uint32(unsafe.Sizeof(b.name[i]))
		h.SetControllen(int(unsafe.Sizeof(b.ctl[i])))
	}
	return recvmmsg(fd, b.hdr[:want])
}

// read writes message i into rx, and returns the socket's count of dropped
// packets if the message tells it.
func (b *rxBatch) read(i int, rx *frame.Rx) (drops uint32, ok bool) {
	*rx = frame.Rx{Data: b.buf[i][:b.hdr[i].n]}
	if sa := &b.name[i]; sa.Family == unix.AF_INET {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		rx.Src, rx.SrcPort = netip.AddrFrom4(sa4.Addr), ntohs(sa4.Port)
	} else {
		rx.Src, rx.SrcPort = netip.AddrFrom16(sa.Addr), ntohs(sa.Port)
	}
	ctl := &b.ctl[i]
	n := min(int(b.hdr[i].hdr.Controllen), int(unsafe.Sizeof(*ctl)))
	for off := 0; off+cmsgHeader <= n; {
		p := unsafe.Add(unsafe.Pointer(ctl), off)
		c := (*unix.Cmsghdr)(p)
		size := int(c.Len)
		if size < cmsgHeader || off+size > n {
			break
		}
		data := unsafe.Add(p, cmsgHeader)
		switch {
		case c.Level == unix.IPPROTO_UDP && c.Type == unix.UDP_GRO:
			if seg := int(*(*int32)(data)); seg < len(rx.Data) {
				rx.Seg = seg
			}
		case c.Level == unix.IPPROTO_IP && c.Type == unix.IP_TOS:
			rx.TOS = *(*uint8)(data)
		case c.Level == unix.IPPROTO_IP && c.Type == unix.IP_TTL,
			c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_HOPLIMIT:
			rx.TTL = uint8(*(*int32)(data))
		case c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_TCLASS:
			rx.TOS = uint8(*(*int32)(data))
		case c.Level == unix.SOL_SOCKET && c.Type == unix.SO_RXQ_OVFL:
			drops, ok = *(*uint32)(data), true
		}
		off += cmsgSpace(size)
	}
	return drops, ok
}

// Release implements link.Link.
func (l *system) Release([]frame.Rx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.lent {
		l.pool.Put(b)
		l.lent[i] = nil
	}
	l.lent = l.lent[:0]
	if len(l.guests) > 0 {
		l.sendOff()
	}
}
