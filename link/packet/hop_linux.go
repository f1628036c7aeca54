package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
)

const (
	// resolveWait bounds how long Path waits for a neighbour. One on the same
	// segment answers in well under a millisecond; the device stands still
	// meanwhile.
	resolveWait = 500 * time.Millisecond
	// resolveTick is how often it looks, if nothing is heard.
	resolveTick = 20 * time.Millisecond
	discardPort = 9 // RFC 863

	nudValid = unix.NUD_PERMANENT | unix.NUD_NOARP | unix.NUD_REACHABLE | unix.NUD_PROBE | unix.NUD_STALE | unix.NUD_DELAY

	fibMatch = 0x2000 // linux/rtnetlink.h RTM_F_FIB_MATCH
)

// hop is who gets the frames for a destination.
type hop struct {
	via     netip.Addr // the neighbour: the destination or a router
	mac     ether.MAC
	mtu     int  // longest frame that the route carries
	local   bool // this link itself
	toldMTU bool
}

// Path implements link.Link. A source port of 0 stands for RoCEv1, which has no
// ports and crosses no router. It waits for the neighbour up to half a second.
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
		h.mac = groupMAC(dst)
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
	if !l.lo {
		if h.mac, err = l.resolve(h.via); err != nil {
			return p, err
		}
	}
	l.keep(dst, h)
	return p, nil
}

// keep notes who gets the frames for a destination.
func (l *system) keep(dst netip.Addr, h hop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.hops[dst]; old != nil {
		*old = h
		return
	}
	l.hops[dst] = &h
	l.lastHop = nil
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

// resolve returns the MAC address of a neighbour and lets the host ask for it
// if need be.
func (l *system) resolve(via netip.Addr) (ether.MAC, error) {
	for asked, end := false, l.wait.clock.Now().Add(resolveWait); ; {
		mac, ok, err := l.neighbour(via)
		if ok {
			return mac, nil
		}
		if err != nil {
			return mac, fmt.Errorf("ask the host for the neighbour %v: %w", via, err)
		}
		if !asked {
			asked = true
			l.trigger(via)
			continue
		}
		left := end.Sub(l.wait.clock.Now())
		if left <= 0 {
			return mac, fmt.Errorf("the neighbour %v on %s does not answer within %v (ARP or neighbour discovery): %w", via, l.cfg.Interface, resolveWait, unix.EHOSTUNREACH)
		}
		l.ears.hear(min(left, resolveTick))
	}
}

// neighbour asks the host's table.
func (l *system) neighbour(via netip.Addr) (mac ether.MAC, ok bool, err error) {
	m := unix.NdMsg{Family: family(via), Ifindex: int32(l.index)}
	b, err := l.routes.ask(unix.RTM_GETNEIGH, 0, bytesOf(&m), attr{unix.NDA_DST, via.AsSlice()})
	if errors.Is(err, unix.ENOENT) {
		return mac, false, nil
	}
	if err != nil {
		return mac, false, err
	}
	_, mac, ok = readNeighbour(b, l.index)
	return mac, ok, nil
}

// readNeighbour reads one entry of the table of an interface; ok is false if it
// has no address that can be used.
func readNeighbour(b []byte, index int) (dst netip.Addr, mac ether.MAC, ok bool) {
	if len(b) < unix.SizeofNdMsg {
		return dst, mac, false
	}
	at := int(int32(binary.NativeEndian.Uint32(b[4:])))
	state := binary.NativeEndian.Uint16(b[8:])
	attrs(b[unix.SizeofNdMsg:], func(typ uint16, data []byte) {
		switch {
		case typ == unix.NDA_DST:
			dst, _ = netip.AddrFromSlice(data)
		case typ == unix.NDA_LLADDR && len(data) == len(mac):
			mac, ok = ether.MAC(data), true
		}
	})
	return dst, mac, ok && at == index && state&nudValid != 0 && dst.IsValid()
}

// trigger lets the host resolve a neighbour. Where this process may not ask for
// that, a datagram to the discard port has the same effect.
func (l *system) trigger(via netip.Addr) {
	m := unix.NdMsg{Family: family(via), Ifindex: int32(l.index), Flags: unix.NTF_USE}
	_, err := l.routes.ask(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_ACK, bytesOf(&m), attr{unix.NDA_DST, via.AsSlice()})
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holders {
		if h.addr.Is4() == via.Is4() && h.addr.IsLinkLocalUnicast() == via.IsLinkLocalUnicast() {
			_ = unix.Sendto(h.fd, nil, unix.MSG_DONTWAIT, sockaddr(via, discardPort, l.index))
			return
		}
	}
}

// ears hear what the host learns about neighbours.
type ears struct {
	nl   netlink
	file *os.File
	done chan struct{}
	news chan struct{} // capacity 1: something was heard
}

// hear waits until something was heard, at most for d.
func (e *ears) hear(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.news:
	case <-t.C:
	}
}

// listen starts to follow the neighbours.
func (l *system) listen() error {
	e := &l.ears
	if err := e.nl.open(unix.RTMGRP_NEIGH); err != nil {
		return err
	}
	if err := unix.SetNonblock(e.nl.fd, true); err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	e.file = os.NewFile(uintptr(e.nl.fd), "netlink")
	e.nl.fd = -1
	e.done, e.news = make(chan struct{}), make(chan struct{}, 1)
	go l.follow()
	return nil
}

func (e *ears) close() {
	e.nl.close()
	if e.file != nil {
		_ = e.file.Close()
		<-e.done
	}
}

// follow notes new addresses of neighbours until the link is closed. One that
// the host forgets keeps the last.
func (l *system) follow() {
	defer close(l.ears.done)
	for {
		n, err := l.ears.file.Read(l.ears.nl.in[:])
		switch {
		case errors.Is(err, unix.ENOBUFS):
			continue // news were lost; whoever waits asks again
		case err != nil:
			return
		}
		for _, m := range messages(l.ears.nl.in[:n]) {
			if m.typ != unix.RTM_NEWNEIGH {
				continue
			}
			if via, mac, ok := readNeighbour(m.body, l.index); ok {
				l.learn(via, mac)
			}
		}
		select {
		case l.ears.news <- struct{}{}:
		default:
		}
	}
}

func (l *system) learn(via netip.Addr, mac ether.MAC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hops {
		if h.via == via {
			h.mac = mac
		}
	}
}
