package verbs

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
)

// table makes GID rows from words: an address with an optional zone, "v1 "
// before it for RoCE v1, "!" before it for unusable.
func table(words ...string) []GIDEntry {
	var rows []GIDEntry
	for i, w := range words {
		g := GIDEntry{Index: i, Type: ib.GIDTypeRoCEv2}
		if rest, ok := strings.CutPrefix(w, "!"); ok {
			g.Unusable, w = "it is broken", rest
		}
		if rest, ok := strings.CutPrefix(w, "v1 "); ok {
			g.Type, w = ib.GIDTypeRoCEv1, rest
		}
		g.Addr = netip.MustParseAddr(w)
		g.GID = ib.GIDFromAddr(g.Addr)
		rows = append(rows, g)
	}
	return rows
}

// Each row is a host on which users' own ways to pick an index went wrong.
func TestSelectGID(t *testing.T) {
	// The usual table of an RNIC with one IPv4 address, as Linux fills it.
	usual := table("v1 fe80::1%eth0", "fe80::1%eth0", "v1 10.0.0.1", "10.0.0.1")
	for _, c := range []struct {
		name   string
		rows   []GIDEntry
		peer   string
		source string
		want   int // -1: none
	}{
		{"index 0 is a link-local that nothing can be sent from", table("!fe80::1%eth0", "10.0.0.1"), "10.0.0.2", "10.0.0.1", 1},
		{"index 0 is a good link-local, the peer is IPv4", table("fe80::1%eth0", "10.0.0.1"), "10.0.0.2", "10.0.0.1", 1},
		{"link-local peer", table("fe80::1%eth0", "10.0.0.1", "fd00::1"), "fe80::2%eth0", "fe80::1%eth0", 0},
		{"link-local peer without a zone", table("fe80::1%eth0", "10.0.0.1"), "fe80::2", "", 0},
		{"link-local peer on another interface", table("fe80::1%eth0", "fe80::1%eth1"), "fe80::2%eth1", "", 1},
		{"link-local peer on an interface that is not ours", table("fe80::1%eth0"), "fe80::2%eth9", "", -1},
		{"the usual table: index 3", usual, "10.0.0.2", "10.0.0.1", 3},
		{"no IPv6 at all: index 1, not 3", table("v1 10.0.0.1", "10.0.0.1"), "10.0.0.2", "10.0.0.1", 1},
		{"more IPv6 rows: index 5, not 3", table("v1 fe80::1%eth0", "fe80::1%eth0", "v1 fd00::1", "fd00::1", "v1 10.0.0.1", "10.0.0.1"), "10.0.0.2", "10.0.0.1", 5},
		{"IPv6 only", table("v1 fe80::1%eth0", "fe80::1%eth0", "v1 fd00::1", "fd00::1"), "fd00::2", "fd00::1", 3},
		{"IPv6 only, IPv4 peer", table("fe80::1%eth0", "fd00::1"), "10.0.0.2", "", -1},
		{"IPv4 only, IPv6 peer", table("10.0.0.1"), "fd00::2", "", -1},
		{"10/8 is as good as any", table("192.0.2.1", "10.0.0.1"), "10.0.0.2", "10.0.0.1", 1},
		{"… and no better", table("10.0.0.1", "192.0.2.1"), "192.0.2.9", "192.0.2.1", 1},
		{"172.17/16 is no overlay", table("172.17.0.1", "192.0.2.1"), "172.17.0.2", "172.17.0.1", 0},
		{"the route's source wins over the index", table("10.0.0.1", "10.1.0.1"), "10.1.0.2", "10.1.0.1", 1},
		{"… and over the RoCE version", table("10.0.0.1", "v1 10.1.0.1"), "10.1.0.2", "10.1.0.1", 1},
		{"RoCE v2 over v1 of the same address", table("v1 10.0.0.1", "10.0.0.1"), "10.0.0.2", "", 1},
		{"only RoCE v1", table("v1 10.0.0.1"), "10.0.0.2", "10.0.0.1", 0},
		{"route unknown: the lowest index", table("10.0.0.1", "10.1.0.1"), "10.1.0.2", "", 0},
		{"source is no row", table("127.0.0.2"), "127.0.0.1", "127.0.0.1", 0},
		{"peer in IPv4-mapped form", table("fd00::1", "10.0.0.1"), "::ffff:10.0.0.2", "::ffff:10.0.0.1", 1},
		{"all rows broken", table("!10.0.0.1", "!fd00::1"), "10.0.0.2", "10.0.0.1", -1},
		{"empty table", nil, "10.0.0.2", "10.0.0.1", -1},
		{"two global IPv6 addresses", table("fe80::1%eth0", "fd00::1", "fd01::1"), "fd01::2", "fd01::1", 2},
		{"loopback", table("::1"), "::1", "::1", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var source netip.Addr
			if c.source != "" {
				source = netip.MustParseAddr(c.source)
			}
			got, err := SelectGID(c.rows, netip.MustParseAddr(c.peer), source)
			if c.want < 0 {
				if !errors.Is(err, ErrNoGID) || !strings.Contains(err.Error(), c.peer) {
					t.Errorf("%d, %v", got, err)
				}
				t.Log(err)
				return
			}
			if err != nil || got != c.want {
				t.Errorf("row %d, %v; want row %d", got, err, c.want)
			}
		})
	}
	if _, err := SelectGID(usual, netip.Addr{}, netip.Addr{}); !errors.Is(err, ErrNoGID) {
		t.Errorf("no peer: %v", err)
	}
}

func TestDefaultRow(t *testing.T) {
	for _, c := range []struct {
		rows []GIDEntry
		want int
	}{
		{table("fe80::1%eth0", "fd00::1", "10.0.0.1"), 2},
		{table("fe80::1%eth0", "fd00::1", "!10.0.0.1"), 1},
		{table("fe80::1%eth0", "!fd00::1"), 0},
		{table("!fe80::1%eth0"), -1},
	} {
		got, err := defaultRow(c.rows)
		if (err != nil) != (c.want < 0) || (err == nil && got != c.want) {
			t.Errorf("%v: row %d, %v; want %d", c.rows, got, err, c.want)
		}
	}
}

// Rows stand as in Linux: the default GID first if the interface has it, then
// the addresses in order, each once for a RoCE version that the link sends.
func TestGIDTable(t *testing.T) {
	mac := net.HardwareAddr{2, 0xFC, 0, 0, 0, 1}
	addr := func(s string) ifAddr {
		return ifAddr{addr: netip.MustParseAddr(s), netdev: "eth0", ifIndex: 7, mac: mac}
	}
	eui := addr("fe80::fc:ff:fe00:1%eth0")
	bad := addr("fd00::9")
	bad.unusable = "the address is tentative"
	rows := gidTable([]ifAddr{addr("192.0.2.2"), bad, addr("fe80::5%eth0"), eui, addr("192.0.2.3")}, frame.UDPPayload)
	want := []string{"fe80::fc:ff:fe00:1%eth0", "192.0.2.2", "fd00::9", "fe80::5%eth0", "192.0.2.3"}
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		if r.Index != i || r.Addr.String() != want[i] || r.Type != ib.GIDTypeRoCEv2 || r.Netdev != "eth0" || r.IfIndex != 7 ||
			(r.Unusable != "") != (i == 2) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if got := rows[1].GID.String(); got != "0000:0000:0000:0000:0000:ffff:c000:0202" {
		t.Errorf("GID of 192.0.2.2: %s", got)
	}
	if got := rows[0].GID.String(); got != "fe80:0000:0000:0000:0000:00ff:fe00:0001" && got != "fe80:0000:0000:0000:00fc:00ff:fe00:0001" {
		t.Errorf("default GID: %s", got)
	}
	if rows := gidTable([]ifAddr{addr("192.0.2.2")}, frame.Ethernet); len(rows) != 2 || rows[0].Type != ib.GIDTypeRoCEv1 || rows[1].Type != ib.GIDTypeRoCEv2 {
		t.Errorf("a link of both versions: %+v", rows)
	}
}

func TestOwner(t *testing.T) {
	lo := netif{name: "lo", loop: true, addrs: []ifAddr{{addr: netip.MustParseAddr("127.0.0.1"), bits: 8}, {addr: netip.IPv6Loopback(), bits: 128}}}
	eth := netif{name: "eth0", addrs: []ifAddr{{addr: netip.MustParseAddr("192.0.2.2"), bits: 24}, {addr: netip.MustParseAddr("fe80::1%eth0"), bits: 64}}}
	ifs := []netif{lo, eth}
	for addr, want := range map[string]string{
		"127.0.0.1": "lo", "127.0.0.2": "lo", "127.9.9.9": "lo", "::1": "lo", "192.0.2.2": "eth0", "::ffff:192.0.2.2": "eth0",
		"192.0.2.3": "", "fe80::1%eth0": "eth0", "fe80::1%eth1": "", "fe80::1": "", "fd00::1": "",
	} {
		n, a, ok := owner(ifs, netip.MustParseAddr(addr))
		if ok != (want != "") || (ok && (n.name != want || a.addr != netip.MustParseAddr(addr).Unmap())) {
			t.Errorf("%s: %v, %v", addr, n, ok)
		}
	}
}

// The list says why there is no device, interface by interface.
func TestListDevices(t *testing.T) {
	bad := ifAddr{addr: netip.MustParseAddr("fd00::1"), unusable: "duplicate"}
	good := ifAddr{addr: netip.MustParseAddr("192.0.2.2")}
	got := listDevices([]netif{
		{name: "down0", addrs: []ifAddr{good}},
		{name: "bare0", up: true},
		{name: "dup0", up: true, addrs: []ifAddr{bad}},
		{name: "eth0", up: true, mtu: 1500, addrs: []ifAddr{bad, good}},
	})
	want := []struct{ name, why string }{
		{"vrb_eth0", ""}, {"vrb_down0", "is down"}, {"vrb_bare0", "no IP address"}, {"vrb_dup0", "fd00::1: duplicate"},
	}
	for i, w := range want {
		if got[i].Name != w.name || (w.why == "") != (got[i].Why == "") || !strings.Contains(got[i].Why, w.why) {
			t.Errorf("%d: %+v, want %v", i, got[i], w)
		}
	}
	if len(got[0].Addrs) != 1 || got[0].MTU != 1500 {
		t.Errorf("%+v", got[0])
	}
	real, err := ListDevices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range real {
		t.Logf("%+v", d)
	}
}
