package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
)

const (
	discardPort = 9 // RFC 863

	nudValid = unix.NUD_PERMANENT | unix.NUD_NOARP | unix.NUD_REACHABLE | unix.NUD_PROBE | unix.NUD_STALE | unix.NUD_DELAY

	fibMatch = 0x2000 // linux/rtnetlink.h RTM_F_FIB_MATCH
)

// hop is who gets the frames for a destination.
type hop struct {
	via     netip.Addr // the neighbour: the destination or a router
	mac     ether.MAC
	mtu     int  // longest frame that the route carries
	known   bool // mac is
	local   bool // this link itself
	joined  bool // a group that this link has joined
	toldMTU bool
	waiting // while mac is not known
}

// Path implements link.Link. A source port of 0 stands for RoCEv1, which has no
// ports and crosses no router. It does not wait for the neighbour: see
// neighbour_linux.go.
func (l *system) Path(src, dst netip.Addr, srcPort uint16) (link.Path, error) {
	src, dst = src.Unmap().WithZone(""), dst.Unmap().WithZone("")
	p := link.Path{SrcPort: srcPort, MTU: l.caps.MTU}
	switch {
	case !l.own(src):
		return p, fmt.Errorf("%v is no address of this link, which has %v", src, l.cfg.Addrs)
	case src.BitLen() != dst.BitLen():
		return p, fmt.Errorf("%v and %v are not of one address family", src, dst)
	case l.own(dst):
		return p, nil
	}
	h := hop{via: dst, mtu: l.caps.MTU}
	if dst.IsMulticast() {
		h.mac, h.known = groupMAC(dst), true
		l.keep(dst, h)
		return p, nil
	}
	gateway, mtu, err := l.route(src, dst)
	if err != nil {
		return p, err
	}
	if gateway.IsValid() {
		if srcPort == 0 {
			return p, fmt.Errorf("it is behind the router %v, and RoCE v1 crosses none; use a RoCE v2 GID at both ends", gateway)
		}
		h.via = gateway
	}
	if mtu > 0 {
		h.mtu = min(h.mtu, mtu+l.header())
	}
	p.MTU = h.mtu
	h.known = l.lo // a loopback looks at no address
	if h := l.keep(dst, h); !h.known {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.find(h)
	}
	return p, nil
}

// keep notes who gets the frames for a destination. What is known of the same
// neighbour, and what waits for it, stays.
func (l *system) keep(dst netip.Addr, h hop) *hop {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.joined = l.groups[dst] != nil
	old := l.hops[dst]
	if old == nil {
		old = &hop{}
		l.hops[dst] = old
		l.lastHop = nil
	}
	if old.via == h.via {
		h.waiting = old.waiting
		if old.known {
			h.known, h.mac = true, old.mac
		}
	} else {
		l.forget(old)
	}
	*old = h
	return old
}

// groupMAC returns the address of a multicast group (RFC 1112 §6.4, RFC 2464
// §7).
func groupMAC(a netip.Addr) ether.MAC {
	if a.Is4() {
		b := a.As4()
		return ether.MAC{0x01, 0x00, 0x5E, b[1] & 0x7F, b[2], b[3]}
	}
	b := a.As16()
	return ether.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// route asks the host for the way from src to dst over the link's interface:
// the router, if there is one, and the route's MTU, if it has one of its own.
func (l *system) route(src, dst netip.Addr) (gateway netip.Addr, mtu int, err error) {
	index := binary.NativeEndian.AppendUint32(nil, uint32(l.index))
	ask := func(flags uint32) ([]byte, error) {
		m := unix.RtMsg{Family: family(dst), Dst_len: uint8(dst.BitLen()), Src_len: uint8(src.BitLen()), Flags: flags}
		return l.routes.ask(unix.RTM_GETROUTE, 0, bytesOf(&m), attr{unix.RTA_DST, dst.AsSlice()}, attr{unix.RTA_SRC, src.AsSlice()}, attr{unix.RTA_OIF, index})
	}
	// Asked for an interface that has no route, IPv4 answers that everybody is
	// next door; asked for the entry of the table it does not.
	if _, err := ask(fibMatch); err != nil {
		return gateway, 0, l.noRoute(dst, err)
	}
	b, err := ask(0)
	if err != nil {
		return gateway, 0, l.noRoute(dst, err)
	}
	if len(b) < unix.SizeofRtMsg {
		return gateway, 0, l.noRoute(dst, unix.EPROTO)
	}
	switch typ := b[7]; {
	case typ == unix.RTN_LOCAL && l.lo:
	case typ == unix.RTN_LOCAL:
		return gateway, 0, errors.New("it is an address of this host, and frames that leave an interface do not come back in; use the UDP link, or one packet link with both addresses")
	case typ != unix.RTN_UNICAST:
		return gateway, 0, fmt.Errorf("the host's route to it is of type %d, not to one host", typ)
	}
	attrs(b[unix.SizeofRtMsg:], func(typ uint16, data []byte) {
		switch typ {
		case unix.RTA_GATEWAY:
			gateway, _ = netip.AddrFromSlice(data)
		case unix.RTA_METRICS:
			attrs(data, func(typ uint16, data []byte) {
				if typ == unix.RTAX_MTU && len(data) >= 4 {
					mtu = int(binary.NativeEndian.Uint32(data))
				}
			})
		}
	})
	return gateway, mtu, nil
}

func (l *system) noRoute(dst netip.Addr, err error) error {
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return fmt.Errorf("the host has no route to %v over %s: %w", dst, l.cfg.Interface, err)
	}
	return fmt.Errorf("ask the host for the route to %v over %s: %w", dst, l.cfg.Interface, err)
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
