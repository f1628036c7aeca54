package verbs

import "golang.org/x/sys/unix"

// linkOf returns the MTU of an interface, and whether it is up with carrier. The two
// calls ask for this interface alone: net.InterfaceByName lists all that there are.
func linkOf(name string) (mtu int, running, ok bool) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false, false
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFMTU, r) != nil {
		return 0, false, false
	}
	mtu = int(r.Uint32())
	if r, err = unix.NewIfreq(name); err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r) != nil {
		return 0, false, false
	}
	const both = unix.IFF_UP | unix.IFF_RUNNING
	return mtu, r.Uint16()&both == both, true
}
