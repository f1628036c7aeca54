package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// supported says that there are abstract sockets, and that the kernel says who is at
// their other end.
const supported = true

// table lists the Unix sockets of the calling thread's network namespace.
const table = "/proc/thread-self/net/unix"

// credentials are those of the process at the other end: of a client as it was when
// it connected, of a server when it listened.
type credentials struct {
	uid int
	pid int // 0 where it is in a process namespace that cannot be seen from here
}

func peerOf(fd int) (credentials, error) {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return credentials{}, fmt.Errorf("who is at the other end: %w", err)
	}
	return credentials{uid: int(u.Uid), pid: int(u.Pid)}, nil
}
