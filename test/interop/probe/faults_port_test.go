//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// portFaults close the port, or a part of it, at every place of the way.
var portFaults = []fault{
	{
		name: "dropped on the way back, IPv6", v6: true, exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip6 daddr "+a6+" drop") },
		look:  verdicts(probe.Open, "", probe.Blocked, "network"),
	},
	{
		name: "rejected by a router as a port that is not there", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+a4+" reject with icmpx type port-unreachable") },
		look:  both(verdicts(probe.Open, "", probe.Blocked, "network"), why(reverse, "port unreachable", "10.3.0.2")),
	},
	{
		name: "rejected by a router as a port that is not there, IPv6", v6: true, exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+b6+" reject with icmpx type port-unreachable") },
		look:  both(verdicts(probe.Blocked, "network", probe.Open, ""), why(forward, "port unreachable", "fd01::2")),
	},
	{
		name: "rejected by the far host", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.b, "input", udp+"reject") },
		look:  verdicts(probe.Blocked, "receiver", probe.Open, ""),
	},
	{
		name: "rejected by this host, IPv6", v6: true, exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.a, "input", udp+"reject with icmpx type admin-prohibited") },
		look:  verdicts(probe.Open, "", probe.Blocked, "receiver"),
	},
	{
		name: "rejected at the way out of this host", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.a, "output", udp+"reject with icmpx type admin-prohibited") },
		look:  verdicts(probe.Blocked, "sender", probe.Open, ""),
	},
	{
		name: "rejected at the way out of the far host, IPv6", v6: true, exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.b, "output", udp+"reject with icmpx type port-unreachable") },
		look:  verdicts(probe.Open, "", probe.Blocked, "sender"),
	},
	{
		name: "no route back for UDP 4791", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) {
			x.q.Run("ip rule add ipproto udp dport 4791 to 10.1.0.0/24 unreachable pref 10")
			x.undo = append(x.undo, func() { x.q.Run("ip rule del pref 10") })
		},
		look: both(verdicts(probe.Open, "", probe.Blocked, "network"), why(reverse, "unreachable", "10.3.0.2")),
	},
	{
		name: "no route here for UDP 4791", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) {
			x.a.Run("ip rule add ipproto udp dport 4791 prohibit pref 10")
			x.undo = append(x.undo, func() { x.a.Run("ip rule del pref 10") })
		},
		look: verdicts(probe.Blocked, "sender", probe.Open, ""),
	},
	{
		name: "a reverse-path filter", exit: 2, want: []string{"port-blocked both fail"},
		spoil: func(x *rig) {
			// The far host would answer by another interface.
			x.b.Run("ip link add d0 type veth peer name d1", "ip link set d0 up", "ip link set d1 up", "ip rule add ipproto udp to "+a4+" lookup 77 pref 10",
				"ip route add 10.1.0.0/24 dev d0 table 77", "sysctl -qw net.ipv4.conf.e0.rp_filter=1")
			x.undo = append(x.undo, func() {
				x.b.Run("ip rule del pref 10", "ip link del d0", "sysctl -qw net.ipv4.conf.e0.rp_filter=0")
			})
		},
		// Nobody answers ARP on d0: the far host's kernel may say so before the probe ends.
		look: both(func(r *probe.Result) error {
			if r.Reverse.Where == "sender" {
				return both(verdicts(probe.Blocked, "receiver", probe.Blocked, "sender"), why(reverse, "host unreachable"))(r)
			}
			return verdicts(probe.Blocked, "receiver", probe.Blocked, "network")(r)
		}, why(forward, "reverse-path filter")),
	},
	{
		name: "half of the source ports dropped", exit: 2, want: []string{"path-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" udp sport 49152-50200 drop") },
		look: func(r *probe.Result) error {
			for i, p := range r.Forward.Paths {
				if (p.Seen == 0) != (i < 2) || p.MTU != []int{0, 0, 1500, 1500}[i] {
					return fmt.Errorf("path %+v", p)
				}
			}
			return verdicts(probe.Partly, "", probe.Open, "")(r)
		},
	},
	{
		name: "half of the source ports dropped on the way back, IPv6", v6: true, exit: 2, want: []string{"path-blocked reverse fail"},
		args:  []string{"--paths", "8"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+a6+" udp sport 49152-53059 drop") },
		look:  verdicts(probe.Open, "", probe.Partly, ""),
	},
	{
		name: "some source ports rejected", exit: 2, want: []string{"path-blocked forward fail"},
		spoil: func(x *rig) {
			x.nft(x.q, "forward", udp+"ip daddr "+b4+" udp sport 49152 reject with icmpx type admin-prohibited")
		},
		look: verdicts(probe.Partly, "network", probe.Open, ""),
	},
	{
		// Only what answers something that went out before may come in: packets of
		// RoCE the other way have the same destination port and are a new flow.
		name: "a stateful firewall", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) {
			x.nft(x.r, "forward", "ct state established,related accept", "ip saddr "+a4+" accept", "drop")
		},
		look: verdicts(probe.Open, "", probe.Blocked, "network"),
	},
	{
		name: "a firewall without state", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) {
			x.nft(x.r, "forward", "ip saddr "+a4+" accept", "tcp flags & ack == ack accept", "icmp type destination-unreachable accept", "drop")
		},
		look: verdicts(probe.Open, "", probe.Blocked, "network"),
	},
	{
		name: "everything translated", exit: 2, want: []string{"address-translated both fail"},
		spoil: func(x *rig) { x.nft(x.r, "postrouting", "ip saddr "+a4+" masquerade") },
	},
	{
		name: "everything translated, IPv6", v6: true, exit: 2, want: []string{"address-translated both fail"},
		spoil: func(x *rig) { x.nft(x.r, "postrouting", "ip6 saddr "+a6+" oifname right masquerade") },
	},
	{
		name: "translated, IPv6", v6: true, exit: 2, want: []string{"address-translated reverse fail"},
		spoil: func(x *rig) { x.nft(x.q, "postrouting", udp+"ip6 saddr "+b6+" masquerade") },
	},
	{
		name: "source ports translated", exit: 2, want: []string{"icrc forward fail"},
		spoil: func(x *rig) {
			x.nft(x.r, "postrouting", udp+"ip saddr "+a4+" snat ip to "+a4+":52000-52999")
		},
	},
}

func forward(r *probe.Result) *probe.Direction { return &r.Forward }
func reverse(r *probe.Result) *probe.Direction { return &r.Reverse }

// why looks for words in the reason of a verdict.
func why(of func(*probe.Result) *probe.Direction, words ...string) func(*probe.Result) error {
	return func(r *probe.Result) error {
		d := of(r)
		if i := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(d.Why, w) }); i >= 0 {
			return fmt.Errorf("%q does not say %q", d.Why, words[i])
		}
		return nil
	}
}
