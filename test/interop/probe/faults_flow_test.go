//go:build linux

package probe

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// flowFaults lose, double, delay and overtake.
var flowFaults = []fault{
	{
		name: "a policer that counts packets", exit: 2, want: []string{"loss reverse fail"},
		spoil: func(x *rig) {
			x.nft(x.r, "forward", udp+"ip daddr "+a4+" limit rate over 60/second burst 5 packets drop")
		},
	},
	{
		name: "a policer that counts bytes", exit: 2, want: []string{"burst-loss forward fail"},
		spoil: func(x *rig) {
			// Of the large packets that look for the path MTU it drops most, when
			// they come close together.
			x.nft(x.r, "forward", udp+"ip daddr "+b4+" limit rate over 20 kbytes/second burst 2 kbytes drop")
		},
		look: func(r *probe.Result) error { return equal("path MTU", r.Forward.MTU.Path, 1500) },
	},
	{
		name: "half of it lost", exit: 2, want: []string{"loss forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" numgen random mod 2 0 drop") },
		look:  func(r *probe.Result) error { return equal("path MTU", r.Forward.MTU.Path, 1500) },
	},
	{
		name: "much lost, IPv6", v6: true, exit: 2, want: []string{"loss reverse fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+a6+" numgen random mod 10 < 7 drop") },
		look:  func(r *probe.Result) error { return equal("path MTU", r.Reverse.MTU.Path, 1500) },
	},
	{
		name: "doubled", exit: 1, want: []string{"duplication forward warn"},
		spoil: func(x *rig) { x.nftFamily("ip", x.r, "forward", udp+"ip daddr "+b4+" dup to 10.2.0.2 device right") },
	},
	{
		name: "overtaken", exit: 1, want: []string{"reordering forward warn"}, args: []string{"--burst", "0", "--timeout", "5s"},
		spoil: func(x *rig) {
			// Two of 32 small packets, 2 ms apart, wait in a class where one takes 100 ms.
			x.tc("qdisc add dev right root handle 1: htb default 1",
				"class add dev right parent 1: classid 1:1 htb rate 1gbit",
				"class add dev right parent 1: classid 1:2 htb rate 10kbit burst 100 cburst 100")
			x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip length < 200 numgen inc mod 32 < 2 meta priority set 1:2")
		},
	},
	{
		name: "asymmetric routes",
		spoil: func(x *rig) {
			// Back by a second link between the routers.
			x.second()
		},
		look: both(func(r *probe.Result) error { return equal("RoCE MTU", r.RoCEMTU, 1024) }, func(r *probe.Result) error {
			if r.Forward.Verdict != probe.Open || r.Reverse.Verdict != probe.Open {
				return fmt.Errorf("%q, %q", r.Forward.Verdict, r.Reverse.Verdict)
			}
			return nil
		}),
	},
}
