package nlask

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a socket of AF_NETLINK. The file is in the runtime's poller, so that a
// deadline ends a wait.
type socket struct {
	f    *os.File
	conn syscall.RawConn
	buf  []byte
}

// Dial opens a Conn of a netlink family, such as NETLINK_ROUTE, in the network namespace
// of the calling thread. The error is the system's.
func Dial(family int) (*Conn, error) {
	return New(func() (Socket, error) { return open(family) }, Limits{})
}

func open(family int) (Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, family)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	f := os.NewFile(uintptr(fd), "netlink")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &socket{f: f, conn: conn, buf: make([]byte, 64<<10)}, nil
}

// Close implements Socket.
func (s *socket) Close() error { return s.f.Close() }

// Send implements Socket.
func (s *socket) Send(b []byte) error {
	var err error
	werr := s.conn.Write(func(fd uintptr) bool {
		err = unix.Sendto(int(fd), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		return !errors.Is(err, unix.EAGAIN)
	})
	if werr != nil {
		return werr
	}
	return os.NewSyscallError("sendto", err)
}

// Receive implements Socket.
func (s *socket) Receive(deadline time.Time) (b []byte, sender uint32, err error) {
	if err := s.f.SetReadDeadline(deadline); err != nil {
		return nil, 0, err
	}
	// A message may be longer than what the kernel makes of a dump: ask for its length.
	n, _, err := s.recv(unix.MSG_PEEK | unix.MSG_TRUNC)
	if err != nil {
		return nil, 0, err
	}
	if n > len(s.buf) {
		s.buf = make([]byte, n)
	}
	n, from, err := s.recv(0)
	if err != nil {
		return nil, 0, err
	}
	if a, ok := from.(*unix.SockaddrNetlink); ok {
		sender = a.Pid
	}
	return s.buf[:n], sender, nil
}

func (s *socket) recv(flags int) (n int, from unix.Sockaddr, err error) {
	rerr := s.conn.Read(func(fd uintptr) bool {
		n, from, err = unix.Recvfrom(int(fd), s.buf, flags)
		return !errors.Is(err, unix.EAGAIN)
	})
	if rerr != nil {
		return 0, nil, rerr
	}
	return n, from, os.NewSyscallError("recvfrom", err)
}
