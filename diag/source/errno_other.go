//go:build !unix

package source

import "syscall"

func errnoName(syscall.Errno) string { return "" }
