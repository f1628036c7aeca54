package perf

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// loopbackOther is the address that a client takes when it reaches its server
// at the very address that it would use itself: on Linux all of 127.0.0.0/8 is
// the host.
var loopbackOther = netip.AddrFrom4([4]byte{127, 0, 0, 2})

// EthernetPrefix stands before the name of a device that is to be opened as an
// Ethernet device: [verbs.Config].Ethernet.
const EthernetPrefix = "packet:"

// deviceConfig says which device a test uses:
//
//   - with -d an address, the device on that address;
//   - with -d a name, vrb_<netdev> or <netdev>, the device on that interface;
//   - with packet: before either, an Ethernet device there, on AF_PACKET;
//   - otherwise the device on the address of this end of the TCP connection,
//     which is the one that routes to the peer. With a GID index given, the
//     device on the whole interface of that address, so that the index counts
//     as it does in Linux. A client on the loopback address of its own server
//     takes 127.0.0.2.
func deviceConfig(name string, wantIndex bool, local, remote netip.Addr, server bool) (verbs.Config, error) {
	if of, ok := strings.CutPrefix(name, EthernetPrefix); ok && of != "" {
		cfg, err := deviceConfig(of, wantIndex, local, remote, server)
		cfg.Ethernet = true
		return cfg, err
	}
	if name != "" {
		if a, ok := parseDevice(name); ok {
			return verbs.Config{Addr: a}, nil
		}
		return verbs.Config{Netdev: strings.TrimPrefix(name, "vrb_")}, nil
	}
	if !local.IsValid() {
		return verbs.Config{}, usage("-d: name a device: it does not follow from the connection")
	}
	if local == remote && local.IsLoopback() && local.Is4() && !server {
		return verbs.Config{Addr: loopbackOther}, nil
	}
	if wantIndex && !local.IsLoopback() {
		if dev := netdevOf(local); dev != "" {
			return verbs.Config{Netdev: dev}, nil
		}
	}
	return verbs.Config{Addr: local}, nil
}

// netdevOf returns the interface that has an address, "" if none has.
func netdevOf(a netip.Addr) string {
	ifs, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range ifs {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, x := range addrs {
			if n, ok := x.(*net.IPNet); ok {
				if b, ok := netip.AddrFromSlice(n.IP); ok && b.Unmap() == a.WithZone("") {
					return i.Name
				}
			}
		}
	}
	return ""
}

// shard makes the test's device one of Shards.
func (c *Config) shard() {
	if n := c.Shards; n != 0 {
		open := c.Open
		if open == nil {
			open = verbs.Open
		}
		c.Open = func(cfg verbs.Config) (*verbs.Device, error) {
			cfg.Shards = n
			return open(cfg)
		}
	}
}

// openDevice opens the device of a test.
func openDevice(open func(verbs.Config) (*verbs.Device, error), name string, wantIndex bool, local, remote netip.Addr, server bool) (*verbs.Device, error) {
	cfg, err := deviceConfig(name, wantIndex, local, remote, server)
	if err != nil {
		return nil, err
	}
	if open == nil {
		open = verbs.Open
	}
	dev, err := open(cfg)
	if err != nil {
		what := cfg.Netdev
		if cfg.Addr.IsValid() {
			what = cfg.Addr.String()
		}
		hint := ""
		if name == "" && local == remote {
			hint = ": client and server on one host need an address each: give them with -d"
		}
		return nil, fmt.Errorf("open the device on %s: %w%s", what, err, hint)
	}
	return dev, nil
}

// chooseGID returns the row of the GID table that a test uses. index is the
// user's choice, or -1.
func chooseGID(dev *verbs.Device, index int, ipv6 bool, peer netip.Addr) (verbs.GIDEntry, error) {
	table := dev.GIDs()
	if index >= 0 {
		for _, e := range table {
			if e.Index != index {
				continue
			}
			if e.Unusable != "" {
				return e, fmt.Errorf("GID index %d (%v) of %s: %s", index, e.Addr, dev.Name(), e.Unusable)
			}
			return e, nil
		}
		if len(table) == 1 {
			return verbs.GIDEntry{}, fmt.Errorf("GID index %d: %v was opened on that address alone, which is row 0; -d %s opens all addresses of the interface", index, dev, dev.Name())
		}
		return verbs.GIDEntry{}, fmt.Errorf("GID index %d: %v has rows 0 to %d: `verbena gid` lists them", index, dev, len(table)-1)
	}
	if ipv6 {
		for _, e := range table {
			if e.Unusable == "" && !e.GID.Is4() && !e.GID.Addr().IsLinkLocalUnicast() && e.Type == ib.GIDTypeRoCEv2 {
				return e, nil
			}
		}
		return verbs.GIDEntry{}, fmt.Errorf("--ipv6: %s has no usable IPv6 GID: give the interface an IPv6 address, or open it by name with -d", dev.Name())
	}
	i, err := dev.SelectGID(peer)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	for _, e := range table {
		if e.Index == i {
			return e, nil
		}
	}
	return verbs.GIDEntry{}, fmt.Errorf("%s: no row %d in the GID table", dev.Name(), i)
}
