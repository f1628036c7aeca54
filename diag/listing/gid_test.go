package listing_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// A row of the GID table is usable, or the listing says why not; what is not known is
// held against nobody.
func TestGIDUsable(t *testing.T) {
	const v4 = "0000:0000:0000:0000:0000:ffff:0a00:0001" // 10.0.0.1
	type host struct {
		gid, layer, netdev string
		state              int
		netdevs            []snapshot.Netdev
	}
	eth0 := func(state string, addrs ...snapshot.Address) []snapshot.Netdev {
		return []snapshot.Netdev{{Name: "eth0", OperState: snapshot.Known(state), Addresses: addrs}}
	}
	at := func(prefix string, flags ...string) snapshot.Address {
		return snapshot.Address{Prefix: prefix, Flags: flags}
	}
	for _, tc := range []struct {
		name string
		host
		why string
	}{
		{"has the address", host{v4, "Ethernet", "eth0", 4, eth0("up", at("192.0.2.1/24"), at("10.0.0.1/24"))}, ""},
		{"has a neighbour's", host{v4, "Ethernet", "eth0", 4, eth0("up", at("10.0.0.2/24"))}, "eth0 does not have the address"},
		{"port down", host{v4, "Ethernet", "eth0", 1, eth0("up", at("10.0.0.1/24"))}, "the port is DOWN"},
		{"port in INIT", host{v4, "Ethernet", "eth0", 2, eth0("up", at("10.0.0.1/24"))}, "the port is INIT"},
		{"active, deferred", host{v4, "Ethernet", "eth0", 5, eth0("up", at("10.0.0.1/24"))}, ""},
		{"interface down", host{v4, "Ethernet", "eth0", 4, eth0("down", at("10.0.0.1/24"))}, "eth0 is down"},
		{"interface of unknown state", host{v4, "Ethernet", "eth0", 4, eth0("unknown", at("10.0.0.1/24"))}, ""},
		{"interface gone", host{v4, "Ethernet", "eth1", 4, eth0("up", at("10.0.0.1/24"))}, "there is no interface eth1"},
		{"no interface was recorded", host{v4, "Ethernet", "eth1", 4, nil}, ""},
		{"no address was recorded", host{v4, "Ethernet", "eth0", 4, eth0("up")}, ""},
		{"no interface belongs to it", host{v4, "Ethernet", "", 4, eth0("up", at("10.0.0.2/24"))}, ""},
		{"IPv6", host{"2001:0db8:0000:0000:0000:0000:0000:0001", "Ethernet", "eth0", 4, eth0("up", at("2001:db8::1/64"))}, ""},
		{"being tested for duplicates", host{"2001:0db8:0000:0000:0000:0000:0000:0001", "Ethernet", "eth0", 4, eth0("up", at("2001:db8::1/64", "tentative"))}, "duplicate address detection: tentative"},
		{"a duplicate", host{"2001:0db8:0000:0000:0000:0000:0000:0001", "Ethernet", "eth0", 4, eth0("up", at("2001:db8::1/64", "dadfailed"))}, "duplicate address detection: dadfailed"},
		{"link-local of the MAC", host{"fe80:0000:0000:0000:0000:00ff:fe00:0001", "Ethernet", "eth0", 4, eth0("up", at("10.0.0.1/24"))}, ""},
		{"InfiniBand", host{"fe80:0000:0000:0000:0000:00ff:fe00:0001", "InfiniBand", "eth0", 4, nil}, ""},
		// RFC 1122, 3.2.1.3: the whole of 127/8 is this host.
		{"another address of loopback", host{"0000:0000:0000:0000:0000:ffff:7f00:0002", "Ethernet", "eth0", 4, eth0("unknown", at("127.0.0.1/8"))}, ""},
		{"::2 is not of loopback", host{"0000:0000:0000:0000:0000:0000:0000:0002", "Ethernet", "eth0", 4, eth0("unknown", at("::1/128"))}, "eth0 does not have the address"},
	} {
		port := snapshot.Port{
			Number: 1, State: snapshot.Known(tc.state), LinkLayer: snapshot.Known(tc.layer),
			GIDs: []snapshot.GID{{Index: 0, GID: tc.gid, Netdev: snapshot.Known(tc.netdev)}},
		}
		s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "d", Ports: []snapshot.Port{port}}}, Netdevs: tc.netdevs}
		rows := listing.GIDs(s)
		if len(rows) != 1 || rows[0].Why != tc.why || rows[0].Usable != (tc.why == "") {
			t.Errorf("%s: %+v, want %q", tc.name, rows, tc.why)
		}
	}
}
