package verbs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// DeviceInfo is a device that Open could make.
type DeviceInfo struct {
	Name   string // vrb_ and the name of the interface
	Netdev string
	Addrs  []netip.Addr // usable ones, in the order of the interface
	MTU    int          // of the interface, bytes
	Up     bool         // administratively, and with carrier
	Why    string       // why it cannot be opened; empty if it can
}

// ListDevices returns one device for each network interface of this host, those
// that can be opened first, each group in the order of the interfaces. Nothing
// is opened; whether another program holds the UDP port shows on Open.
func ListDevices() ([]DeviceInfo, error) {
	ifs, err := netifs()
	if err != nil {
		return nil, err
	}
	return listDevices(ifs), nil
}

func listDevices(ifs []netif) []DeviceInfo {
	var out []DeviceInfo
	for i := range ifs {
		n := &ifs[i]
		info := DeviceInfo{Name: deviceName(n.name), Netdev: n.name, MTU: n.mtu, Up: n.up}
		var bad []string
		for _, a := range n.addrs {
			if a.unusable == "" {
				info.Addrs = append(info.Addrs, a.addr)
			} else {
				bad = append(bad, fmt.Sprintf("%v: %s", a.addr, a.unusable))
			}
		}
		switch {
		case !n.up:
			info.Why = "the interface is down"
		case len(n.addrs) == 0:
			info.Why = "the interface has no IP address"
		case len(info.Addrs) == 0:
			info.Why = "no usable IP address: " + strings.Join(bad, "; ")
		}
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b DeviceInfo) int {
		switch {
		case (a.Why == "") == (b.Why == ""):
			return 0
		case a.Why == "":
			return -1
		}
		return 1
	})
	return out
}

func deviceName(netdev string) string { return "vrb_" + netdev }
