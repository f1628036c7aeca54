package verbs

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ifSocket asks for the state of interfaces. It is kept open: an exporter asks every few
// seconds, and a socket costs more than what is asked. It is of the network namespace in
// which it was opened, that of the device.
type ifSocket struct {
	f   *os.File
	raw syscall.RawConn
}

// openIfSocket returns nil where there is no such socket; linkOf then opens its own.
func openIfSocket() *ifSocket {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "interfaces")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil
	}
	return &ifSocket{f, raw}
}

// close closes it; linkOf may be asked after that.
func (s *ifSocket) close() {
	if s != nil {
		s.f.Close()
	}
}

// linkOf returns the state of an interface. The calls ask for this interface alone:
// net.InterfaceByName lists all that there are.
func (s *ifSocket) linkOf(name string) (l linkState, ok bool) {
	if s != nil && s.raw.Control(func(fd uintptr) { l, ok = linkOf(int(fd), name) }) == nil {
		return l, ok
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return linkState{}, false
	}
	defer unix.Close(fd)
	return linkOf(fd, name)
}

func linkOf(fd int, name string) (l linkState, ok bool) {
	r, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFMTU, r) != nil {
		return l, false
	}
	l.mtu = int(r.Uint32())
	if r, err = unix.NewIfreq(name); err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r) != nil {
		return linkState{}, false
	}
	const both = unix.IFF_UP | unix.IFF_RUNNING
	l.running = r.Uint16()&both == both
	if r.Uint16()&unix.IFF_UP != 0 {
		l.speedMbps = speedOf(fd, name)
	}
	return l, true
}

// speedOf asks the driver for the speed, 0 if it tells none. It is the number of sysfs
// without a file to open.
func speedOf(fd int, name string) int {
	// struct ethtool_cmd, of which the answer is the speed in two halves.
	var cmd struct {
		cmd, supported, advertising uint32
		speed                       uint16
		_                           [6]byte
		_                           [2]uint32
		speedHigh                   uint16
		_                           [2]byte
		_                           [3]uint32
	}
	var req struct { // struct ifreq: a name, then a pointer
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	const getSettings = 1 // ETHTOOL_GSET
	cmd.cmd = getSettings
	copy(req.name[:unix.IFNAMSIZ-1], name)
	var pin runtime.Pinner
	pin.Pin(&cmd)
	defer pin.Unpin()
	req.data = unsafe.Pointer(&cmd)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if n := int32(uint32(cmd.speedHigh)<<16 | uint32(cmd.speed)); errno == 0 && n > 0 {
		return int(n)
	}
	return 0
}
