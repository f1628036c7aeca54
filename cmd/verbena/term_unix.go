//go:build unix && !solaris && !aix

package main

import (
	"errors"
	"os"
	"os/signal"
	"time"

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

// notifyJob tells of Ctrl-Z, which then does not stop the process by itself, and of going on.
func notifyJob(c chan os.Signal) { signal.Notify(c, unix.SIGTSTP, unix.SIGCONT) }

func stopNotify(c chan os.Signal) { signal.Stop(c) }

func isStop(s os.Signal) bool { return s == unix.SIGTSTP }

// goOnAfter is how long a stop may take to come. There is none where no shell could make
// the process go on: the system takes the signal away.
const goOnAfter = 300 * time.Millisecond

// stopSelf does what Ctrl-Z does without notifyJob, and returns when the process goes on.
// c is the channel of notifyJob; what came meanwhile is taken from it.
//
// The signal is SIGTTOU: once Go has handled SIGTSTP it never has the system's action
// again. SIGSTOP would stop what no shell can make go on.
func stopSelf(c chan os.Signal) {
	_ = unix.Kill(unix.Getpid(), unix.SIGTTOU)
	timeout := time.After(goOnAfter)
	for going := false; !going; {
		select {
		case s := <-c:
			going = s == unix.SIGCONT
		case <-timeout:
			going = true
		}
	}
	for { // of the same stop
		select {
		case <-c:
		default:
			return
		}
	}
}

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
