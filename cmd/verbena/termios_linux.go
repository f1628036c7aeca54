package main

import "golang.org/x/sys/unix"

// The requests for a terminal's settings.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETSW
)
