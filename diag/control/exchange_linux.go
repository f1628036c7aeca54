package control

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// One goroutine asks all sockets, with poll(2) and not with the runtime's poller: an
// exporter asks every few seconds, the calls of the kernel are most of what that costs,
// and the runtime needs twice as many and wakes a thread for each answer.

// exchange sends a line to each socket of names and gives what comes back to done: each
// socket once, in any order, by the calling goroutine. Sockets belong to the network
// namespace of the calling thread.
func exchange(names []string, line []byte, until time.Time, done func(i int, r reply)) {
	x := exchanger{names: names, line: line, done: done, left: maxReceived, room: make([]byte, 64<<10)}
	defer x.close()
	for next := 0; next < len(names) || len(x.open) > 0; {
		for ; next < len(names) && len(x.open) < asked; next++ {
			x.start(next)
		}
		if len(x.open) == 0 {
			continue
		}
		wait := max(time.Until(until), 0)
		n, err := unix.Poll(x.polled, int((wait+time.Millisecond-1)/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			x.giveUp(fmt.Sprintf("cannot be waited for: %v", err))
		case n == 0 && wait == 0:
			x.giveUp("does not answer in time; is it stopped?")
		default:
			x.receive()
		}
	}
}

// exchanger is one exchange.
type exchanger struct {
	names  []string
	line   []byte
	done   func(i int, r reply)
	open   []conversation
	polled []unix.PollFd // as open
	room   []byte
	left   int // bytes that may be received still
}

// conversation is one that waits for its answer.
type conversation struct {
	i, pid, fd int
	got        []byte
}

func (x *exchanger) close() {
	for _, c := range x.open {
		unix.Close(c.fd)
	}
}

// start asks one socket.
func (x *exchanger) start(i int) {
	_, pid, _ := parseName(x.names[i])
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		x.done(i, reply{pid: pid, why: fmt.Sprintf("cannot be asked: %v", os.NewSyscallError("socket", err))})
		return
	}
	r, ok := reply{}, false
	if unix.Connect(fd, &unix.SockaddrUnix{Name: x.names[i]}) == nil { // else it has gone, or lets hundreds wait
		peer, err := peerOf(fd)
		if err == nil && peer.uid == os.Geteuid() { // else somebody else uses the name of ours
			if peer.pid != 0 {
				pid = peer.pid
			}
			n, err := unix.SendmsgN(fd, x.line, nil, nil, unix.MSG_NOSIGNAL)
			if ok = err == nil && n == len(x.line); !ok {
				r = reply{pid: pid, why: "does not take the request"}
			}
		}
	}
	if !ok {
		unix.Close(fd)
		x.done(i, r)
		return
	}
	x.open = append(x.open, conversation{i: i, pid: pid, fd: fd})
	x.polled = append(x.polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
}

// receive reads from all that have something.
func (x *exchanger) receive() {
	for k := len(x.open) - 1; k >= 0; k-- {
		if x.polled[k].Revents == 0 {
			continue
		}
		if r, ended := x.read(&x.open[k]); ended {
			x.end(k, r)
		}
	}
}

// end ends a conversation.
func (x *exchanger) end(k int, r reply) {
	c, last := x.open[k], len(x.open)-1
	unix.Close(c.fd)
	x.open[k], x.polled[k] = x.open[last], x.polled[last]
	x.open, x.polled = x.open[:last], x.polled[:last]
	r.pid = c.pid
	x.done(c.i, r)
}

func (x *exchanger) giveUp(why string) {
	for k := len(x.open) - 1; k >= 0; k-- {
		x.end(k, reply{why: why})
	}
}

// read reads what is there. An answer ends with its line, or with the connection.
func (x *exchanger) read(c *conversation) (r reply, ended bool) {
	for {
		n, err := unix.Read(c.fd, x.room)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return reply{}, false
		case err != nil:
			return reply{}, true // it has ended
		case n == 0:
			return reply{answer: c.got}, true
		}
		if x.left -= n; x.left < 0 {
			return reply{why: fmt.Sprintf("all answers together are longer than %d bytes", maxReceived)}, true
		}
		got := x.room[:n]
		if len(c.got) > 0 || got[n-1] != '\n' {
			c.got = append(c.got, got...)
			got = c.got
		}
		switch {
		case len(got) > MaxAnswer:
			return reply{why: fmt.Sprintf("the answer is longer than %d bytes", MaxAnswer)}, true
		case got[len(got)-1] == '\n':
			return reply{answer: got}, true
		case n < len(x.room):
			return reply{}, false
		}
	}
}

// readFile reads a file of proc, whatever length that claims.
func readFile(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var room [4096]byte
	b := room[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return bytes.Clone(b), nil
		default:
			b = b[:len(b)+n]
		}
	}
}
