package poll

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
)

// Set parks a goroutine, not a thread, until one of several sockets is
// ready: they are in one epoll set, which is itself a file that the runtime's
// poller watches. Setting the file's deadline wakes it from outside.
//
// The set listens to the sockets only while somebody waits now and then: each
// packet that makes it ready wakes a thread of the runtime, which in a program
// that polls is a thread too many, on the processor of whoever sends.
type Set struct {
	fd    int // of file; os.File.Fd would make it blocking
	file  *os.File
	raw   syscall.RawConn
	ready func(fd uintptr) bool // made once: see check
	clock clock.Real
	calls atomic.Uint64 // system calls that ask what is ready
	// asked and deadline belong to the goroutine in wait. The deadline is the
	// file's: 0 if it is not known, Never if there is none.
	asked    bool
	deadline clock.Time

	mu        sync.Mutex // for what the set listens to
	socks     []receiver
	listening atomic.Bool  // to the receiving sockets; changes under mu
	polled    atomic.Int32 // receives since the last wait

	waiting atomic.Bool // a goroutine is in wait
	woken   atomic.Bool // wake was called since the last wait
	closed  atomic.Bool
}

// receiver is a socket that receives. room: it sends, too, and waits for room.
type receiver struct {
	fd   int
	room bool
}

// quiet is how many receives without a wait between them end the listening: a
// program that spins before it waits does not reach it.
const quiet = 256

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Open makes an empty set. The zero Set becomes usable by it.
func (p *Set) Open() error {
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
	var got [1]unix.EpollEvent
	p.ready = func(fd uintptr) bool { return p.check(fd, got[:]) }
	return nil
}

// check reports whether the set is ready. It is called before the goroutine
// parks, when the runtime already notes what happens to the set, and again when
// that has woken the goroutine, which is answer enough.
func (p *Set) check(fd uintptr, got []unix.EpollEvent) bool {
	if p.asked {
		return true
	}
	p.asked = true
	if !p.listening.Load() {
		p.mu.Lock()
		p.listen(true)
		p.mu.Unlock()
	}
	p.calls.Add(1)
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&got[0])), uintptr(len(got)), 0, 0, 0)
	return e == 0 && n > 0
}

// Receive adds a socket that receives.
func (p *Set) Receive(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Add(fd); err != nil {
		return err
	}
	s := receiver{fd: fd}
	p.socks = append(p.socks, s)
	if p.listening.Load() {
		p.interest(s)
	}
	return nil
}

// Forget removes a socket that receives and is about to be closed.
func (p *Set) Forget(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.socks = slices.DeleteFunc(p.socks, func(s receiver) bool { return s.fd == fd })
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil)
}

// Add adds a socket that sends.
func (p *Set) Add(fd int) error {
	ev := unix.EpollEvent{Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// want changes what of fd makes the set ready.
func (p *Set) want(fd int, events uint32) {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev)
}

// listen changes whether the set listens to the receiving sockets. With mu.
func (p *Set) listen(yes bool) {
	p.listening.Store(yes)
	for _, s := range p.socks {
		p.interest(s)
	}
}

func (p *Set) interest(s receiver) {
	var events uint32
	if p.listening.Load() {
		events = unix.EPOLLIN
	}
	if s.room {
		events |= unix.EPOLLOUT
	}
	p.want(s.fd, events)
}

// WantRoom makes waits end when the socket has room to send, once, or, where it
// receives too, until GotRoom.
func (p *Set) WantRoom(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.socks {
		if s := &p.socks[i]; s.fd == fd {
			s.room = true
			p.interest(*s)
			return
		}
	}
	p.want(fd, unix.EPOLLOUT|unix.EPOLLONESHOT)
}

// GotRoom says that nobody waits for room any more.
func (p *Set) GotRoom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.socks {
		if s := &p.socks[i]; s.room {
			s.room = false
			p.interest(*s)
		}
	}
}

// Received says that somebody has asked the sockets for packets.
func (p *Set) Received() {
	if !p.listening.Load() || p.polled.Add(1) < quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waiting.Load() && p.listening.Load() {
		p.listen(false)
	}
}

// Wait blocks as link.Link's Wait does; local counts what is ready beside the
// sockets, and whoever raises it calls Nudge.
func (p *Set) Wait(now, until clock.Time, local *atomic.Int32) error {
	if p.closed.Load() {
		return link.ErrClosed
	}
	if p.woken.Swap(false) || local.Load() > 0 || until <= now {
		return nil
	}
	p.begin()
	defer p.waiting.Store(false)
	err := p.arm(now, until)
	// Whatever is to end the wait and came before this line found nobody waiting,
	// or had its deadline overwritten; after it, it finds the deadline in force.
	if err == nil && !p.woken.Swap(false) && local.Load() == 0 {
		p.asked = false
		err = p.raw.Read(p.ready)
		p.woken.Store(false)
	}
	switch {
	case p.closed.Load():
		return link.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.deadline = 0
		return nil
	}
	return err
}

// begin says that somebody waits: from now on the listening does not end.
func (p *Set) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Store(true)
	p.polled.Store(0)
}

// arm sets the file's deadline. One that is in force and not later will do: to
// set it costs more than to come back early once.
func (p *Set) arm(now, until clock.Time) error {
	var deadline time.Time
	want := clock.Never
	if until != clock.Never {
		t := p.clock.Now()
		want = t.Add(until.Sub(now))
		if p.deadline > t && p.deadline <= want {
			return nil
		}
		deadline = p.clock.At(want)
	} else if p.deadline == clock.Never {
		return nil
	}
	p.deadline = want
	return p.file.SetReadDeadline(deadline)
}

// Calls returns how many system calls have asked what is ready.
func (p *Set) Calls() uint64 { return p.calls.Load() }

// Wake ends the present or the next wait. Any goroutine.
func (p *Set) Wake() {
	p.woken.Store(true)
	p.Nudge()
}

// Nudge ends the present wait if there is one.
func (p *Set) Nudge() {
	if p.waiting.Load() {
		_ = p.file.SetReadDeadline(past)
	}
}

// Close closes the set and ends the present wait.
func (p *Set) Close() error {
	p.closed.Store(true)
	return p.file.Close()
}
