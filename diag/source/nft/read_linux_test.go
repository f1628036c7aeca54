package nft_test

import (
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

// Rules that Debian's nft made are understood as nft means them.
func TestRulesOfNFT(t *testing.T) {
	program, err := exec.LookPath("nft")
	if err != nil {
		need.Missing(t, "no nft program (package nftables)")
	}
	cases := []struct {
		rule string
		want snapshot.NFTRule
	}{
		{"udp dport 4791 drop", snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{4791, 4791}}, Verdict: "drop"}},
		{"udp dport 4000-5000 accept", snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{4000, 5000}}, Verdict: "accept"}},
		{"udp dport { 53, 4791, 8000-8010 } reject", snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{53, 53}, {4791, 4791}, {8000, 8010}}, Verdict: "reject"}},
		{"udp dport > 1023 drop", snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{1024, 65535}}, Verdict: "drop"}},
		{"udp dport < 1024 drop", snapshot.NFTRule{Proto: "udp", DPort: [][2]int{{0, 1023}}, Verdict: "drop"}},
		{"udp sport 4791 accept", snapshot.NFTRule{Proto: "udp", SPort: [][2]int{{4791, 4791}}, Verdict: "accept"}},
		{"ip saddr 10.1.0.0/16 drop", snapshot.NFTRule{Saddr: []string{"10.1.0.0/16"}, Verdict: "drop"}},
		{"ip saddr 10.1.2.0/23 drop", snapshot.NFTRule{Saddr: []string{"10.1.2.0/23"}, Verdict: "drop"}},
		{"ip daddr 10.1.2.3 tcp dport 22 accept", snapshot.NFTRule{Proto: "tcp", Daddr: []string{"10.1.2.3/32"}, DPort: [][2]int{{22, 22}}, Verdict: "accept"}},
		{"ip saddr 10.0.0.1-10.0.0.6 drop", snapshot.NFTRule{Saddr: []string{"10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32"}, Verdict: "drop"}},
		{"ip6 saddr fd00::/8 drop", snapshot.NFTRule{Saddr: []string{"fd00::/8"}, Verdict: "drop"}},
		{"ip6 daddr fd00::5 udp dport 4791 accept", snapshot.NFTRule{Proto: "udp", Daddr: []string{"fd00::5/128"}, DPort: [][2]int{{4791, 4791}}, Verdict: "accept"}},
		{`iifname "eth*" drop`, snapshot.NFTRule{IIF: "eth*", Verdict: "drop"}},
		{`iifname "eth0" accept`, snapshot.NFTRule{IIF: "eth0", Verdict: "accept"}},
		{`iif "lo" accept`, snapshot.NFTRule{IIF: "lo", Verdict: "accept"}},
		{`ct state established,related accept`, snapshot.NFTRule{CTState: []string{"established", "related"}, Verdict: "accept"}},
		{`ct state invalid drop`, snapshot.NFTRule{CTState: []string{"invalid"}, Verdict: "drop"}},
		{`meta l4proto udp drop`, snapshot.NFTRule{Proto: "udp", Verdict: "drop"}},
		{`counter jump other`, snapshot.NFTRule{Packets: snapshot.Known[uint64](0), Bytes: snapshot.Known[uint64](0), Verdict: "jump other"}},
		{`udp dport != 4791 drop`, snapshot.NFTRule{Proto: "udp", Unknown: []string{"dport != 4791"}, Verdict: "drop"}},
		{`ip dscp 26 drop`, snapshot.NFTRule{Verdict: "drop", Unknown: []string{"any"}}},
		{`udp dport vmap { 4791 : drop }`, snapshot.NFTRule{Proto: "udp", Unknown: []string{"any"}}},
		{`limit rate 10/second accept`, snapshot.NFTRule{Verdict: "accept", Unknown: []string{"any"}}},
		{`meta mark 5 drop`, snapshot.NFTRule{Verdict: "drop", Unknown: []string{"any"}}},
		{`ip saddr . udp dport { 10.0.0.1 . 4791 } drop`, snapshot.NFTRule{Verdict: "drop", Proto: "udp", Unknown: []string{"any"}}},
	}
	var b strings.Builder
	b.WriteString("table inet t {\nchain other { }\nchain input { type filter hook input priority -5; policy drop;\n")
	for _, c := range cases {
		b.WriteString(c.rule + "\n")
	}
	b.WriteString("}\n}\n")
	space := netns.New(t)
	var chains []snapshot.NFTChain
	var failed error
	space.Do(func() {
		cmd := exec.CommandContext(t.Context(), program, "-f", "-")
		cmd.Stdin = strings.NewReader(b.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			failed = fmt.Errorf("nft: %w: %s", err, out)
			return
		}
		chains, failed = nft.Read()
	})
	if failed != nil {
		t.Fatal(failed)
	}
	i := slices.IndexFunc(chains, func(c snapshot.NFTChain) bool { return c.Name == "input" })
	if i < 0 || len(chains) != 2 {
		t.Fatalf("chains %v", chains)
	}
	c := chains[i]
	if c.Family != "inet" || c.Hook != "input" || c.Prio != -5 || c.Policy != "drop" || len(c.Rules) != len(cases) {
		t.Fatalf("chain %+v", c)
	}
	for k, rule := range c.Rules {
		want := cases[k].want
		if len(want.Unknown) == 1 && want.Unknown[0] == "any" && len(rule.Unknown) > 0 {
			want.Unknown = rule.Unknown
		}
		if d := cmp.Diff(want, rule, cmpopts.IgnoreFields(snapshot.NFTRule{}, "Text", "Handle"), cmp.AllowUnexported(snapshot.Value[uint64]{})); d != "" {
			t.Errorf("%s (-want +got):\n%s%q", cases[k].rule, d, rule.Text)
		}
	}
}
