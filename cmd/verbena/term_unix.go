//go:build unix && !solaris && !aix

package main

import (
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminalSize returns the columns and lines of a terminal; false if it is none.
func terminalSize(f *os.File) (width, height int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	if ws.Col == 0 || ws.Row == 0 { // it does not tell
		return 80, 24, true
	}
	return int(ws.Col), int(ws.Row), true
}

// notifyResize tells of changes of the terminal's size.
func notifyResize(c chan os.Signal) { signal.Notify(c, unix.SIGWINCH) }

func stopResize(c chan os.Signal) { signal.Stop(c) }

// keysAtOnce makes a terminal give keys as they are typed and not show them; reads end
// after a fifth of a second without one. Ctrl-C stays a signal. restore puts it back.
func keysAtOnce(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 0, 2
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil
}

// readKeys reads what has been typed, nothing after a while. The error says that there
// will be no more.
func readKeys(f *os.File, b []byte) (int, error) {
	n, err := unix.Read(int(f.Fd()), b)
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), err
}
