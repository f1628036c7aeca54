package udp

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/link"
)

// The kernel gives a datagram that was sent to a group to sockets that are bound
// to the group or to every address. Those of this link are bound to an address
// of the host: a group needs a socket of its own, which several links, and
// processes, may have at the same time. The kernel does the rest: IGMP and MLD,
// the interface's filter (01:00:5e and 33:33), and the copy of what this host
// sends to a group that it has joined.

const (
	ipMulticastAll   = 49 // linux/in.h IP_MULTICAST_ALL
	ipv6MulticastAll = 29 // linux/in6.h IPV6_MULTICAST_ALL
)

// maxGroups bounds the sockets.
const maxGroups = 256

// group is a multicast group that the link has joined.
type group struct {
	*endpoint
	joins map[netip.Addr]int // by local address
	on    map[int]int        // local addresses that have joined, by interface: the kernel has one membership
}

var _ link.Grouper = (*system)(nil)

// Join implements link.Grouper.
func (l *system) Join(local, addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	local, addr = local.Unmap().WithZone(""), addr.Unmap().WithZone("")
	fail := func(err error) error { return fmt.Errorf("join group %v at %v: %w", addr, local, err) }
	e := l.endpoint(local)
	switch {
	case l.closed:
		return link.ErrClosed
	case e == nil:
		return fail(fmt.Errorf("%v is not an address of this link", local))
	case !addr.IsMulticast() || addr.Is4() != local.Is4():
		return fail(fmt.Errorf("not a multicast group of that family"))
	}
	g := l.group(addr)
	if g == nil {
		if len(l.groups) == maxGroups {
			return fail(fmt.Errorf("there are %d groups, the most", maxGroups))
		}
		var err error
		if g, err = l.openGroup(e, addr); err != nil {
			return fail(err)
		}
	}
	if g.joins[local] == 0 {
		if err := g.member(e, true); err != nil {
			l.closeIfEmpty(g)
			return fail(err)
		}
	}
	g.joins[local]++
	return nil
}

// Leave implements link.Grouper.
func (l *system) Leave(local, addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	local, addr = local.Unmap().WithZone(""), addr.Unmap().WithZone("")
	g := l.group(addr)
	switch {
	case l.closed:
		return link.ErrClosed
	case g == nil || g.joins[local] == 0:
		return fmt.Errorf("leave group %v at %v: it was not joined", addr, local)
	}
	if g.joins[local]--; g.joins[local] > 0 {
		return nil
	}
	delete(g.joins, local)
	err := g.member(l.endpoint(local), false)
	l.closeIfEmpty(g)
	if err != nil {
		return fmt.Errorf("leave group %v at %v: %w", addr, local, err)
	}
	return nil
}

func (l *system) group(addr netip.Addr) *group {
	for _, g := range l.groups {
		if g.addr == addr {
			return g
		}
	}
	return nil
}

// openGroup makes the socket of a group that was joined at e first.
func (l *system) openGroup(e *endpoint, addr netip.Addr) (*group, error) {
	g := &group{
		endpoint: &endpoint{addr: addr, zone: e.zone, cfg: e.cfg, out: newSources()},
		joins:    map[netip.Addr]int{}, on: map[int]int{},
	}
	s, err := g.open(l.port, true)
	if err != nil {
		return nil, err
	}
	g.main = s
	if err := l.poll.Receive(s.fd); err != nil {
		_ = unix.Close(s.fd)
		return nil, err
	}
	l.groups, l.rxs = append(l.groups, g), append(l.rxs, g.endpoint)
	return g, nil
}

func (l *system) closeIfEmpty(g *group) {
	if len(g.joins) > 0 {
		return
	}
	l.groups = slices.DeleteFunc(l.groups, func(o *group) bool { return o == g })
	l.rxs = slices.DeleteFunc(l.rxs, func(e *endpoint) bool { return e == g.endpoint })
	l.poll.Forget(g.main.fd)
	_ = unix.Close(g.main.fd)
}

// member joins or leaves at the interface of a local address. Several addresses
// of one interface are one member.
func (g *group) member(e *endpoint, join bool) error {
	at := e.interfaceIndex()
	n := g.on[at]
	if join && n > 0 || !join && n > 1 {
		g.count(at, join)
		return nil
	}
	err := g.tell(e, at, join)
	if err == nil || !join {
		g.count(at, join)
	}
	return err
}

func (g *group) count(at int, join bool) {
	if join {
		g.on[at]++
	} else if g.on[at]--; g.on[at] == 0 {
		delete(g.on, at)
	}
}

// interfaceIndex returns the interface that an endpoint's address belongs to, 0
// if it is unknown: then the kernel decides.
func (e *endpoint) interfaceIndex() int {
	if e.zone != 0 {
		return e.zone
	}
	if i := interfaceOf(e.addr); i != 0 || !e.addr.IsLoopback() {
		return i
	}
	return interfaceOf(netip.AddrFrom4([4]byte{127, 0, 0, 1})) // of all of 127.0.0.0/8
}

// tell joins or leaves at an interface.
func (g *group) tell(e *endpoint, at int, join bool) error {
	if g.addr.Is4() {
		name := unix.IP_ADD_MEMBERSHIP
		if !join {
			name = unix.IP_DROP_MEMBERSHIP
		}
		return os.NewSyscallError("join or leave", unix.SetsockoptIPMreqn(g.main.fd, unix.IPPROTO_IP, name,
			&unix.IPMreqn{Multiaddr: g.addr.As4(), Address: e.addr.As4(), Ifindex: int32(at)}))
	}
	name := unix.IPV6_JOIN_GROUP
	if !join {
		name = unix.IPV6_LEAVE_GROUP
	}
	return os.NewSyscallError("join or leave", unix.SetsockoptIPv6Mreq(g.main.fd, unix.IPPROTO_IPV6, name,
		&unix.IPv6Mreq{Multiaddr: g.addr.As16(), Interface: uint32(at)}))
}
