package control

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listener is a socket that listens. It waits in the runtime's poller; what it takes does
// not get there, for most connections need no wait: their line is there when they are
// taken, and the answer goes in one piece.
type listener struct {
	f   *os.File
	raw syscall.RawConn
}

func listen(name string) (*listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	const backlog = 4096 // the kernel cuts it to its own limit
	if err := unix.Listen(fd, backlog); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("listen", err)
	}
	f := os.NewFile(uintptr(fd), name)
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &listener{f, raw}, nil
}

func (l *listener) close() { l.f.Close() }

// accept waits for a connection, which does not block.
func (l *listener) accept() (fd int, err error) {
	waited := l.raw.Read(func(of uintptr) bool {
		for {
			fd, _, err = unix.Accept4(int(of), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if waited != nil {
		return -1, waited
	}
	return fd, err
}

// receive reads what is there; -1 if nothing is, 0 at the end.
func receive(fd int, b []byte) int {
	for {
		n, err := unix.Read(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return -1
		default:
			return max(n, 0)
		}
	}
}

// send writes what there is room for; -1 if the connection has ended.
func send(fd int, b []byte) int {
	for {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0
		case err != nil:
			return -1
		default:
			return n
		}
	}
}

func closeFD(fd int) { unix.Close(fd) }
