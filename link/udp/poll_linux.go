package udp

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
)

// poller parks a goroutine, not a thread, until one of several sockets is
// ready: they are in one epoll set, which is itself a file that the runtime's
// poller watches. Setting the file's deadline wakes it from outside.
type poller struct {
	fd   int
	file *os.File
	raw  syscall.RawConn
	// ready asks the set whether anything in it is ready; made once.
	ready func(fd uintptr) bool
	calls atomic.Uint64 // of ready
	clock clock.Real    // for deadlines, which the runtime wants as time of day
	got   [4]unix.EpollEvent

	waiting atomic.Bool // a goroutine is in wait
	woken   atomic.Bool // wake was called since the last wait
	closed  atomic.Bool
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

func (p *poller) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	p.clock = clock.NewReal()
	p.fd, p.file = fd, os.NewFile(uintptr(fd), "epoll")
	if p.raw, err = p.file.SyscallConn(); err != nil {
		_ = p.file.Close()
		return err
	}
	p.ready = func(fd uintptr) bool {
		p.calls.Add(1)
		n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&p.got)), uintptr(len(p.got)), 0, 0, 0)
		return e == 0 && n > 0
	}
	return nil
}

func (p *poller) add(fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// want changes what of fd makes a wait return.
func (p *poller) want(fd int, events uint32) {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev)
}

// wait blocks as link.Link's Wait does; local counts what is ready beside the
// sockets, and whoever raises it calls nudge.
func (p *poller) wait(now, until clock.Time, local *atomic.Int32) error {
	if p.closed.Load() {
		return link.ErrClosed
	}
	if p.woken.Swap(false) || local.Load() > 0 || until <= now {
		return nil
	}
	var deadline time.Time
	if until != clock.Never {
		deadline = p.clock.At(p.clock.Now().Add(until.Sub(now)))
	}
	p.waiting.Store(true)
	defer p.waiting.Store(false)
	if err := p.file.SetReadDeadline(deadline); err != nil {
		return p.failure(err)
	}
	// A wake before this line found nobody waiting, or had its deadline
	// overwritten; one after it finds the deadline in force.
	if p.woken.Swap(false) || local.Load() > 0 {
		return nil
	}
	err := p.raw.Read(p.ready)
	p.woken.Store(false)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return p.failure(err)
	}
	return nil
}

func (p *poller) failure(err error) error {
	if p.closed.Load() {
		return link.ErrClosed
	}
	return err
}

// wake ends the present or the next wait.
func (p *poller) wake() {
	p.woken.Store(true)
	p.nudge()
}

// nudge ends the present wait if there is one.
func (p *poller) nudge() {
	if p.waiting.Load() {
		_ = p.file.SetReadDeadline(past)
	}
}

func (p *poller) close() error {
	p.closed.Store(true)
	return p.file.Close()
}
