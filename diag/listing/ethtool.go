package listing

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Statistics is ethtool -S. With congestion only, the lines about pause, priority flow
// control, ECN, CNPs and discards alone.
func Statistics(s *snapshot.Snapshot, netdev string, congestion bool) ([]byte, error) {
	n, err := interfaceOf(s, netdev)
	if err != nil {
		return nil, err
	}
	if len(n.Ethtool) == 0 {
		if n.Why != "" {
			return nil, fail(94, "Cannot get stats strings information: %s", n.Why)
		}
		return nil, fail(94, "no stats available")
	}
	b := []byte("NIC statistics:\n")
	for _, c := range n.Ethtool {
		if congestion && !aboutCongestion(c.Name) {
			continue
		}
		if v, ok := c.Value.Get(); ok {
			b = fmt.Appendf(b, "     %s: %d\n", c.Name, v)
		}
	}
	return b, nil
}

// StatisticsMap are the values of Statistics by name; nil without the interface.
func StatisticsMap(s *snapshot.Snapshot, netdev string, congestion bool) map[string]uint64 {
	n, err := interfaceOf(s, netdev)
	if err != nil {
		return nil
	}
	m := map[string]uint64{}
	for _, c := range n.Ethtool {
		if !congestion || aboutCongestion(c.Name) {
			known(c.Value, func(v uint64) { m[c.Name] = v })
		}
	}
	return m
}

// aboutCongestion reports whether a driver's name tells of flow control, marks or
// drops.
func aboutCongestion(name string) bool {
	low := strings.ToLower(name)
	for _, w := range []string{"pause", "pfc", "_xoff", "_xon", "ecn", "cnp", "discard", "drop", "out_of_buffer", "marked"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// Interface is the interface of a name, or of a device of that name.
func Interface(s *snapshot.Snapshot, name string) (*snapshot.Netdev, error) {
	return interfaceOf(s, name)
}

func interfaceOf(s *snapshot.Snapshot, name string) (*snapshot.Netdev, error) {
	if n := s.Netdev(name); n != nil {
		return n, nil
	}
	if d := s.Device(name); d != nil { // the interface of a device
		for i := range d.Ports {
			if n := s.Netdev(d.Ports[i].Netdev.Or("")); n != nil {
				return n, nil
			}
		}
	}
	return nil, fail(71, "no interface %s: No such device", name)
}

// FlowHash is ethtool -n IF rx-flow-hash udp4|udp6.
func FlowHash(s *snapshot.Snapshot, netdev, flow string) ([]byte, error) {
	over, ok := map[string]string{"udp4": "UDP over IPV4", "udp6": "UDP over IPV6"}[flow]
	if !ok {
		return nil, fail(1, "no flow type %s: udp4 and udp6 are known", flow)
	}
	n, err := interfaceOf(s, netdev)
	if err != nil {
		return nil, err
	}
	v := n.FlowHash[flow]
	h, ok := v.Get()
	if !ok {
		why := v.Why()
		if why == "not supported" {
			why = "Operation not supported"
		}
		return nil, fail(1, "Cannot get RX network flow hashing options: %s", why)
	}
	if h&snapshot.HashDiscard != 0 {
		return fmt.Appendf(nil, "%s flows use these fields for computing Hash flow key:\n - All matching flows discarded on RX\n\n", over), nil
	}
	b := fmt.Appendf(nil, "%s flows use these fields for computing Hash flow key:\n", over)
	if h == 0 {
		b = append(b, "None\n"...)
	}
	for _, f := range []struct {
		bit  snapshot.Hash
		line string
	}{
		{snapshot.HashL2DA, "L2DA"},
		{snapshot.HashVLAN, "VLAN tag"},
		{snapshot.HashL3Proto, "L3 proto"},
		{snapshot.HashSource, "IP SA"},
		{snapshot.HashDest, "IP DA"},
		{snapshot.HashL4Src, "L4 bytes 0 & 1 [TCP/UDP src port]"},
		{snapshot.HashL4Dst, "L4 bytes 2 & 3 [TCP/UDP dst port]"},
	} {
		if h&f.bit != 0 {
			b = append(b, f.line+"\n"...)
		}
	}
	return append(b, '\n'), nil
}
