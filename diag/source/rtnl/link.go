package rtnl

import (
	"encoding/binary"
	"net"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

var operStates = []string{"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"}

// refs are the indices of the interfaces that an interface names.
type refs struct{ link, master int }

// Links returns the interfaces of the namespace.
func (c *Client) Links() ([]snapshot.Netdev, error) {
	all := []snapshot.Netdev{}
	var ref []refs
	names := map[int]string{}
	err := c.dump(getLink, make([]byte, 16), func(fixed []byte, d *netlink.AttributeDecoder) {
		n, r := one(fixed, d)
		names[n.Index.Or(0)] = n.Name
		all, ref = append(all, n), append(ref, r)
	})
	if err != nil {
		return nil, err
	}
	c.names = names
	for i := range all {
		relate(&all[i], ref[i], names)
	}
	return all, nil
}

// relate names the interfaces that an interface names.
func relate(n *snapshot.Netdev, r refs, names map[int]string) {
	if name, ok := names[r.master]; ok {
		n.Master = snapshot.Known(name)
	}
	// The other end of a veth is its link too; only VLANs have a parent here.
	if name, ok := names[r.link]; ok && n.VLAN.IsKnown() {
		n.Parent = snapshot.Known(name)
	}
}

// one reads one interface.
func one(fixed []byte, d *netlink.AttributeDecoder) (n snapshot.Netdev, r refs) {
	const (
		address, ifname, mtu, link, master, operstate, linkinfo = 1, 3, 4, 5, 10, 16, 18
		stats64, carrier, carrierChanges, carrierDown           = 23, 33, 35, 48
	)
	n.Index = snapshot.Known(int(binary.NativeEndian.Uint32(fixed[4:])))
	for d.Next() {
		switch d.Type() {
		case address:
			if b := d.Bytes(); len(b) > 0 {
				n.MAC = snapshot.Known(net.HardwareAddr(b).String())
			}
		case ifname:
			n.Name = d.String()
		case mtu:
			n.MTU = snapshot.Known(int(d.Uint32()))
		case link:
			r.link = int(d.Uint32())
		case master:
			r.master = int(d.Uint32())
		case operstate:
			if s := int(d.Uint8()); s < len(operStates) {
				n.OperState = snapshot.Known(operStates[s])
			}
		case stats64:
			n.Statistics = statistics(d.Bytes())
		case carrier:
			n.Carrier = snapshot.Known(d.Uint8() != 0)
		case carrierChanges:
			n.CarrierChanges = snapshot.Known(uint64(d.Uint32()))
		case carrierDown:
			n.CarrierDownCount = snapshot.Known(uint64(d.Uint32()))
		case linkinfo:
			d.Nested(func(d *netlink.AttributeDecoder) error { linkInfo(d, &n); return nil })
		}
	}
	return n, r
}

// statistics reads what begins a struct rtnl_link_stats64: eight numbers that the kernel
// counts of every interface, under the names of the files that have them in sysfs.
func statistics(b []byte) snapshot.Counters {
	names := [...]string{"rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped"}
	if len(b) < 8*len(names) {
		return nil
	}
	all := make(snapshot.Counters, len(names))
	for i, at := range [...]int{3, 7, 0, 4, 2, 6, 1, 5} { // into the order of names
		all[at] = snapshot.Counter{Name: names[i], Value: snapshot.Known(binary.NativeEndian.Uint64(b[8*i:]))}
	}
	return all
}

// linkInfo reads the VLAN number of a VLAN interface.
func linkInfo(d *netlink.AttributeDecoder, n *snapshot.Netdev) {
	const kind, data, vlanID = 1, 2, 1
	is := ""
	for d.Next() {
		switch d.Type() {
		case kind:
			is = d.String()
		case data:
			if is != "vlan" {
				continue
			}
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if d.Type() == vlanID {
						n.VLAN = snapshot.Known(int(d.Uint16()))
					}
				}
				return nil
			})
		}
	}
}

// Addresses returns the IP addresses by interface; one without any has an empty list.
func (c *Client) Addresses() (map[string][]snapshot.Address, error) {
	const address, local, flagsAttr = 1, 2, 8
	all := map[string][]snapshot.Address{}
	err := c.dump(getAddr, make([]byte, 8), func(fixed []byte, d *netlink.AttributeDecoder) {
		var ip []byte
		bits := uint32(fixed[2])
		for d.Next() {
			switch d.Type() {
			case address:
				if ip == nil {
					ip = d.Bytes()
				}
			case local: // of a point-to-point interface, where address is the peer's
				ip = d.Bytes()
			case flagsAttr:
				bits = d.Uint32()
			}
		}
		if !addr(ip).IsValid() {
			return
		}
		dev := c.name(int(binary.NativeEndian.Uint32(fixed[4:])))
		all[dev] = append(all[dev], snapshot.Address{Prefix: hostPrefix(ip, int(fixed[1])), Flags: flags(bits)})
	})
	c.name(0) // asks for the interfaces, if nobody has
	for _, dev := range c.names {
		if all[dev] == nil {
			all[dev] = []snapshot.Address{}
		}
	}
	return all, err
}

func hostPrefix(ip []byte, bits int) string {
	p, err := addr(ip).Prefix(bits)
	if err != nil {
		return addr(ip).String()
	}
	return addr(ip).String() + p.String()[len(p.Addr().String()):]
}

// flags names the bits of ifa_flags; a permanent address is the rule and not named.
func flags(bits uint32) []string {
	var all []string
	for _, f := range []struct {
		bit  uint32
		name string
	}{
		{0x01, "secondary"},
		{0x04, "optimistic"},
		{0x08, "dadfailed"},
		{0x20, "deprecated"},
		{0x40, "tentative"},
		{0x100, "mngtmpaddr"},
		{0x200, "noprefixroute"},
	} {
		if bits&f.bit != 0 {
			all = append(all, f.name)
		}
	}
	if bits&0x80 == 0 {
		all = append(all, "dynamic")
	}
	return all
}
