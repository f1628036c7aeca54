//go:build unix

package demo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// countedConn is a TCP connection on Go's own poller that counts each read and
// write system call, those that would have blocked included.
type countedConn struct {
	*net.TCPConn
	raw syscall.RawConn
	n   atomic.Uint64
}

func newCountedConn(c net.Conn) (*countedConn, error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("not a TCP connection: %T", c)
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &countedConn{TCPConn: t, raw: raw}, nil
}

func (c *countedConn) calls() uint64 { return c.n.Load() }

// Read reads once, waiting for data.
func (c *countedConn) Read(p []byte) (n int, err error) {
	pollErr := c.raw.Read(func(fd uintptr) bool {
		n, err = c.again(syscall.Read, fd, p)
		return !errors.Is(err, syscall.EAGAIN)
	})
	if pollErr != nil {
		return 0, pollErr
	}
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// Write writes all of p.
func (c *countedConn) Write(p []byte) (done int, err error) {
	pollErr := c.raw.Write(func(fd uintptr) bool {
		for done < len(p) {
			var n int
			if n, err = c.again(syscall.Write, fd, p[done:]); err != nil {
				return !errors.Is(err, syscall.EAGAIN)
			}
			done += n
		}
		return true
	})
	if pollErr != nil {
		return done, pollErr
	}
	return done, err
}

func (c *countedConn) again(call func(int, []byte) (int, error), fd uintptr, p []byte) (int, error) {
	for {
		c.n.Add(1)
		n, err := call(int(fd), p)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// processCPU returns the processor time, user and system, of this process.
func processCPU() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
