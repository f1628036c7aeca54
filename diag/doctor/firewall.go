package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// rocePort is the UDP port of RoCEv2.
const rocePort = 4791

// verdict is what the host's firewall does with a new packet to UDP port 4791.
type verdict struct {
	what string // accept, drop, unsure
	by   string // the rule or policy that decides
	hits snapshot.Value[uint64]
}

// firewallVerdict follows the chains at the input hook. A packet passes if every
// base chain accepts it, those of legacy iptables too. A rule that could match and has parts that are not
// understood makes the verdict unsure, unless something later drops for certain.
func firewallVerdict(f *snapshot.Firewall, iif string) (verdict, string) {
	chains, ok := f.NFT.Get()
	text, legacy := f.IPTables.Get()
	if ok && len(chains) > 0 {
		v := nftVerdict(chains, iif)
		if legacy && v.what != "drop" {
			if w := iptablesVerdict(text); w.what == "drop" || v.what == "accept" && w.what == "unsure" {
				return w, ""
			}
		}
		return v, ""
	}
	if legacy {
		return iptablesVerdict(text), ""
	}
	if ok {
		return verdict{what: "accept", by: "no rules at all"}, ""
	}
	return verdict{}, f.NFT.Why()
}

func nftVerdict(chains []snapshot.NFTChain, iif string) verdict {
	out := verdict{what: "accept", by: "no chain drops it"}
	for i := range chains {
		c := &chains[i]
		if c.Hook != "input" && c.Hook != "prerouting" && c.Hook != "ingress" || c.Family == "arp" {
			continue
		}
		v := followChain(chains, c, iif, 0)
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

// maxJumps bounds how deep jumps are followed; the kernel allows 16.
const maxJumps = 16

func followChain(chains []snapshot.NFTChain, c *snapshot.NFTChain, iif string, depth int) verdict {
	unsure := verdict{}
	for i := range c.Rules {
		r := &c.Rules[i]
		if !couldMatch(r, iif) || r.Verdict == "" {
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
						v = followChain(chains, &chains[j], iif, depth+1)
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

// couldMatch reports whether a rule could match a new UDP packet to port 4791 that
// comes in by an interface; an empty name is any but lo.
func couldMatch(r *snapshot.NFTRule, iif string) bool {
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

// iptablesVerdict follows the INPUT chain of the text of iptables-save.
func iptablesVerdict(text string) verdict {
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
	v := walkIPTables(rules, "INPUT", 0)
	switch {
	case v.what != "":
		return v
	case policy["INPUT"] == "DROP":
		return verdict{what: "drop", by: "policy DROP of chain INPUT"}
	}
	return verdict{what: "accept", by: "no rule of chain INPUT drops it"}
}

func walkIPTables(rules map[string][][]string, chain string, depth int) verdict {
	unsure := verdict{}
	for _, r := range rules[chain] {
		match, target := iptablesMatch(r)
		if !match || target == "" {
			continue
		}
		v := verdict{}
		by := "iptables: -A " + chain + " " + strings.Join(r, " ")
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
				v = walkIPTables(rules, target, depth+1)
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
