package verbs

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
)

// GIDEntry is a row of the GID table. Rows stand as Linux orders them: the
// link-local default GID first where the interface has it, then the other
// addresses in the order of the interface. A link that sends one RoCE version
// has one row for an address.
type GIDEntry struct {
	Index    int
	GID      ib.GID
	Type     ib.GIDType
	Addr     netip.Addr // link-local ones with their zone
	Netdev   string
	IfIndex  int
	Unusable string // why the row cannot be used; empty if it can
}

// SelectGID returns the row from which peer is reached best, by the rule of the
// package's [SelectGID], with the source address that the host's routing would
// use. A peer that is link-local needs its zone if there are several
// interfaces.
func (d *Device) SelectGID(peer netip.Addr) (int, error) {
	i, err := SelectGID(d.gids, peer, routeSource(peer))
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", d.name, err)
	}
	return i, nil
}

// SelectGID is the one rule by which Verbena picks a row of a GID table for a
// peer. A row qualifies if it is usable, is of the peer's address family, and
// is link-local exactly if the peer is (with the peer's zone, if it names one).
// Among those that qualify, the first difference decides:
//
//  1. the address is source, the one that the host's routing would send from
//     (invalid if unknown);
//  2. RoCE v2 before v1;
//  3. the lower index.
//
// Prefixes, private or not, and index numbers mean nothing to it. The error
// matches ErrNoGID and says of each row why it does not qualify.
func SelectGID(rows []GIDEntry, peer, source netip.Addr) (int, error) {
	peer, source = peer.Unmap(), source.Unmap()
	if !peer.IsValid() {
		return 0, errorf(ErrNoGID, "select a GID: the peer's address is missing")
	}
	best := -1
	var whyNot []string
	for i := range rows {
		if why := rows[i].unfit(peer); why != "" {
			whyNot = append(whyNot, fmt.Sprintf("row %d (%v, %v): %s", i, rows[i].Addr, rows[i].Type, why))
			continue
		}
		if best < 0 || rows[i].before(&rows[best], source) {
			best = i
		}
	}
	if best >= 0 {
		return best, nil
	}
	if len(rows) == 0 {
		whyNot = []string{"the table is empty"}
	}
	return 0, errorf(ErrNoGID, "select a GID for peer %v: no row qualifies: %s", peer, strings.Join(whyNot, "; "))
}

// unfit says why peer is not reached from the row.
func (g *GIDEntry) unfit(peer netip.Addr) string {
	a := g.Addr.Unmap()
	switch {
	case g.Unusable != "":
		return g.Unusable
	case a.Is4() != peer.Is4():
		return fmt.Sprintf("it is %s, the peer %s", family(a), family(peer))
	case a.IsLinkLocalUnicast() && !peer.IsLinkLocalUnicast():
		return "a link-local address reaches only link-local peers"
	case !a.IsLinkLocalUnicast() && peer.IsLinkLocalUnicast():
		return "a link-local peer is reached from a link-local address"
	case peer.Zone() != "" && a.Zone() != "" && peer.Zone() != a.Zone():
		return fmt.Sprintf("it is on %s, the peer on %s", a.Zone(), peer.Zone())
	}
	return ""
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// before reports whether g is better than h; both qualify, and h has the lower
// index.
func (g *GIDEntry) before(h *GIDEntry, source netip.Addr) bool {
	gs := g.Addr.Unmap().WithZone("") == source.WithZone("")
	hs := h.Addr.Unmap().WithZone("") == source.WithZone("")
	if gs != hs {
		return gs
	}
	return g.Type == ib.GIDTypeRoCEv2 && h.Type != ib.GIDTypeRoCEv2
}

// defaultRow returns the row for peers of whom nothing is known: the first
// usable one, IPv4 before IPv6, link-local last.
func defaultRow(rows []GIDEntry) (int, error) {
	best, bestRank := -1, 3
	for i := range rows {
		a := rows[i].Addr.Unmap()
		rank := 1
		switch {
		case rows[i].Unusable != "":
			continue
		case a.IsLinkLocalUnicast():
			rank = 2
		case a.Is4():
			rank = 0
		}
		if rank < bestRank {
			best, bestRank = i, rank
		}
	}
	if best < 0 {
		return 0, errorf(ErrNoGID, "none of the %d rows of the GID table is usable", len(rows))
	}
	return best, nil
}

// routeSource returns the address that the host's routing would send from, or
// an invalid one. No packet is sent.
func routeSource(peer netip.Addr) netip.Addr {
	if !peer.IsValid() {
		return netip.Addr{}
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, DefaultPort)))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// gidTable makes the rows for the addresses of a device, in Linux' order.
func gidTable(addrs []ifAddr, encap frame.Encap) []GIDEntry {
	types := []ib.GIDType{ib.GIDTypeRoCEv2}
	if encap == frame.Ethernet {
		types = []ib.GIDType{ib.GIDTypeRoCEv1, ib.GIDTypeRoCEv2}
	}
	var rows []GIDEntry
	add := func(a ifAddr) {
		for _, t := range types {
			rows = append(rows, GIDEntry{
				Index: len(rows), GID: ib.GIDFromAddr(a.addr), Type: t, Addr: a.addr,
				Netdev: a.netdev, IfIndex: a.ifIndex, Unusable: a.unusable,
			})
		}
	}
	def := -1
	for i, a := range addrs {
		if a.isDefaultGID() {
			def = i
			add(a)
			break
		}
	}
	for i, a := range addrs {
		if i != def {
			add(a)
		}
	}
	return rows
}

func adapterGIDs(rows []GIDEntry) []rnic.GIDEntry {
	out := make([]rnic.GIDEntry, len(rows))
	for i, r := range rows {
		out[i] = rnic.GIDEntry{GID: r.GID, Type: r.Type, Netdev: r.Netdev, IfIndex: r.IfIndex, Unusable: r.Unusable}
	}
	return out
}
