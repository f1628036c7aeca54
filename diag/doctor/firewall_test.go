package doctor

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// TestFirewallByFamily has a firewall drop one family, or not be readable, and ports with
// GIDs of one family, both or none.
func TestFirewallByFamily(t *testing.T) {
	const (
		gid4  = "0000:0000:0000:0000:0000:ffff:0a00:0001"
		gid6  = "2001:0db8:0000:0000:0000:0000:0000:0001"
		local = "fe80:0000:0000:0000:0000:0000:0000:0001"
	)
	text := func(rule string) snapshot.Value[string] {
		return snapshot.Known("*filter\n:INPUT ACCEPT [0:0]\n" + rule + "\nCOMMIT\n")
	}
	drops := text("-A INPUT -p udp -m udp --dport 4791 -j DROP")
	nft := func(family string, r snapshot.NFTRule) snapshot.Firewall {
		return snapshot.Firewall{NFT: snapshot.Known([]snapshot.NFTChain{{Family: family, Table: "t", Name: "i", Hook: "input", Policy: "accept", Rules: []snapshot.NFTRule{r}}})}
	}
	none := snapshot.Known([]snapshot.NFTChain{})
	denied := snapshot.Unreadable[string]("permission denied")
	for _, c := range []struct {
		name string
		f    snapshot.Firewall
		gids []string
		want string
		by   string
	}{
		{"ip6tables, IPv6", snapshot.Firewall{IP6Tables: drops}, []string{local, gid6}, "drop", "ip6tables: -A INPUT"},
		{"ip6tables, IPv4", snapshot.Firewall{NFT: none, IP6Tables: drops}, []string{local, gid4}, "accept", ""},
		{"only ip6tables recorded, IPv4", snapshot.Firewall{IP6Tables: drops}, []string{local, gid4}, "unsure", "nftables and iptables are not recorded"},
		{"only iptables recorded, both", snapshot.Firewall{IPTables: text("")}, []string{gid4, gid6}, "unsure", "nftables and ip6tables are not recorded"},
		{"ip6tables, both", snapshot.Firewall{NFT: none, IP6Tables: drops}, []string{gid4, gid6}, "drop-ipv6", "ip6tables: -A INPUT"},
		{"ip6tables, link-local only", snapshot.Firewall{NFT: none, IP6Tables: drops}, []string{local}, "drop", "ip6tables"},
		{"ip6tables, no GIDs", snapshot.Firewall{NFT: none, IP6Tables: drops}, nil, "drop-ipv6", "ip6tables"},
		{"iptables, IPv6", snapshot.Firewall{NFT: none, IPTables: drops}, []string{local, gid6}, "accept", ""},
		{"iptables, both", snapshot.Firewall{NFT: none, IPTables: drops}, []string{gid4, gid6}, "drop-ipv4", "iptables: -A INPUT"},
		{"both programs, both", snapshot.Firewall{NFT: none, IPTables: drops, IP6Tables: drops}, []string{gid4, gid6}, "drop", "iptables"},
		{"policy", snapshot.Firewall{NFT: none, IP6Tables: snapshot.Known("*filter\n:INPUT DROP [0:0]\nCOMMIT\n")}, []string{gid6}, "drop", "ip6tables: policy DROP"},
		{"unknown match", snapshot.Firewall{NFT: none, IP6Tables: text("-A INPUT -m hl --unknown -j DROP")}, []string{gid6}, "unsure", "not understood"},
		{"not readable", snapshot.Firewall{NFT: none, IP6Tables: denied}, []string{gid6}, "unsure", "ip6tables are not readable: permission denied"},
		{"not readable, the other family", snapshot.Firewall{NFT: none, IP6Tables: denied}, []string{gid4}, "accept", ""},
		{"nothing readable", snapshot.Firewall{NFT: snapshot.Unreadable[[]snapshot.NFTChain]("permission denied"), IPTables: denied, IP6Tables: denied}, []string{gid4}, "", "permission denied"},
		{"nft not readable, iptables empty", snapshot.Firewall{NFT: snapshot.Unreadable[[]snapshot.NFTChain]("permission denied"), IPTables: text("")}, []string{gid4}, "unsure", "nftables are not readable"},
		{"nft of IPv6", nft("ip6", snapshot.NFTRule{Verdict: "drop"}), []string{gid4}, "accept", ""},
		{"nft of IPv6, both", nft("ip6", snapshot.NFTRule{Verdict: "drop"}), []string{gid4, gid6}, "drop-ipv6", "chain ip6"},
		{"nft of both, for IPv6", nft("inet", snapshot.NFTRule{Family: "ip6", Verdict: "drop"}), []string{gid6}, "drop", "chain inet"},
		{"nft of both, for IPv4", nft("inet", snapshot.NFTRule{Family: "ip", Verdict: "drop"}), []string{gid6}, "accept", ""},
		{"nft of both, for addresses", nft("inet", snapshot.NFTRule{Saddr: []string{"fd00::/8"}, Verdict: "drop"}), []string{gid4}, "accept", ""},
		{"nft of both", nft("inet", snapshot.NFTRule{Verdict: "drop"}), []string{gid4, gid6}, "drop", "chain inet"},
	} {
		p := &snapshot.Port{}
		for _, g := range c.gids {
			p.GIDs = append(p.GIDs, snapshot.GID{GID: g, Type: snapshot.Known("RoCE v2")})
		}
		got, why := firewallVerdict(&c.f, "", p)
		if got.what != c.want || !strings.Contains(got.by+why, c.by) {
			t.Errorf("%s: %s, %s %s", c.name, got.what, got.by, why)
		}
	}
}
