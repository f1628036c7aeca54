package nlask

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
)

// ErrChanging says that the objects changed during every dump.
var ErrChanging = errors.New("the objects changed during every dump")

// tries bounds how often is asked.
const tries = 5

// Limits bound one answer, that of all tries together for the time. A zero field is the
// default.
type Limits struct {
	Messages int           // 1<<18
	Bytes    int           // 64 MiB, with headers
	Time     time.Duration // 10 s
}

// Socket carries datagrams of netlink to the kernel and back.
type Socket interface {
	// Send sends a datagram.
	Send(b []byte) error
	// Receive returns the next datagram, which is borrowed until the next call, and the
	// port of its sender, 0 for the kernel. After the deadline the error matches
	// [os.ErrDeadlineExceeded].
	Receive(deadline time.Time) (b []byte, sender uint32, err error)
	Close() error
}

// Conn asks the kernel. It serves one goroutine at a time.
type Conn struct {
	dial   func() (Socket, error)
	limits Limits
	sock   Socket // nil after an answer was given up
	seq    uint32
}

// New returns a Conn on sockets that dial opens: one at once, whose error is New's, and
// another after each answer that was given up.
func New(dial func() (Socket, error), limits Limits) (*Conn, error) {
	if limits.Messages == 0 {
		limits.Messages = 1 << 18
	}
	if limits.Bytes == 0 {
		limits.Bytes = 64 << 20
	}
	if limits.Time == 0 {
		limits.Time = 10 * time.Second
	}
	sock, err := dial()
	if err != nil {
		return nil, err
	}
	return &Conn{dial: dial, limits: limits, sock: sock}, nil
}

// Close closes the socket.
func (c *Conn) Close() error {
	if c.sock == nil {
		return nil
	}
	err := c.sock.Close()
	c.sock = nil
	return err
}

// Execute sends a message, whose length, sequence number and port it sets, and returns
// the answer without its end. An error of the kernel is a [syscall.Errno]. After several
// tries the error is the last one, or [ErrChanging].
func (c *Conn) Execute(m netlink.Message) (msgs []netlink.Message, err error) {
	deadline := time.Now().Add(c.limits.Time)
	for range tries {
		msgs, err = c.once(m, deadline)
		if err == nil {
			return msgs, nil
		}
		if !errors.Is(err, ErrChanging) && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.ENOBUFS) {
			return nil, err
		}
	}
	return nil, err
}

// once asks once. The socket stays open if the answer came to its end.
func (c *Conn) once(m netlink.Message, deadline time.Time) ([]netlink.Message, error) {
	if c.sock == nil {
		sock, err := c.dial()
		if err != nil {
			return nil, err
		}
		c.sock = sock
	}
	c.seq++
	a := answer{limits: c.limits, seq: c.seq}
	err := c.sock.Send(marshal(m, c.seq))
	for err == nil && !a.done {
		var b []byte
		var sender uint32
		b, sender, err = c.sock.Receive(deadline)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = fmt.Errorf("no whole answer within %v: %d messages came", c.limits.Time, len(a.msgs))
		case err == nil:
			err = a.add(b, sender)
		}
	}
	if !a.done {
		c.Close()
	}
	if err == nil && a.changed {
		err = ErrChanging
	}
	if err != nil {
		return nil, err
	}
	return a.msgs, nil
}
