package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Route is the way to a peer.
type Route struct {
	Dst      netip.AddrPort
	Src      netip.Addr
	GID      ib.GID // the peer's
	GIDIndex int    // the local row from which the peer is reached
	MTU      ib.MTU // of this end's port
}

// AV returns the address vector of the route.
func (r Route) AV() ib.AV { return ib.AV{DGID: r.GID, SGIDIndex: r.GIDIndex} }

func (r Route) peer(o *Options) cm.Peer {
	return cm.Peer{GID: r.GID, GIDIndex: r.GIDIndex, TrafficClass: o.TOS, SL: o.SL}
}

// Resolve finds the way to a host and port, "host:port" as package net writes
// it; the host may be a name, the port a service name. Of several addresses the
// first that the device reaches is taken. The error matches
// [verbs.ErrNoGID] or [verbs.ErrPath] where there is no way.
func (m *Manager) Resolve(ctx context.Context, address string) (Route, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return Route{}, fmt.Errorf("resolve %q: %w", address, err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		n, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
		if err != nil {
			return Route{}, fmt.Errorf("resolve %q: %w", address, err)
		}
		port = uint64(n)
	}
	var addrs []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{a}
	} else if addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return Route{}, fmt.Errorf("resolve %q: %w", address, err)
	}
	for _, a := range addrs {
		r, e := m.RouteTo(netip.AddrPortFrom(a.Unmap(), uint16(port)))
		if e == nil {
			return r, nil
		}
		if err == nil {
			err = e
		}
	}
	return Route{}, fmt.Errorf("resolve %q: %w", address, err)
}

// RouteTo is Resolve for an address.
func (m *Manager) RouteTo(dst netip.AddrPort) (Route, error) {
	row, err := m.dev.SelectGID(dst.Addr())
	if err != nil {
		return Route{}, err
	}
	r := Route{
		Dst: dst, GIDIndex: row, GID: ib.GIDFromAddr(dst.Addr()), Src: m.rows[row].Addr, MTU: m.mtu,
	}
	if err := m.gsi.Reach(verbs.GSIPeer{GID: r.GID, GIDIndex: row, QPN: ib.QPGSI}); err != nil {
		return Route{}, err
	}
	return r, nil
}
