package rtnl

import (
	"encoding/binary"
	"net"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

var routeTypes = []string{"none", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw", "nat"}

// cloned marks a route that is an entry of the cache.
const cloned = 0x200

// Routes returns the routes of all tables, IPv4 before IPv6.
func (c *Client) Routes() ([]snapshot.Route, error) {
	all := []snapshot.Route{}
	for _, family := range []byte{inet, inet6} {
		head := make([]byte, 12)
		head[0] = family
		err := c.dump(getRoute, head, func(fixed []byte, d *netlink.AttributeDecoder) {
			if binary.NativeEndian.Uint32(fixed[8:])&cloned != 0 {
				return
			}
			all = append(all, c.route(fixed, d)...)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// route reads a message; a route of several next hops is several rows.
func (c *Client) route(fixed []byte, d *netlink.AttributeDecoder) []snapshot.Route {
	const dst, oif, gateway, priority, prefsrc, metrics, multipath, table, via, mtuAttr = 1, 4, 5, 6, 7, 8, 9, 15, 18, 2
	r := snapshot.Route{Table: int(fixed[4])}
	if t := int(fixed[7]); t < len(routeTypes) {
		r.Type = routeTypes[t]
	}
	var to []byte
	var hops []snapshot.Route
	for d.Next() {
		switch d.Type() {
		case dst:
			to = d.Bytes()
		case oif:
			r.Dev = c.name(int(d.Uint32()))
		case gateway:
			r.Via = addr(d.Bytes()).String()
		case via:
			if b := d.Bytes(); len(b) > 2 {
				r.Via = addr(b[2:]).String()
			}
		case priority:
			r.Metric = int(d.Uint32())
		case prefsrc:
			r.Src = addr(d.Bytes()).String()
		case table:
			r.Table = int(d.Uint32())
		case metrics:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if d.Type() == mtuAttr {
						r.MTU = int(d.Uint32())
					}
				}
				return nil
			})
		case multipath:
			hops = c.nextHops(d.Bytes())
		}
	}
	r.Dst = prefix(to, int(fixed[1]), int(fixed[0]))
	if len(hops) == 0 {
		return []snapshot.Route{r}
	}
	for i := range hops {
		one := r
		one.Dev, one.Via = hops[i].Dev, hops[i].Via
		hops[i] = one
	}
	return hops
}

// nextHops reads a list of struct rtnexthop, each with attributes.
func (c *Client) nextHops(b []byte) []snapshot.Route {
	const gateway = 5
	var all []snapshot.Route
	for len(b) >= 8 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 8 || n > len(b) {
			break
		}
		hop := snapshot.Route{Dev: c.name(int(binary.NativeEndian.Uint32(b[4:])))}
		if d, err := netlink.NewAttributeDecoder(b[8:n]); err == nil {
			for d.Next() {
				if d.Type() == gateway {
					hop.Via = addr(d.Bytes()).String()
				}
			}
		}
		all = append(all, hop)
		b = b[min((n+3)&^3, len(b)):]
	}
	return all
}

// Rules returns the rules of routing policy, IPv4 before IPv6.
func (c *Client) Rules() ([]snapshot.PolicyRule, error) {
	const dst, src, iif, priority, table, oif = 1, 2, 3, 6, 15, 17
	all := []snapshot.PolicyRule{}
	for _, family := range []byte{inet, inet6} {
		head := make([]byte, 12)
		head[0] = family
		err := c.dump(getRule, head, func(fixed []byte, d *netlink.AttributeDecoder) {
			r := snapshot.PolicyRule{Table: int(fixed[4])}
			for d.Next() {
				switch d.Type() {
				case dst:
					r.To = prefix(d.Bytes(), int(fixed[1]), int(family))
				case src:
					r.From = prefix(d.Bytes(), int(fixed[2]), int(family))
				case iif:
					r.IIF = d.String()
				case oif:
					r.OIF = d.String()
				case priority:
					r.Priority = int(d.Uint32())
				case table:
					r.Table = int(d.Uint32())
				}
			}
			all = append(all, r)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

var neighStates = map[uint16]string{
	0x01: "INCOMPLETE", 0x02: "REACHABLE", 0x04: "STALE", 0x08: "DELAY", 0x10: "PROBE", 0x20: "FAILED", 0x40: "NOARP", 0x80: "PERMANENT",
}

// Neighbours returns the ARP and neighbour-discovery tables without the rows that
// need no resolution (multicast, loopback).
func (c *Client) Neighbours() ([]snapshot.Neighbour, error) {
	const dst, lladdr = 1, 2
	all := []snapshot.Neighbour{}
	err := c.dump(getNeigh, make([]byte, 12), func(fixed []byte, d *netlink.AttributeDecoder) {
		state := binary.NativeEndian.Uint16(fixed[8:])
		if fixed[0] != inet && fixed[0] != inet6 || state == 0x40 {
			return
		}
		n := snapshot.Neighbour{Dev: c.name(int(binary.NativeEndian.Uint32(fixed[4:]))), State: neighStates[state]}
		for d.Next() {
			switch d.Type() {
			case dst:
				n.IP = addr(d.Bytes()).String()
			case lladdr:
				n.MAC = net.HardwareAddr(d.Bytes()).String()
			}
		}
		if n.State == "" {
			n.State = "NONE"
		}
		all = append(all, n)
	})
	return all, err
}
