package packet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
)

// A group is joined twice: by the UDP socket that holds the port of the local
// address, so that the host tells routers and switches (IGMP, MLD), and by the
// raw socket, so that the interface lets its frames in whatever becomes of the
// former. What leaves an interface does not come back in: the link gives itself
// a copy of what it sends to a group that it has joined.

// maxGroups bounds the groups.
const maxGroups = 256

// group is a multicast group that the link has joined.
type group struct {
	joins map[netip.Addr]*join // by local address
}

// join is a group at a local address: n times, by the UDP socket fd.
type join struct{ n, fd int }

var _ link.Grouper = (*system)(nil)

// Join implements link.Grouper. Frames say themselves which group they are for:
// the Dst of what arrives is not set.
func (l *system) Join(local, addr netip.Addr) error {
	local, addr = local.Unmap().WithZone(""), addr.Unmap().WithZone("")
	l.mu.Lock()
	defer l.mu.Unlock()
	fail := func(err error) error {
		return fmt.Errorf("join group %v at %v on %s: %w", addr, local, l.cfg.Interface, err)
	}
	holder := l.holder(local)
	switch {
	case l.closed:
		return link.ErrClosed
	case holder == nil:
		return fail(fmt.Errorf("%v is no address of this link", local))
	case !addr.IsMulticast() || addr.Is4() != local.Is4():
		return fail(errors.New("not a multicast group of that family"))
	}
	g := l.groups[addr]
	if g == nil {
		if len(l.groups) == maxGroups {
			return fail(fmt.Errorf("there are %d groups, the most", maxGroups))
		}
		if err := l.hearMAC(groupMAC(addr), true); err != nil {
			return fail(err)
		}
		g = &group{joins: map[netip.Addr]*join{}}
		l.setGroup(addr, g)
	}
	j := g.joins[local]
	if j == nil {
		fd, err := holder.join(addr, l.index)
		if err != nil {
			_ = l.dropEmpty(addr, g)
			return fail(err)
		}
		j = &join{fd: fd}
		g.joins[local] = j
	}
	j.n++
	return nil
}

// Leave implements link.Grouper.
func (l *system) Leave(local, addr netip.Addr) error {
	local, addr = local.Unmap().WithZone(""), addr.Unmap().WithZone("")
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[addr]
	switch {
	case l.closed:
		return link.ErrClosed
	case g == nil || g.joins[local] == nil:
		return fmt.Errorf("leave group %v at %v on %s: it was not joined", addr, local, l.cfg.Interface)
	}
	j := g.joins[local]
	if j.n--; j.n > 0 {
		return nil
	}
	delete(g.joins, local)
	err := errors.Join(member(j.fd, local, addr, l.index, false), l.dropEmpty(addr, g))
	if err != nil {
		return fmt.Errorf("leave group %v at %v on %s: %w", addr, local, l.cfg.Interface, err)
	}
	return nil
}

// setGroup notes or, with nil, removes a group, also where frames are sent to
// it.
func (l *system) setGroup(addr netip.Addr, g *group) {
	if g == nil {
		delete(l.groups, addr)
	} else {
		l.groups[addr] = g
	}
	if h := l.hops[addr]; h != nil {
		h.joined = g != nil
	}
}

// dropEmpty ends a group that nobody has joined any more.
func (l *system) dropEmpty(addr netip.Addr, g *group) error {
	if len(g.joins) > 0 {
		return nil
	}
	l.setGroup(addr, nil)
	return l.hearMAC(groupMAC(addr), false)
}

// hearMAC lets the interface's filter pass frames for a group address, or ends
// that. The kernel counts.
func (l *system) hearMAC(mac ether.MAC, hear bool) error {
	name := unix.PACKET_ADD_MEMBERSHIP
	if !hear {
		name = unix.PACKET_DROP_MEMBERSHIP
	}
	m := unix.PacketMreq{Ifindex: int32(l.index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(mac))}
	copy(m.Address[:], mac[:])
	return os.NewSyscallError("join or leave "+mac.String(), unix.SetsockoptPacketMreq(l.fd, unix.SOL_PACKET, name, &m))
}

// holder returns the socket of a local address, or nil.
func (l *system) holder(local netip.Addr) *holder {
	for i := range l.holders {
		if l.holders[i].addr == local {
			return &l.holders[i]
		}
	}
	return nil
}

// join joins a group at the interface and returns the socket that has. One
// socket joins some twenty groups (igmp_max_memberships): more of them are opened
// as needed.
func (h *holder) join(addr netip.Addr, index int) (fd int, err error) {
	for _, fd := range append([]int{h.fd}, h.more...) {
		if err = member(fd, h.addr, addr, index, true); !errors.Is(err, unix.ENOBUFS) {
			return fd, err
		}
	}
	fd, err = unix.Socket(int(family(addr)), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	h.more = append(h.more, fd)
	return fd, member(fd, h.addr, addr, index, true)
}

// member makes a UDP socket join or leave a group at the interface.
func member(fd int, local, addr netip.Addr, index int, join bool) error {
	if addr.Is4() {
		name := unix.IP_ADD_MEMBERSHIP
		if !join {
			name = unix.IP_DROP_MEMBERSHIP
		}
		return os.NewSyscallError("join or leave", unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, name,
			&unix.IPMreqn{Multiaddr: addr.As4(), Address: local.As4(), Ifindex: int32(index)}))
	}
	name := unix.IPV6_JOIN_GROUP
	if !join {
		name = unix.IPV6_LEAVE_GROUP
	}
	return os.NewSyscallError("join or leave", unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, name,
		&unix.IPv6Mreq{Multiaddr: addr.As16(), Interface: uint32(index)}))
}
