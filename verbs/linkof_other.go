//go:build !linux

package verbs

import "net"

// linkOf returns the MTU of an interface, and whether it is up with carrier.
func linkOf(name string) (mtu int, running, ok bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, false, false
	}
	return i.MTU, i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0, true
}
