//go:build linux

package tree

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noNetlink has the kernel refuse the calling thread, and programs that it starts, sockets of NETLINK_RDMA, as a kernel
// without RDMA does: libibverbs then reads sysfs.
func noNetlink(t *testing.T) {
	t.Helper()
	const (
		load, jumpIfEqual, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		refuse, allow          = 0x00050000 | uint32(unix.EPROTONOSUPPORT), 0x7fff0000
	)
	filter := []unix.SockFilter{ // struct seccomp_data: the call at 0, its arguments from 16
		{Code: load, K: 0},
		{Code: jumpIfEqual, K: unix.SYS_SOCKET, Jf: 5},
		{Code: load, K: 16},
		{Code: jumpIfEqual, K: unix.AF_NETLINK, Jf: 3},
		{Code: load, K: 32},
		{Code: jumpIfEqual, K: unix.NETLINK_RDMA, Jf: 1},
		{Code: ret, K: refuse},
		{Code: ret, K: allow},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Errorf("no new privileges: %v", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		t.Errorf("filter system calls: %v", err)
	}
	if fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_RDMA); err != unix.EPROTONOSUPPORT { //nolint:errorlint // a number of the kernel's
		t.Errorf("a socket of NETLINK_RDMA: %d, %v", fd, err)
	}
}
