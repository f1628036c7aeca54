package nft_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nft"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

// ports is a rule for UDP ports.
func ports(verdict string, r ...[2]int) snapshot.NFTRule {
	return snapshot.NFTRule{Proto: "udp", DPort: r, Verdict: verdict}
}

// ruleCase is a rule as nft takes it, and what it means; "any" in Unknown is that
// something is not understood.
type ruleCase struct {
	rule string
	want []snapshot.NFTRule
}

func one(r snapshot.NFTRule) []snapshot.NFTRule { return []snapshot.NFTRule{r} }

// also returns a rule that is for one family and some source addresses too.
func also(r snapshot.NFTRule, family string, saddr ...string) snapshot.NFTRule {
	r.Family, r.Saddr = family, saddr
	return r
}

func inetCases() []ruleCase {
	rule := func(r snapshot.NFTRule) []snapshot.NFTRule { return one(r) }
	none := snapshot.NFTRule{Verdict: "drop", Unknown: []string{"any"}}
	udp := func(r snapshot.NFTRule) []snapshot.NFTRule { r.Proto = "udp"; return one(r) }
	return []ruleCase{
		{"udp dport 4791 drop", one(ports("drop", [2]int{4791, 4791}))},
		{"udp dport 4000-5000 accept", one(ports("accept", [2]int{4000, 5000}))},
		{"udp dport { 53, 4791, 8000-8010 } reject", one(ports("reject", [2]int{53, 53}, [2]int{4791, 4791}, [2]int{8000, 8010}))},
		{"udp dport { 0-1000, 60000-65535 } drop", one(ports("drop", [2]int{0, 1000}, [2]int{60000, 65535}))},
		{"udp dport > 1023 drop", one(ports("drop", [2]int{1024, 65535}))},
		{"udp dport < 1024 drop", one(ports("drop", [2]int{0, 1023}))},
		{"udp dport != 4791 drop", one(ports("drop", [2]int{0, 4790}, [2]int{4792, 65535}))},
		{"udp dport != 4000-5000 drop", one(ports("drop", [2]int{0, 3999}, [2]int{5001, 65535}))},
		{"udp dport != { 53, 4000-5000 } drop", one(ports("drop", [2]int{0, 52}, [2]int{54, 3999}, [2]int{5001, 65535}))},
		{"udp dport > 1023 udp dport != 4791 drop", one(ports("drop", [2]int{1024, 4790}, [2]int{4792, 65535}))},
		{"udp dport @named drop", one(ports("drop", [2]int{53, 53}, [2]int{4791, 4791}))},
		{"udp dport @spans drop", one(ports("drop", [2]int{100, 200}, [2]int{4790, 4800}))},
		{"udp dport @none drop", udp(none)},
		{"udp sport 4791 accept", udp(snapshot.NFTRule{SPort: [][2]int{{4791, 4791}}, Verdict: "accept"})},
		{"ip saddr 10.1.0.0/16 drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip", "10.1.0.0/16"))},
		{"ip saddr 10.1.2.0/23 drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip", "10.1.2.0/23"))},
		{"ip saddr @nets drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip", "10.1.0.0/16", "192.168.7.0/24"))},
		{"ip saddr != 10.1.0.0/16 drop", one(also(none, "ip"))},
		{"ip daddr 10.1.2.3 tcp dport 22 accept", rule(snapshot.NFTRule{Family: "ip", Proto: "tcp", Daddr: []string{"10.1.2.3/32"}, DPort: [][2]int{{22, 22}}, Verdict: "accept"})},
		{"ip saddr 10.0.0.1-10.0.0.6 drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip", "10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32"))},
		{"ip6 saddr fd00::/8 drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip6", "fd00::/8"))},
		{"ip6 saddr { fd00::/8, 2001:db8::1 } drop", one(also(snapshot.NFTRule{Verdict: "drop"}, "ip6", "2001:db8::1/128", "fd00::/8"))},
		{"ip6 daddr fd00::5 udp dport 4791 accept", rule(snapshot.NFTRule{Family: "ip6", Proto: "udp", Daddr: []string{"fd00::5/128"}, DPort: [][2]int{{4791, 4791}}, Verdict: "accept"})},
		{"meta nfproto ipv6 udp dport 4791 drop", rule(snapshot.NFTRule{Family: "ip6", Proto: "udp", DPort: [][2]int{{4791, 4791}}, Verdict: "drop"})},
		{`iifname "eth*" drop`, rule(snapshot.NFTRule{IIF: "eth*", Verdict: "drop"})},
		{`iifname "eth0" accept`, rule(snapshot.NFTRule{IIF: "eth0", Verdict: "accept"})},
		{`iifname { "eth0", "eth1" } accept`, []snapshot.NFTRule{{IIF: "eth0", Verdict: "accept"}, {IIF: "eth1", Verdict: "accept"}}},
		{`iif "lo" accept`, rule(snapshot.NFTRule{IIF: "lo", Verdict: "accept"})},
		{`ct state established,related accept`, rule(snapshot.NFTRule{CTState: []string{"established", "related"}, Verdict: "accept"})},
		{`ct state invalid drop`, rule(snapshot.NFTRule{CTState: []string{"invalid"}, Verdict: "drop"})},
		{`ct state vmap { invalid : drop, new : accept }`, []snapshot.NFTRule{{CTState: []string{"invalid"}, Verdict: "drop"}, {CTState: []string{"new"}, Verdict: "accept"}}},
		{`meta l4proto udp drop`, udp(snapshot.NFTRule{Verdict: "drop"})},
		{`meta l4proto { tcp, udp } drop`, []snapshot.NFTRule{{Proto: "tcp", Verdict: "drop"}, {Proto: "udp", Verdict: "drop"}}},
		{`meta l4proto { tcp, udp } th dport 4791 drop`, []snapshot.NFTRule{{Proto: "tcp", DPort: [][2]int{{4791, 4791}}, Verdict: "drop"}, ports("drop", [2]int{4791, 4791})}},
		{`counter jump other`, rule(snapshot.NFTRule{Packets: snapshot.Known[uint64](0), Bytes: snapshot.Known[uint64](0), Verdict: "jump other"})},
		{`counter packets 7 bytes 900 drop`, rule(snapshot.NFTRule{Packets: snapshot.Known[uint64](7), Bytes: snapshot.Known[uint64](900), Verdict: "drop"})},
		{`ip dscp 26 drop`, rule(snapshot.NFTRule{Family: "ip", Verdict: "drop", Unknown: []string{"any"}})},
		{`udp dport vmap { 4791 : drop }`, one(ports("drop", [2]int{4791, 4791}))},
		{`udp dport vmap { 53 : accept, 4000-5000 : goto other }`, []snapshot.NFTRule{ports("accept", [2]int{53, 53}), ports("goto other", [2]int{4000, 5000})}},
		{`udp dport vmap @verdicts`, []snapshot.NFTRule{ports("accept", [2]int{53, 53}), ports("drop", [2]int{4791, 4791})}},
		{`limit rate 10/second accept`, rule(snapshot.NFTRule{Verdict: "accept", Unknown: []string{"any"}})},
		{`meta mark 5 drop`, one(none)},
		{`meta mark 5-9 drop`, one(none)},
		{`fib saddr type local drop`, one(none)},
		{`socket transparent 1 udp dport 53 drop`, one(snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{53, 53}}, Verdict: "drop", Unknown: []string{"any"}})},
		{`meta mark set udp dport map { 4791 : 1 } accept`, udp(snapshot.NFTRule{Verdict: "accept", Unknown: []string{"any"}})},
		{`ip saddr . udp dport { 10.0.0.1 . 4791, 10.0.0.2 . 53 } drop`, []snapshot.NFTRule{
			also(ports("drop", [2]int{4791, 4791}), "ip", "10.0.0.1/32"), also(ports("drop", [2]int{53, 53}), "ip", "10.0.0.2/32"),
		}},
		{`ip saddr . udp dport { 10.0.0.0/24 . 4000-5000 } drop`, one(also(ports("drop", [2]int{4000, 5000}), "ip", "10.0.0.0/24"))},
		{`ip6 saddr . udp dport vmap { fd00::1 . 4791 : drop }`, one(also(ports("drop", [2]int{4791, 4791}), "ip6", "fd00::1/128"))},
		{`iifname . udp dport { "eth0" . 4791 } drop`, one(snapshot.NFTRule{Proto: "udp", IIF: "eth0", DPort: [][2]int{{4791, 4791}}, Verdict: "drop"})},
		{`meta mark . udp dport { 5 . 4791 } drop`, one(snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{4791, 4791}}, Verdict: "drop", Unknown: []string{"any"}})},
		{`udp dport vmap { 4791 : accept, * : drop }`, []snapshot.NFTRule{ports("accept", [2]int{4791, 4791}), ports("drop", [2]int{0, 4790}, [2]int{4792, 65535})}},
	}
}

const namedSets = `
set named { type inet_service; elements = { 53, 4791 } }
set spans { type inet_service; flags interval; elements = { 100-200, 4790-4800 } }
set none { type inet_service; }
set nets { type ipv4_addr; flags interval; elements = { 10.1.0.0/16, 192.168.7.0/24 } }
map verdicts { type inet_service : verdict; elements = { 4791 : drop, 53 : accept } }
`

// ruleset reads what nft made of a text, and what nft itself lists.
func ruleset(t *testing.T, text string) (chains []snapshot.NFTChain, listed listing) {
	t.Helper()
	program, err := exec.LookPath("nft")
	if err != nil {
		need.Missing(t, "no nft program (package nftables)")
	}
	space := netns.New(t)
	var failed error
	space.Do(func() {
		cmd := exec.CommandContext(t.Context(), program, "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			failed = fmt.Errorf("nft: %w: %s", err, out)
			return
		}
		out, err := exec.CommandContext(t.Context(), program, "-j", "list", "ruleset").Output()
		if err != nil {
			failed = err
			return
		}
		if failed = json.Unmarshal(out, &listed); failed == nil {
			chains, failed = nft.Read()
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return chains, listed
}

// listing is the part of "nft -j list ruleset" that is compared.
type listing struct{ Nftables []listedItem }

type listedItem struct {
	Chain *struct {
		Family, Table, Name, Hook, Policy string
		Prio                              int
	}
	Rule *struct {
		Family, Table, Chain string
		Handle               uint64
		Expr                 []struct {
			Counter *struct{ Packets, Bytes uint64 }
		}
	}
}

// sameAsListed wants the chains, handles and counters that nft lists, in its order.
func sameAsListed(t *testing.T, chains []snapshot.NFTChain, listed listing) {
	t.Helper()
	var ours, theirs []string
	for _, c := range chains {
		ours = append(ours, fmt.Sprint("chain ", c.Family, " ", c.Table, " ", c.Name, " ", c.Hook, " ", c.Policy, " ", c.Prio))
		last := uint64(0)
		for _, r := range c.Rules {
			if r.Handle != last { // else another element of the same rule
				ours = append(ours, fmt.Sprint("rule ", c.Family, " ", c.Table, " ", c.Name, " ", r.Handle, " ", r.Packets.Or(0), " ", r.Bytes.Or(0)))
			}
			last = r.Handle
		}
	}
	for _, n := range listed.Nftables {
		if c := n.Chain; c != nil {
			theirs = append(theirs, fmt.Sprint("chain ", c.Family, " ", c.Table, " ", c.Name, " ", c.Hook, " ", c.Policy, " ", c.Prio))
		}
		if r := n.Rule; r != nil {
			var packets, bytes uint64
			for _, e := range r.Expr {
				if e.Counter != nil {
					packets, bytes = e.Counter.Packets, e.Counter.Bytes
				}
			}
			theirs = append(theirs, fmt.Sprint("rule ", r.Family, " ", r.Table, " ", r.Chain, " ", r.Handle, " ", packets, " ", bytes))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if d := cmp.Diff(theirs, ours); d != "" || len(ours) == 0 {
		t.Errorf("-nft +ours\n%s", d)
	}
}

func compareRules(t *testing.T, chains []snapshot.NFTChain, cases []ruleCase) {
	t.Helper()
	i := slices.IndexFunc(chains, func(c snapshot.NFTChain) bool { return c.Name == "input" })
	if i < 0 {
		t.Fatalf("chains %v", chains)
	}
	got := chains[i].Rules
	for _, c := range cases {
		n := 0 // rules of the same handle
		for n < len(got) && got[n].Handle == got[0].Handle {
			n++
		}
		rules := slices.Clone(got[:n])
		got = got[n:]
		for k := range rules {
			if len(c.want) > k && slices.Equal(c.want[k].Unknown, []string{"any"}) && len(rules[k].Unknown) > 0 {
				rules[k].Unknown = []string{"any"}
			}
		}
		if d := cmp.Diff(c.want, rules, cmpopts.IgnoreFields(snapshot.NFTRule{}, "Text", "Handle"), cmp.AllowUnexported(snapshot.Value[uint64]{})); d != "" {
			t.Errorf("%s (-want +got):\n%s%+v", c.rule, d, rules)
		}
	}
	if len(got) != 0 {
		t.Errorf("%d rules more", len(got))
	}
}

func text(family, head string, cases []ruleCase) string {
	var b strings.Builder
	b.WriteString("table " + family + " t {\n" + head + "chain other { }\nchain input { type filter hook input priority -5; policy drop;\n")
	for _, c := range cases {
		b.WriteString(c.rule + "\n")
	}
	return b.String() + "}\n}\n"
}

// Rules that Debian's nft made are understood as nft means them, and what nft lists is
// all there.
func TestRulesOfNFT(t *testing.T) {
	cases := inetCases()
	chains, listed := ruleset(t, text("inet", namedSets, cases))
	sameAsListed(t, chains, listed)
	compareRules(t, chains, cases)
}

// In a table of one family addresses and protocols are where that family has them.
func TestRulesOfIPv6(t *testing.T) {
	cases := []ruleCase{
		{"ip6 saddr fd00::/8 udp dport 4791 drop", one(also(ports("drop", [2]int{4791, 4791}), "", "fd00::/8"))},
		{"ip6 nexthdr udp drop", one(snapshot.NFTRule{Proto: "udp", Verdict: "drop"})},
		{"ip6 hoplimit 5 drop", one(snapshot.NFTRule{Verdict: "drop", Unknown: []string{"any"}})},
	}
	chains, listed := ruleset(t, text("ip6", "", cases)+`
table ip a { chain pre { type filter hook prerouting priority raw; }; }
table netdev n { chain in { type filter hook ingress device "lo" priority 0; udp dport 4791 drop; }; }
table bridge b { chain f { type filter hook forward priority 0; }; }
table arp x { chain in { type filter hook input priority 0; }; }
`)
	listed.Nftables = slices.DeleteFunc(listed.Nftables, func(n listedItem) bool { return n.Chain != nil && n.Chain.Family == "arp" })
	sameAsListed(t, chains, listed)
	compareRules(t, chains, cases)
	i := slices.IndexFunc(chains, func(c snapshot.NFTChain) bool { return c.Family == "netdev" })
	if i < 0 || chains[i].Dev != "lo" || len(chains[i].Rules) != 1 || !slices.Equal(chains[i].Rules[0].DPort, [][2]int{{4791, 4791}}) {
		t.Errorf("a chain of a device: %+v", chains)
	}
}
