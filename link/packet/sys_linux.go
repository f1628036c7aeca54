package packet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	packetIgnoreOutgoing = 23   // linux/if_packet.h PACKET_IGNORE_OUTGOING
	packetVnetHdr        = 15   // linux/if_packet.h PACKET_VNET_HDR
	statusVLANValid      = 0x10 // linux/if_packet.h TP_STATUS_VLAN_VALID
	ethtoolGSet          = 1    // linux/ethtool.h ETHTOOL_GSET
	ctlWords             = 8    // room for one PACKET_AUXDATA message
	cmsgHeader           = unix.SizeofCmsghdr
)

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// auxdata is struct tpacket_auxdata.
type auxdata struct {
	status, len, snaplen uint32
	mac, net             uint16
	vlanTCI, vlanTPID    uint16
}

// recvmmsg receives without blocking and returns how many messages. The raw
// call keeps the scheduler out of the way; it cannot block.
func recvmmsg(fd int, h []mmsghdr) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h[0])),
		uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// sendmmsg sends without blocking and returns how many messages left. A frame
// through a veth pair is received within this call, so it is no raw one.
func sendmmsg(fd int, h []mmsghdr) (int, unix.Errno) {
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h[0])),
		uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// ask reports which of events fd has, waiting at most ms milliseconds.
func ask(p *unix.PollFd, ms int) bool {
	ts := unix.NsecToTimespec(int64(ms) * 1e6)
	n, _, e := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e == 0 && n > 0
}

// notesMerged reports whether the kernel can tell a raw socket the size of merged
// UDP packets: from 6.2 on.
func notesMerged() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var v [2]int
	i := 0
	for k := range v {
		for ; i < len(u.Release) && u.Release[i] >= '0' && u.Release[i] <= '9' && v[k] < 1000; i++ {
			v[k] = v[k]*10 + int(u.Release[i]-'0')
		}
		i++ // the dot
	}
	return v[0] > 6 || v[0] == 6 && v[1] >= 2
}

// setBuffer asks for n bytes, past the administrator's limit where this process
// may.
func setBuffer(fd, name, force, n int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, n)
	if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, name); err == nil && got < 2*n {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, n)
	}
}

// holds returns about how much payload the receive buffer has room for: the
// kernel charges each frame its buffer and its bookkeeping.
func holds(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n / 16 * 7
}

// lineRate returns the speed of an interface in bits a second, 0 if it has
// none.
func lineRate(fd int, name string) uint64 {
	var cmd struct {
		cmd, supported, advertising uint32
		speed                       uint16
		_                           [14]byte
		speedHi                     uint16
		_                           [16]byte
	}
	cmd.cmd = ethtoolGSet
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	req.data = unsafe.Pointer(&cmd)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
		return 0
	}
	mbps := uint64(cmd.speed) | uint64(cmd.speedHi)<<16
	if mbps == 0xFFFF || mbps == 0xFFFFFFFF {
		return 0
	}
	return mbps * 1e6
}
