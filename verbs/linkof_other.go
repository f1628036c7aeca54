//go:build !linux

package verbs

import "net"

// ifSocket asks for the state of interfaces.
type ifSocket struct{}

func openIfSocket() *ifSocket { return nil }

func (*ifSocket) close() {}

// linkOf returns the state of an interface.
func (*ifSocket) linkOf(name string) (l linkState, ok bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return linkState{}, false
	}
	return linkState{i.MTU, i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0, speedMbps(name)}, true
}
