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

// poller parks a goroutine, not a thread, until something is ready.
//
// All sockets are in one epoll set, which is itself a file that the runtime's
// poller watches. A link with one receiving socket shows the runtime that
// socket, which wakes sooner, and the set only while a run waits for room.
//
// Setting a file's deadline to the past wakes the goroutine from outside.
type poller struct {
	fd    int // of set; os.File.Fd would make it blocking
	set   watched
	one   watched // without file when there are several receiving sockets
	clock clock.Real
	calls atomic.Uint64 // system calls that ask what is ready

	waiting atomic.Bool // a goroutine is in wait
	woken   atomic.Bool // wake was called since the last wait
	room    atomic.Bool // a run waits for room to send
	closed  atomic.Bool
}

// watched is a file that the runtime's poller watches.
type watched struct {
	file  *os.File
	raw   syscall.RawConn
	ready func(fd uintptr) bool // made once: see open
	asked bool                  // ready was called in the present wait
	// armed is the file's deadline: 0 if it is not known, Never if there is
	// none. It belongs to the goroutine in wait.
	armed clock.Time
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
	p.fd, p.clock = fd, clock.NewReal()
	var got [1]unix.EpollEvent
	return p.set.open(fd, "epoll", func(fd uintptr) bool {
		p.calls.Add(1)
		n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&got)), uintptr(len(got)), 0, 0, 0)
		return e == 0 && n > 0
	})
}

// watch makes fd, which the poller owns from now on, the one socket to wait
// for.
func (p *poller) watch(fd int) error {
	return p.one.open(fd, "udp", func(fd uintptr) bool {
		p.calls.Add(1)
		f := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		var now unix.Timespec
		n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&f)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		return e == 0 && n > 0
	})
}

// open watches fd. ready asks the system; it is called once a wait, before the
// goroutine parks: when the runtime's poller wakes it, that is answer enough.
func (w *watched) open(fd int, name string, ready func(uintptr) bool) (err error) {
	w.file = os.NewFile(uintptr(fd), name)
	w.ready = func(fd uintptr) bool {
		again := w.asked
		w.asked = true
		return again || ready(fd)
	}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		_ = w.file.Close()
		w.file = nil
	}
	return err
}

func (p *poller) add(fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// want changes what of fd makes a wait on the set return.
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
	p.waiting.Store(true)
	defer p.waiting.Store(false)
	w := &p.set
	if p.one.file != nil && !p.room.Load() {
		w = &p.one
	}
	err := p.arm(w, now, until)
	// Whatever is to end the wait and came before this line found nobody waiting,
	// or had its deadline overwritten; after it, it finds the deadline in force.
	stale := w == &p.one && p.room.Load()
	if err == nil && !p.woken.Swap(false) && local.Load() == 0 && !stale {
		w.asked = false
		err = w.raw.Read(w.ready)
		p.woken.Store(false)
	}
	switch {
	case p.closed.Load():
		return link.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.armed = 0
		return nil
	}
	return err
}

// arm sets a deadline. One that is in force and not later will do: to set it
// costs more than to come back early once.
func (p *poller) arm(w *watched, now, until clock.Time) error {
	var deadline time.Time
	want := clock.Never
	if until != clock.Never {
		t := p.clock.Now()
		want = t.Add(until.Sub(now))
		if w.armed > t && w.armed <= want {
			return nil
		}
		deadline = p.clock.At(want)
	} else if w.armed == clock.Never {
		return nil
	}
	w.armed = want
	return w.file.SetReadDeadline(deadline)
}

// wantRoom makes a wait end, too, when what was armed with want has room.
func (p *poller) wantRoom(yes bool) {
	if p.room.Swap(yes) != yes && yes {
		p.nudge()
	}
}

// wake ends the present or the next wait.
func (p *poller) wake() {
	p.woken.Store(true)
	p.nudge()
}

// nudge ends the present wait if there is one.
func (p *poller) nudge() {
	if !p.waiting.Load() {
		return
	}
	_ = p.set.file.SetReadDeadline(past)
	if p.one.file != nil {
		_ = p.one.file.SetReadDeadline(past)
	}
}

// close closes the set and the watched socket, and ends the present wait.
func (p *poller) close() error {
	p.closed.Store(true)
	var err error
	if p.one.file != nil {
		err = p.one.file.Close()
	}
	if e := p.set.file.Close(); err == nil {
		err = e
	}
	return err
}
