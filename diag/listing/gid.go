package listing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// GIDRow is a row of a GID table with our judgement.
type GIDRow struct {
	Device  string `json:"device"`
	Port    int    `json:"port"`
	Index   int    `json:"index"`
	GID     string `json:"gid"`
	Address string `json:"address"` // as inet_ntop
	Type    string `json:"type"`    // IB/RoCE v1, RoCE v2
	Netdev  string `json:"netdev"`
	Usable  bool   `json:"usable"`
	Why     string `json:"why_not,omitempty"`
}

// GIDs returns the rows of all tables in the order of device, port and index, as
// numbers. A row is usable if its interface is there, up, and has the row's address.
func GIDs(s *snapshot.Snapshot) []GIDRow {
	rows := []GIDRow{}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			for _, g := range p.GIDs {
				r := GIDRow{Device: d.Name, Port: p.Number, Index: g.Index, GID: g.GID, Address: GIDText(g.GID), Type: g.Type.Or(""), Netdev: g.Netdev.Or("")}
				r.Why = unusable(s, p, &r)
				r.Usable = r.Why == ""
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// unusable says why a row cannot be used, as far as the snapshot tells.
func unusable(s *snapshot.Snapshot, p *snapshot.Port, r *GIDRow) string {
	if state, ok := p.State.Get(); ok && state != 4 && state != 5 {
		return "the port is " + wordOf(portStates, state)
	}
	if p.LinkLayer.Or("Ethernet") != "Ethernet" || r.Netdev == "" {
		return ""
	}
	n := s.Netdev(r.Netdev)
	if n == nil {
		if len(s.Netdevs) == 0 {
			return ""
		}
		return "there is no interface " + r.Netdev
	}
	if n.OperState.Or("up") == "down" {
		return r.Netdev + " is down"
	}
	addr, err := netip.ParseAddr(r.GID)
	if err != nil || len(n.Addresses) == 0 {
		return ""
	}
	for _, a := range n.Addresses {
		p, err := netip.ParsePrefix(a.Prefix)
		if err != nil || p.Addr().Unmap() != addr.Unmap() && !loopback(p, addr.Unmap()) {
			continue
		}
		for _, f := range a.Flags {
			if f == "tentative" || f == "dadfailed" {
				return "duplicate address detection: " + f
			}
		}
		return ""
	}
	if addr.IsLinkLocalUnicast() {
		return "" // devices have one of their own MAC beside the interface's
	}
	return r.Netdev + " does not have the address"
}

// loopback reports whether addr is of this host since p is: the whole of
// 127.0.0.0/8 is, where an interface has one address of it.
func loopback(p netip.Prefix, addr netip.Addr) bool {
	return p.Addr().IsLoopback() && p.Contains(addr)
}

// GIDFilter are the device and the port that a listing of GID tables is about.
type GIDFilter struct {
	Device string // empty for all
	Port   int    // with a device; 0 for all
}

// Rows returns the rows of GIDs that the filter lets through. What the snapshot does not
// have is an error beside no rows.
func (f GIDFilter) Rows(s *snapshot.Snapshot) ([]GIDRow, error) {
	rows := GIDs(s)
	if f.Device == "" {
		return rows, nil
	}
	d := s.Device(f.Device)
	if d == nil {
		return rows[:0], fail(0, "there is no device %s", f.Device)
	}
	if f.Port != 0 && port(d, f.Port) == nil {
		return rows[:0], fail(0, "%s has no port %d", f.Device, f.Port)
	}
	return slices.DeleteFunc(rows, func(r GIDRow) bool { return r.Device != f.Device || f.Port != 0 && r.Port != f.Port }), nil
}

// ShowGIDs is show_gids [DEV [PORT]], with the rows in the order of their numbers. As
// there, a device that is not there has no rows: what is printed is complete beside the
// error, whose status is 0.
func ShowGIDs(s *snapshot.Snapshot, f GIDFilter) ([]byte, error) {
	b := []byte("DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n")
	rows, err := f.Rows(s)
	for _, r := range rows {
		ip4 := "\t"
		if addr, err := netip.ParseAddr(r.GID); err == nil && strings.HasPrefix(r.GID, "0000:") {
			raw := addr.As16()
			ip4 = netip.AddrFrom4([4]byte(raw[12:])).String() + "  " // one more tab follows than without
		}
		b = fmt.Appendf(b, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.Device, r.Port, r.Index, r.GID, ip4, Version(r.Type), r.Netdev)
	}
	return fmt.Appendf(b, "n_gids_found=%d\n", len(rows)), err
}

// Version is v1 or v2.
func Version(kind string) string {
	if i := strings.LastIndexByte(kind, 'v'); i >= 0 {
		return kind[i:]
	}
	return kind
}
