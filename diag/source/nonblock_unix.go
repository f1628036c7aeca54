//go:build unix

package source

import "golang.org/x/sys/unix"

// nonblock keeps an open from waiting for the other end of a pipe that took the place
// of a file after the look.
const nonblock = unix.O_NONBLOCK
