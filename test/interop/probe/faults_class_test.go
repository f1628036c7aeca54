//go:build linux

package probe

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// classFaults change what DSCP and ECN say.
var classFaults = []fault{
	{
		name: "DSCP rewritten on the way back", exit: 1, want: []string{"dscp-rewritten reverse warn"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+a4+" ip dscp set 10") },
	},
	{
		name: "DSCP rewritten on the way there, IPv6", v6: true, exit: 1, want: []string{"dscp-rewritten forward warn"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip6 daddr "+b6+" ip6 dscp set 10") },
	},
	{
		name: "DSCP bleached both ways", exit: 1, want: []string{"dscp-rewritten both warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip dscp set cs0") },
	},
	{
		name: "the class of CNPs rewritten", exit: 1, want: []string{"dscp-rewritten forward warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip dscp 48 ip dscp set cs0") },
		look: func(r *probe.Result) error {
			return contains(r.Findings[0].Effect.What, "none for the class that was asked about (DSCP 26)")
		},
	},
	{
		name: "the whole byte of TOS cleared", exit: 1, want: []string{"dscp-rewritten forward warn", "ecn-bleached forward warn"},
		spoil: func(x *rig) {
			x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip dscp set cs0", udp+"ip daddr "+b4+" ip ecn set not-ect")
		},
	},
	{
		name: "ECN bleached on the way back, IPv6", v6: true, exit: 1, want: []string{"ecn-bleached reverse warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+a6+" ip6 ecn set not-ect") },
	},
	{
		name: "CE set on everything on the way back, IPv6", v6: true, exit: 1, want: []string{"ecn-always-marked reverse warn"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip6 daddr "+a6+" ip6 ecn set ce") },
	},
	{
		name: "CE set on every third", spoil: func(x *rig) {
			x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip ecn ect0 numgen inc mod 3 0 ip ecn set ce")
		},
		look: func(r *probe.Result) error {
			if m := r.Forward.Marked; m.Part < 30 || m.Part > 36 || len(r.Notes) != 1 {
				return fmt.Errorf("marked %+v, notes %q", m, r.Notes)
			}
			return nil
		},
	},
	{
		name: "ECT(0) made ECT(1)", exit: 1, want: []string{"ecn-changed reverse warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+a4+" ip ecn ect0 ip ecn set ect1") },
	},
	{
		name: "Not-ECT made ECT(0)", exit: 1, want: []string{"ecn-changed forward warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip ecn not-ect ip ecn set ect0") },
	},
	{
		name: "the class of RoCE dropped", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip dscp 26 drop") },
	},
	{
		name: "one class dropped, IPv6, and some paths dead", v6: true, exit: 2, want: []string{"dscp-dropped reverse fail", "path-blocked reverse fail"},
		args: []string{"--paths", "8"},
		spoil: func(x *rig) {
			x.nft(x.r, "forward", udp+"ip6 daddr "+a6+" ip6 dscp 46 drop", udp+"ip6 daddr "+a6+" udp sport 49152-52084 drop")
		},
	},
}
