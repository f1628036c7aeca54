//go:build linux && (amd64 || arm64 || riscv64 || loong64 || ppc64le || s390x)

package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options of getsockopt at the level of IP or IPv6.
const (
	getInfo    = 64 // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES, IP6T_SO_GET_ENTRIES

	infoLen    = 84 // struct ipt_getinfo
	entriesLen = 40 // struct ipt_get_entries, before the entries
	// maxTable bounds what is read: about 100,000 rules.
	maxTable = 16 << 20
)

// Read returns the filter table of the network namespace of the calling thread as
// iptables-save writes it. names is what /proc/net/ip_tables_names says; without
// "filter" in it there is no such table and the error is [fs.ErrNotExist]. Other errors
// are the system's: EPERM without CAP_NET_ADMIN.
func Read(names []byte) (string, error) {
	return read(names, &ipv4, socket{unix.AF_INET, unix.SOL_IP})
}

// ReadIPv6 is Read for ip6tables, of /proc/net/ip6_tables_names.
func ReadIPv6(names []byte) (string, error) {
	return read(names, &ipv6, socket{unix.AF_INET6, unix.SOL_IPV6})
}

// socket is what is asked: a family and the level of its options.
type socket struct{ family, level int }

func read(names []byte, l *layout, s socket) (string, error) {
	const table = "filter"
	if !slices.Contains(strings.Fields(string(names)), table) {
		return "", fs.ErrNotExist
	}
	fd, err := unix.Socket(s.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	for range 8 { // the table may be replaced between the two questions
		info := make([]byte, infoLen)
		copy(info, table)
		if err := getsockopt(fd, s.level, getInfo, info); err != nil {
			return "", err
		}
		size := binary.NativeEndian.Uint32(info[80:])
		if size > maxTable {
			return "", fmt.Errorf("the filter table of iptables has %d bytes, more than %d", size, maxTable)
		}
		b := make([]byte, entriesLen+int(size))
		copy(b, table)
		binary.NativeEndian.PutUint32(b[32:], size)
		err := getsockopt(fd, s.level, getEntries, b)
		if errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return "", err
		}
		var h hooks
		for i := range h {
			h[i] = hook{valid: binary.NativeEndian.Uint32(info[32:])>>i&1 != 0, entry: binary.NativeEndian.Uint32(info[36+4*i:]), underflow: binary.NativeEndian.Uint32(info[56+4*i:])}
		}
		return l.save(b[entriesLen:], h)
	}
	return "", unix.EAGAIN
}

func getsockopt(fd, level, option int, b []byte) error {
	n := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	if int(n) != len(b) {
		return fmt.Errorf("iptables: option %d answers %d bytes, not %d", option, n, len(b))
	}
	return nil
}
