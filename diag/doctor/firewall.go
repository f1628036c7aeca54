package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// rocePort is the UDP port of RoCEv2.
const rocePort = 4791

// verdict is what the host's firewall does with a new packet to UDP port 4791.
type verdict struct {
	what string // accept, drop, drop-ipv4, drop-ipv6, unsure
	by   string // the rule or policy that decides
	hits snapshot.Value[uint64]
}

// firewallVerdict follows the chains at the input hook, for IPv4 and IPv6. A packet
// passes if every base chain accepts it, those of legacy iptables too. A rule that could
// match and has parts that are not understood makes the verdict unsure, unless something
// later drops for certain; so does a table that could not be read. Where only one of the
// families that a port has GIDs of is dropped, the verdict is drop-ipv4 or drop-ipv6.
func firewallVerdict(f *snapshot.Firewall, iif string, port *snapshot.Port) (verdict, string) {
	if !f.NFT.IsKnown() && !f.IPTables.IsKnown() && !f.IP6Tables.IsKnown() {
		return verdict{}, f.NFT.Why()
	}
	if chains, _ := f.NFT.Get(); f.NFT.IsKnown() && len(chains) == 0 && f.IPTables.IsZero() && f.IP6Tables.IsZero() {
		return verdict{what: "accept", by: "no rules at all"}, ""
	}
	four, six := familyVerdict(f, "ip", iif), familyVerdict(f, "ip6", iif)
	use4, use6 := familiesOf(port)
	switch {
	case !use6:
		return four, ""
	case !use4:
		return six, ""
	case four.what == six.what || four.what != "drop" && six.what != "drop":
		if four.what == "accept" {
			return six, "" // accept too, or unsure
		}
		return four, ""
	case four.what == "drop":
		four.what = "drop-ipv4"
		return four, ""
	}
	six.what = "drop-ipv6"
	return six, ""
}

// familiesOf says which families of addresses RoCEv2 of a port goes by: those of its
// GIDs, where the ones of link-local addresses, which every port has, count only if there
// are no others. Without GIDs it may be both.
func familiesOf(port *snapshot.Port) (four, six bool) {
	local := false
	if port != nil {
		for i := range port.GIDs {
			g := &port.GIDs[i]
			a, err := netip.ParseAddr(g.GID)
			switch {
			case err != nil || g.Type.IsKnown() && g.Type.Or("") != "RoCE v2":
			case a.Is4In6():
				four = true
			case a.IsLinkLocalUnicast():
				local = true
			default:
				six = true
			}
		}
	}
	switch {
	case four || six:
		return four, six
	case local:
		return false, true
	}
	return true, true
}

// familyVerdict is the verdict about packets of one family, ip or ip6.
func familyVerdict(f *snapshot.Firewall, family, iif string) verdict {
	text, name := f.IPTables, "iptables"
	if family == "ip6" {
		text, name = f.IP6Tables, "ip6tables"
	}
	v := verdict{what: "accept", by: "no chain drops it"}
	if chains, ok := f.NFT.Get(); ok {
		v = nftVerdict(chains, family, iif)
	} else if !f.NFT.IsZero() {
		v = verdict{what: "unsure", by: "the rules of nftables are not readable: " + f.NFT.Why()}
	}
	if text.IsZero() && f.NFT.IsZero() {
		return verdict{what: "unsure", by: "the rules of nftables and " + name + " are not recorded"}
	}
	if v.what == "drop" || text.IsZero() {
		return v
	}
	w := verdict{what: "unsure", by: "the rules of " + name + " are not readable: " + text.Why()}
	if s, ok := text.Get(); ok {
		w = iptablesVerdict(s, name)
	}
	if w.what == "drop" || v.what == "accept" && (w.what == "unsure" || v.by == "no chain drops it") {
		return w
	}
	return v
}

func nftVerdict(chains []snapshot.NFTChain, family, iif string) verdict {
	out := verdict{what: "accept", by: "no chain drops it"}
	for i := range chains {
		c := &chains[i]
		if c.Hook != "input" && c.Hook != "prerouting" && c.Hook != "ingress" || c.Family == "arp" || (c.Family == "ip" || c.Family == "ip6") && c.Family != family {
			continue
		}
		if c.Dev != "" && iif != "" && !slices.Contains(strings.Split(c.Dev, ","), iif) {
			continue
		}
		v := followChain(chains, c, packet{family, iif}, 0)
		if v.what == "" {
			v = verdict{what: "accept"}
			if c.Policy == "drop" {
				v = verdict{what: "drop", by: fmt.Sprintf("policy drop of chain %s %s %s", c.Family, c.Table, c.Name)}
			}
		}
		switch v.what {
		case "drop":
			return v
		case "unsure":
			out = v
		}
	}
	return out
}

// packet is a new packet to UDP port 4791 from another host.
type packet struct {
	family string // ip, ip6
	iif    string // empty for any but lo
}

// maxJumps bounds how deep jumps are followed; the kernel allows 16.
const maxJumps = 16

func followChain(chains []snapshot.NFTChain, c *snapshot.NFTChain, p packet, depth int) verdict {
	unsure := verdict{}
	for i := range c.Rules {
		r := &c.Rules[i]
		if !couldMatch(r, p) || r.Verdict == "" {
			continue
		}
		where := fmt.Sprintf("chain %s %s %s: %s", c.Family, c.Table, c.Name, r.Text)
		kind, target, _ := strings.Cut(r.Verdict, " ")
		v := verdict{by: where, hits: r.Packets}
		switch kind {
		case "accept":
			v.what = "accept"
		case "drop", "reject":
			v.what = "drop"
		case "return":
			return unsure
		case "jump", "goto":
			if depth < maxJumps {
				for j := range chains {
					if chains[j].Family == c.Family && chains[j].Table == c.Table && chains[j].Name == target {
						v = followChain(chains, &chains[j], p, depth+1)
					}
				}
			}
		}
		if v.what == "" {
			continue
		}
		if len(r.Unknown) > 0 {
			if v.what != "accept" || unsure.what == "" {
				unsure = verdict{what: "unsure", by: where + " (not understood: " + strings.Join(r.Unknown, ", ") + ")"}
			}
			continue
		}
		if unsure.what != "" && v.what == "accept" {
			return unsure
		}
		return v
	}
	return unsure
}

// couldMatch reports whether a rule could match a packet.
func couldMatch(r *snapshot.NFTRule, p packet) bool {
	if r.Family != "" && r.Family != p.family || !ofFamily(r.Saddr, p.family) || !ofFamily(r.Daddr, p.family) {
		return false
	}
	iif := p.iif
	if r.Proto != "" && r.Proto != "udp" {
		return false
	}
	if len(r.CTState) > 0 && !slices.Contains(r.CTState, "new") && !slices.Contains(r.CTState, "untracked") {
		return false
	}
	if r.OIF != "" {
		return false
	}
	if r.IIF != "" {
		pat, wild := strings.CutSuffix(r.IIF, "*")
		switch {
		case r.IIF == "lo" && iif != "lo":
			return false
		case iif != "" && wild && !strings.HasPrefix(iif, pat):
			return false
		case iif != "" && !wild && r.IIF != iif:
			return false
		}
	}
	if len(r.DPort) == 0 {
		return true
	}
	for _, p := range r.DPort {
		if p[0] <= rocePort && rocePort <= p[1] {
			return true
		}
	}
	return false
}

// ofFamily reports whether prefixes are of a family, or none are asked for.
func ofFamily(prefixes []string, family string) bool {
	for _, s := range prefixes {
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Addr().Is4() == (family == "ip") {
			return true
		}
	}
	return len(prefixes) == 0
}

// iptablesVerdict follows the INPUT chain of the text of iptables-save or ip6tables-save.
func iptablesVerdict(text, program string) verdict {
	policy := map[string]string{}
	rules := map[string][][]string{}
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case table != "filter" || len(f) < 2:
		case strings.HasPrefix(line, ":"):
			policy[f[0][1:]] = f[1]
		case f[0] == "-A":
			rules[f[1]] = append(rules[f[1]], f[2:])
		}
	}
	v := walkIPTables(rules, program, "INPUT", 0)
	switch {
	case v.what != "":
		return v
	case policy["INPUT"] == "DROP":
		return verdict{what: "drop", by: program + ": policy DROP of chain INPUT"}
	}
	return verdict{what: "accept", by: program + ": no rule of chain INPUT drops it"}
}

func walkIPTables(rules map[string][][]string, program, chain string, depth int) verdict {
	unsure := verdict{}
	for _, r := range rules[chain] {
		match, target := iptablesMatch(r)
		if !match || target == "" {
			continue
		}
		v := verdict{}
		by := program + ": -A " + chain + " " + strings.Join(r, " ")
		switch target {
		case "ACCEPT":
			v = verdict{what: "accept", by: by}
		case "DROP", "REJECT":
			v = verdict{what: "drop", by: by}
		case "RETURN":
			if !slices.Contains(r, unknownMatch) {
				return unsure
			}
		default:
			if depth < maxJumps {
				v = walkIPTables(rules, program, target, depth+1)
			}
		}
		switch {
		case v.what == "":
		case v.what == "unsure" || slices.Contains(r, unknownMatch):
			unsure = verdict{what: "unsure", by: by + " (a match is not understood)"}
		case v.what == "accept" && unsure.what != "":
			return unsure
		default:
			return v
		}
	}
	return unsure
}

// unknownMatch stands in a rule for a match that the reader of the kernel's table does
// not understand.
const unknownMatch = "--unknown"

// iptablesMatch reports whether a rule could match a new UDP packet to port 4791 from
// another host, and its target.
func iptablesMatch(r []string) (match bool, target string) {
	match = true
	for i := 0; i+1 < len(r); i++ {
		v := r[i+1]
		ok := true
		switch r[i] {
		case "-j", "-g":
			target = v
			continue
		case "-p":
			ok = v == "udp" || v == "17" || v == "all"
		case "-i":
			ok = v != "lo"
		case "--dport", "--destination-port", "--dports":
			ok = iptablesPorts(v)
		case "--state", "--ctstate":
			ok = slices.Contains(strings.Split(v, ","), "NEW")
		default:
			continue
		}
		match = match && ok != (i > 0 && r[i-1] == "!")
	}
	return match, target
}

func iptablesPorts(v string) bool {
	for p := range strings.SplitSeq(v, ",") {
		lo, hi := 0, 0
		if n, _ := fmt.Sscanf(p, "%d:%d", &lo, &hi); n == 1 {
			hi = lo
		}
		if lo <= rocePort && rocePort <= hi {
			return true
		}
	}
	return false
}
