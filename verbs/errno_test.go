package verbs_test

import "syscall"

const (
	addrInUse    = syscall.EADDRINUSE
	notAvailable = syscall.EADDRNOTAVAIL
)
