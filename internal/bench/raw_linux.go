package bench

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSock is an unconnected non-blocking UDP socket, used by raw system calls
// as link/udp does.
type rawSock struct {
	fd   int
	port int
	to   unix.RawSockaddrInet4
}

func openRaw(addr netip.Addr) (*rawSock, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s := &rawSock{fd: fd}
	const buffer = 4 << 20
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer)
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.As4()}))
	if err == nil {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(fd); err == nil {
			s.port = sa.(*unix.SockaddrInet4).Port
			return s, nil
		}
	}
	return nil, errors.Join(err, unix.Close(fd))
}

func (s *rawSock) join(peer *Offer) error {
	a, err := netip.ParseAddr(peer.Addr)
	if err != nil {
		return err
	}
	s.to.Family, s.to.Addr = unix.AF_INET, a.As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.to.Port))[:], uint16(peer.Port))
	return nil
}

func (s *rawSock) close() error {
	if s == nil {
		return nil
	}
	return unix.Close(s.fd)
}

// gso is the kernel's fast road for UDP and nothing else: sends that the kernel
// cuts, receives that it has merged, no protocol, no CRC, no copy. What is in
// flight is known from a counter in shared memory.
type gso struct {
	c    *child
	s    *rawSock
	page *[8]uint64
	seg  int // payload of a segment
	segs int
	buf  []byte
	sent uint64
}

const (
	gsoOverhead = 60 // headers and ICRC of a segment, as of a packet of ours
	gsoWindow   = 512 << 10
	gsoPieces   = 4
	gsoPatience = 20 * time.Millisecond
)

func newGSO(c *child, s *Spec) (end, error) {
	page, err := mapSharedPage()
	return &gso{c: c, page: page, seg: s.MTU, segs: s.Segs}, err
}

func (g *gso) prepare() (o Offer, err error) {
	if g.s, err = openRaw(g.c.addr); err != nil {
		return o, err
	}
	if !g.c.near {
		err = unix.SetsockoptInt(g.s.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
	g.buf = make([]byte, gsoPieces<<16)
	o.Port = g.s.port
	return o, err
}

func (g *gso) join(peer Offer) error { return g.s.join(&peer) }
func (g *gso) close() error          { return g.s.close() }

// received is the counter of bytes that the far end has received.
func (g *gso) received() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&g.page[0])) }

func (g *gso) slot(d time.Duration) (s Sample, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	got := g.received()
	n := g.segs * (g.seg + gsoOverhead)
	var ctl [unix.SizeofCmsghdr + 8]byte
	c := (*unix.Cmsghdr)(unsafe.Pointer(&ctl))
	c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	c.SetLen(unix.SizeofCmsghdr + 2)
	binary.NativeEndian.PutUint16(ctl[unix.SizeofCmsghdr:], uint16(g.seg+gsoOverhead))
	iov := unix.Iovec{Base: &g.buf[0]}
	iov.SetLen(n)
	hdr := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&g.s.to)), Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Control: &ctl[0]}
	hdr.SetIovlen(1)
	hdr.SetControllen(len(ctl))

	m := newMeter(d)
	start := got.Load()
	g.sent = start
	full := time.Now() // when the window was last open
	for spins := 1; !m.tick(got.Load()-start, &s); {
		if g.sent-got.Load() > gsoWindow {
			if spins++; spins%yieldEvery == 0 {
				yieldThread()
			}
			if time.Since(full) < gsoPatience {
				continue
			}
			g.sent = got.Load() // lost
		}
		full = time.Now()
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(g.s.fd), uintptr(unsafe.Pointer(&hdr)), unix.MSG_DONTWAIT)
		switch e {
		case 0:
			g.sent += uint64(n)
		case unix.EAGAIN:
		default:
			return s, e
		}
	}
	s.Bytes = s.Messages * uint64(g.seg) / uint64(g.seg+gsoOverhead)
	s.Messages = s.Bytes / uint64(g.seg)
	return s, nil
}

func (g *gso) serve(h *halt) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	type mmsghdr struct {
		hdr unix.Msghdr
		n   uint32
	}
	var hdrs [gsoPieces]mmsghdr
	var iovs [gsoPieces]unix.Iovec
	for i := range hdrs {
		iovs[i].Base = &g.buf[i<<16]
		iovs[i].SetLen(1 << 16)
		hdrs[i].hdr.Iov = &iovs[i]
		hdrs[i].hdr.SetIovlen(1)
	}
	got := g.received()
	want := 1
	for spins := 1; !h.stop.Load(); {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(g.s.fd), uintptr(unsafe.Pointer(&hdrs[0])), uintptr(want), unix.MSG_DONTWAIT, 0, 0)
		if e != 0 {
			want = 1
			if spins++; spins%yieldEvery == 0 {
				yieldThread()
			}
			continue
		}
		bytes := 0
		for i := range hdrs[:n] {
			bytes += int(hdrs[i].n)
		}
		got.Add(uint64(bytes))
		if int(n) == want {
			want = min(2*want, gsoPieces)
		} else {
			want = max(1, int(n))
		}
	}
	return nil
}

// spinUDP is a small datagram there and back; both ends spin on a raw receive.
type spinUDP struct {
	c *child
	trips
	s *rawSock
}

func newSpinUDP(c *child) (end, error) { return &spinUDP{c: c}, nil }

func (u *spinUDP) prepare() (o Offer, err error) {
	if u.s, err = openRaw(u.c.addr); err != nil {
		return o, err
	}
	o.Port = u.s.port
	return o, nil
}

func (u *spinUDP) join(peer Offer) error { return u.s.join(&peer) }
func (u *spinUDP) close() error          { return u.s.close() }

func (u *spinUDP) send(b []byte) error {
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(u.s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&u.s.to)), unix.SizeofSockaddrInet4)
	if e != 0 {
		return e
	}
	return nil
}

func (u *spinUDP) receive(b []byte) bool {
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(u.s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return e == 0
}

// yieldEvery is how often a spinning end lets other threads in, as our own
// does.
const yieldEvery = 32

func (u *spinUDP) slot(d time.Duration) (Sample, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	buf := make([]byte, 2048)
	for u.start(d); ; {
		if err := u.send(buf[:wireBytes]); err != nil {
			return Sample{}, err
		}
		for spins := 1; !u.receive(buf); spins++ {
			if spins%yieldEvery == 0 {
				yieldThread()
			}
			if spins%(1<<16) == 0 && u.late() {
				return Sample{}, errLate
			}
		}
		if !u.back() {
			return u.sample(pingBytes), nil
		}
	}
}

func (u *spinUDP) serve(h *halt) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	buf := make([]byte, 2048)
	for spins := 1; !h.stop.Load(); spins++ {
		if u.receive(buf) {
			if err := u.send(buf[:wireBytes]); err != nil {
				return err
			}
		} else if spins%yieldEvery == 0 {
			yieldThread()
		}
	}
	return nil
}
