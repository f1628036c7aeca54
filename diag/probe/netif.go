package probe

import (
	"net"
	"net/netip"
)

// interfaceOf returns the interface that has an address, and its MTU; "" and 0
// if none admits to it.
func interfaceOf(a netip.Addr) (string, int) {
	ifs, err := net.Interfaces()
	if err != nil {
		return "", 0
	}
	for _, ifi := range ifs {
		as, err := ifi.Addrs()
		if err != nil {
			continue
		}
		for _, x := range as {
			n, ok := x.(*net.IPNet)
			if !ok {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			zoned := a.Zone() == "" || a.Zone() == ifi.Name
			// Every address of the loopback's network is local, listed or not.
			if zoned && ip.Unmap() == a.Unmap().WithZone("") || ifi.Flags&net.FlagLoopback != 0 && n.Contains(a.AsSlice()) {
				return ifi.Name, ifi.MTU
			}
		}
	}
	return "", 0
}
