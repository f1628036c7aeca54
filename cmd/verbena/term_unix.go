//go:build unix && !solaris && !aix

package main

import (
	"os"

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
