package udp

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

const (
	udpNoCheck6RX = 102 // linux/udp.h UDP_NO_CHECK6_RX

	soMeminfo      = 55 // asm-generic/socket.h SO_MEMINFO
	skMeminfoDrops = 8  // linux/sock_diag.h SK_MEMINFO_DROPS
	skMeminfoVars  = 9

	// ctlWords is the room for the control messages of one packet: at most
	// four of them, of 24 bytes each.
	ctlWords = 16

	cmsgHeader = unix.SizeofCmsghdr
)

// cmsgSpace rounds the length of a control message up to where the next begins.
func cmsgSpace(n int) int {
	const align = int(unsafe.Sizeof(uintptr(0)))
	return (n + align - 1) &^ (align - 1)
}

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// recvmmsg receives without blocking and returns how many messages; errors
// count as none: on an unconnected socket they say nothing that a later call
// would not.
//
// The raw call keeps the scheduler out of the way, which is worth a tenth of
// the bandwidth; it is allowed because it cannot block.
func recvmmsg(fd int, h []mmsghdr) int {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h[0])),
		uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// sendmsg sends without blocking. See recvmmsg on the raw call.
func sendmsg(fd int, h *unix.Msghdr) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(h)), unix.MSG_DONTWAIT)
	return e
}

// dropsOf returns how many packets found the socket's buffer full.
func dropsOf(fd int) (uint32, bool) {
	var info [skMeminfoVars]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, soMeminfo,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return info[skMeminfoDrops], e == 0 && size >= uint32(unsafe.Sizeof(info))
}

// ntohs turns a port as sockaddr holds it into a number, and back.
func ntohs(p uint16) uint16 {
	if cpu.IsBigEndian {
		return p
	}
	return bits.ReverseBytes16(p)
}
