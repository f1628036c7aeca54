package packet

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
)

// waiter parks a goroutine, not a thread, until the socket has something: the
// runtime's poller watches it. Setting the file's deadline wakes it from
// outside.
type waiter struct {
	file  *os.File
	raw   syscall.RawConn
	ready func(fd uintptr) bool // made once
	clock clock.Real
	calls atomic.Uint64
	// asked and poll belong to the goroutine in wait.
	asked bool
	poll  unix.PollFd

	waiting atomic.Bool // a goroutine is in wait
	woken   atomic.Bool // wake was called since the last wait
	closed  atomic.Bool
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// open takes the socket over.
func (w *waiter) open(fd int) error {
	w.clock = clock.NewReal()
	w.file = os.NewFile(uintptr(fd), "packet")
	w.poll.Events = unix.POLLIN
	w.ready = func(fd uintptr) bool {
		// The first call comes before the goroutine parks, when the runtime already
		// notes what happens; the second when that has woken it, which is answer
		// enough.
		if w.asked {
			return true
		}
		w.asked = true
		w.calls.Add(1)
		w.poll.Fd, w.poll.Revents = int32(fd), 0
		return ask(&w.poll, 0)
	}
	var err error
	w.raw, err = w.file.SyscallConn()
	return err
}

// wait blocks as link.Link's Wait does; local counts what is ready beside the
// socket, and whoever raises it calls nudge.
func (w *waiter) wait(now, until clock.Time, local *atomic.Int32) error {
	if w.closed.Load() {
		return link.ErrClosed
	}
	if w.woken.Swap(false) || local.Load() > 0 || until <= now {
		return nil
	}
	w.waiting.Store(true)
	defer w.waiting.Store(false)
	var deadline time.Time
	if until != clock.Never {
		deadline = w.clock.At(w.clock.Now().Add(until.Sub(now)))
	}
	err := w.file.SetReadDeadline(deadline)
	// Whatever is to end the wait and came before this line found nobody waiting,
	// or had its deadline overwritten; after it, it finds the deadline in force.
	if err == nil && !w.woken.Swap(false) && local.Load() == 0 {
		w.asked = false
		err = w.raw.Read(w.ready)
		w.woken.Store(false)
	}
	switch {
	case w.closed.Load():
		return link.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return err
}

// wake ends the present or the next wait.
func (w *waiter) wake() {
	w.woken.Store(true)
	w.nudge()
}

// nudge ends the present wait if there is one.
func (w *waiter) nudge() {
	if w.waiting.Load() {
		_ = w.file.SetReadDeadline(past)
	}
}

// close closes the socket and ends the present wait.
func (w *waiter) close() error {
	w.closed.Store(true)
	return w.file.Close()
}
