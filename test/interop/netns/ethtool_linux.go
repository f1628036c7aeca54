package netns

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// OneQueue makes what a veth interface receives wait in one queue, with generic
// receive offload, for all interfaces of the pair that it is called for. Without,
// each packet waits in the queue of the processor that it was sent on, and a
// sender that changes processors is overtaken by itself.
func (s *Space) OneQueue(dev string) {
	s.t.Helper()
	const setTSO, setGRO = 0x1F, 0x2C // ETHTOOL_STSO, ETHTOOL_SGRO
	// A veth interface uses the queue of its peer for packets that are not TCP's
	// big ones, and cannot tell those unless it sends none.
	s.ethtool(dev, setTSO, 0)
	s.ethtool(dev, setGRO, 1)
}

// CutsItself makes the kernel segment and sum what leaves an interface, as for a
// NIC that does neither.
func (s *Space) CutsItself(dev string) {
	s.t.Helper()
	s.ethtool(dev, 0x17, 0) // ETHTOOL_STXCSUM
}

func (s *Space) ethtool(dev string, cmd, data uint32) {
	s.t.Helper()
	value := struct{ cmd, data uint32 }{cmd, data}
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], dev)
	req.data = unsafe.Pointer(&value)
	var err error
	s.Do(func() {
		var fd int
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
			err = errno
		}
	})
	if err != nil {
		s.t.Fatalf("ethtool command 0x%x of %s: %v", cmd, dev, err)
	}
}
