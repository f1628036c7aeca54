package ib

import (
	"fmt"
	"net/netip"
)

// GID is a global identifier: on RoCE an IPv6 address, or an IPv4 address in
// IPv4-mapped form.
type GID [16]byte

// GIDFromAddr returns the GID of an IP address. A zone is dropped.
func GIDFromAddr(a netip.Addr) GID { return GID(a.As16()) }

// Addr returns the IP address of the GID, unmapped to IPv4 where it is mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// Is4 reports whether the GID is an IPv4-mapped address.
func (g GID) Is4() bool { return netip.AddrFrom16(g).Is4In6() }

// IsZero reports whether every byte is zero: the empty table row.
func (g GID) IsZero() bool { return g == GID{} }

// IsMulticast reports whether the GID names a multicast group.
func (g GID) IsMulticast() bool { return g[0] == 0xFF || (g.Is4() && g[12]>>4 == 0xE) }

// String returns the eight groups of four digits that Linux prints.
func (g GID) String() string {
	return fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15])
}

// GIDType is the RoCE version that a GID table row speaks.
type GIDType uint8

// The types of a GID table row, with libibverbs' numbers.
const (
	GIDTypeIB     GIDType = 0 // InfiniBand; also RoCEv1 in libibverbs' old interface
	GIDTypeRoCEv1 GIDType = 1
	GIDTypeRoCEv2 GIDType = 2
)

// String returns the name that Linux shows in gid_attrs/types.
func (t GIDType) String() string {
	switch t {
	case GIDTypeIB:
		return "IB"
	case GIDTypeRoCEv1:
		return "RoCE v1"
	case GIDTypeRoCEv2:
		return "RoCE v2"
	}
	return fmt.Sprintf("GID type %d", uint8(t))
}
