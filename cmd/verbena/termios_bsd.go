//go:build unix && !linux && !solaris && !aix

package main

import "golang.org/x/sys/unix"

// The requests for a terminal's settings.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETAW
)
