//go:build linux

package probe

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// sizeFaults limit how large a packet may be.
var sizeFaults = []fault{
	{
		name: "a black hole, IPv6", v6: true, exit: 2, want: []string{"mtu-path both fail"},
		spoil: func(x *rig) {
			x.mtu("a-r", 4200)
			x.mtu("r-q", 1400)
			x.mtu("q-b", 4200)
			x.nft(x.r, "output", "icmpv6 type packet-too-big drop")
			x.nft(x.q, "output", "icmpv6 type packet-too-big drop")
		}, look: mtus(1400, 1024, 0),
	},
	{
		name: "large packets dropped", exit: 2, want: []string{"mtu-path forward fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+b4+" ip length > 1000 drop") },
		look: func(r *probe.Result) error {
			if m := r.Forward.MTU; m.Path != 1000 || m.RoCE != 512 || m.Told != 0 {
				return fmt.Errorf("MTU %+v", m)
			}
			return nil
		},
	},
	{
		name: "large packets of one path dropped", exit: 2, want: []string{"mtu-path reverse fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+a4+" udp sport 51106 ip length > 700 drop") },
		look: func(r *probe.Result) error {
			for i, p := range r.Reverse.Paths {
				if p.MTU != []int{1500, 1500, 700, 1500}[i] {
					return fmt.Errorf("path %+v", p)
				}
			}
			return nil
		},
	},
	{
		name: "a small interface here", exit: 1, want: []string{"mtu-differs both warn", "mtu-path reverse warn"},
		spoil: func(x *rig) { x.mtu("a-r", 600); x.undo = append(x.undo, x.address6) },
	},
	{
		name: "an interface that carries no RoCE", exit: 2, want: []string{"mtu-interface both fail"},
		spoil: func(x *rig) {
			x.mtu("a-r", 300)
			x.mtu("r-q", 300)
			x.mtu("q-b", 300)
			x.undo = append(x.undo, x.address6)
		},
	},
	{
		// A router that clears don't-fragment and cuts: all arrives, and no RNIC
		// takes it.
		name: "cut on the way", exit: 2, want: []string{"icrc forward fail", "mtu-path both fail"},
		spoil: func(x *rig) {
			x.mtu("a-r", 4200)
			x.mtu("q-b", 4200)
			x.nft(x.r, "prerouting", udp+"ip daddr "+b4+" ip frag-off set 0")
		},
		look: func(r *probe.Result) error { return equal("path MTU there", r.Forward.MTU.Path, 1500) },
	},
}
