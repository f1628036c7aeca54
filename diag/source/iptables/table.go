package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
)

// hook is where a hook of netfilter begins in a table, and its policy. Offsets in bytes.
type hook struct {
	valid            bool
	entry, underflow uint32
}

// hooks are those of netfilter, in its order.
type hooks [5]hook

var hookNames = [len(hooks{})]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// Sizes and verdicts of the layout of 64-bit kernels.
const (
	entryLen = 112 // struct ipt_entry, before its matches
	partLen  = 32  // struct xt_entry_match and xt_entry_target, before their data

	verdictDrop   = -1
	verdictAccept = -2
	verdictReturn = -5

	invertSource, invertDest, invertIn, invertOut, invertProto, invertFrag = 0x08, 0x10, 0x01, 0x02, 0x40, 0x20

	flagGoto = 0x02
)

var errCut = errors.New("the filter table of iptables is cut")

// rule is an entry of a table.
type rule struct {
	at     uint32
	text   string // -p udp …, without chain and target
	target string // name of the target; empty for a verdict
	jump   int32  // verdict, or where a chain begins
	gotos  bool
	user   string // the chain that begins here
	end    bool   // the entry at the end of a table
}

// save writes a table as iptables-save does, without counters and comments.
func save(b []byte, h hooks) (string, error) {
	var rules []rule
	for at := 0; at < len(b); {
		if len(b)-at < entryLen {
			return "", errCut
		}
		target := int(binary.NativeEndian.Uint16(b[at+88:]))
		next := int(binary.NativeEndian.Uint16(b[at+90:]))
		if target < entryLen || next < target+partLen || next > len(b)-at {
			return "", fmt.Errorf("%w at byte %d", errCut, at)
		}
		r, err := entry(b[at:at+next], target)
		if err != nil {
			return "", fmt.Errorf("%w at byte %d", err, at)
		}
		r.at = uint32(at)
		rules = append(rules, r)
		at += next
	}
	return write(rules, h), nil
}

// write has chains first and then their rules. A chain begins at a hook's entry or after
// the entry with its name, and ends with its policy or an unconditional return, which
// are no rules.
func write(rules []rule, h hooks) string {
	chains := map[uint32]string{} // by where the first rule is
	underflow := map[uint32]bool{}
	for i, r := range rules {
		if r.user != "" && i+1 < len(rules) {
			chains[rules[i+1].at] = r.user
		}
	}
	for i, x := range h {
		if x.valid {
			chains[x.entry] = hookNames[i]
			underflow[x.underflow] = true
		}
	}
	var head, body strings.Builder
	chain := ""
	for i := range rules {
		r := &rules[i]
		if name, ok := chains[r.at]; ok {
			chain = name
			if !underflow[r.at] && !isHook(name) {
				fmt.Fprintf(&head, ":%s - [0:0]\n", name)
			}
		}
		last := i+1 == len(rules) || rules[i+1].end || rules[i+1].user != ""
		switch {
		case r.end || r.user != "":
		case underflow[r.at]:
			policy := "ACCEPT"
			if r.jump == verdictDrop {
				policy = "DROP"
			}
			fmt.Fprintf(&head, ":%s %s [0:0]\n", chain, policy)
		case last && r.target == "" && r.jump == verdictReturn: // the end of a chain
		default:
			body.WriteString("-A " + chain + r.text + verdict(r, chains) + "\n")
		}
	}
	return "*filter\n" + head.String() + body.String() + "COMMIT\n"
}

func isHook(name string) bool {
	for _, n := range hookNames {
		if n == name {
			return true
		}
	}
	return false
}

func verdict(r *rule, chains map[uint32]string) string {
	word := " -j "
	if r.gotos {
		word = " -g "
	}
	switch {
	case r.target != "":
		return word + r.target
	case r.jump == verdictDrop:
		return word + "DROP"
	case r.jump == verdictAccept:
		return word + "ACCEPT"
	case r.jump == verdictReturn:
		return word + "RETURN"
	}
	if name := chains[uint32(r.jump)]; r.jump >= 0 && name != "" {
		return word + name
	}
	if int(r.jump) == int(r.at)+entryLen+partLen+8 {
		return "" // on to the next: no target at all
	}
	return word + "?"
}

// entry reads one entry; target is where its target is.
func entry(b []byte, target int) (rule, error) {
	ne := binary.NativeEndian
	var r rule
	var s strings.Builder
	inverted := b[83]
	not := func(bit byte) string {
		if inverted&bit != 0 {
			return " !"
		}
		return ""
	}
	for i, o := range []string{"-s", "-d"} {
		addr, mask := b[4*i:4*i+4], b[8+4*i:12+4*i]
		if m := binary.BigEndian.Uint32(mask); m != 0 {
			ones := bits.LeadingZeros32(^m)
			length := fmt.Sprint(ones)
			if m<<ones != 0 { // a mask with holes
				length = netip.AddrFrom4([4]byte(mask)).String()
			}
			fmt.Fprintf(&s, "%s %s %v/%s", not([]byte{invertSource, invertDest}[i]), o, netip.AddrFrom4([4]byte(addr)), length)
		}
	}
	for i, o := range []string{"-i", "-o"} {
		if name := cString(b[16+16*i : 32+16*i]); name != "" {
			fmt.Fprintf(&s, "%s %s %s", not([]byte{invertIn, invertOut}[i]), o, name)
		}
	}
	if p := ne.Uint16(b[80:]); p != 0 {
		name := fmt.Sprint(p)
		if w, ok := map[uint16]string{1: "icmp", 6: "tcp", 17: "udp"}[p]; ok {
			name = w
		}
		s.WriteString(not(invertProto) + " -p " + name)
	}
	if b[82]&1 != 0 {
		s.WriteString(not(invertFrag) + " -f")
	}
	r.gotos = b[82]&flagGoto != 0
	for at := entryLen; at < target; {
		if target-at < partLen {
			return r, errCut
		}
		n := int(ne.Uint16(b[at:]))
		if n < partLen || n > target-at {
			return r, errCut
		}
		s.WriteString(match(cString(b[at+2:at+31]), b[at+31], b[at+partLen:at+n]))
		at += n
	}
	r.text = s.String()
	return r, r.readTarget(b[target:])
}

func (r *rule) readTarget(b []byte) error {
	n := int(binary.NativeEndian.Uint16(b))
	if n < partLen || n > len(b) {
		return errCut
	}
	data := b[partLen:n]
	switch name := cString(b[2:31]); name {
	case "":
		if len(data) < 4 {
			return errCut
		}
		r.jump = int32(binary.NativeEndian.Uint32(data))
	case "ERROR": // begins a chain, or ends the table
		if r.user = cString(data); r.user == "ERROR" {
			r.user, r.end = "", true
		}
	default:
		r.target = name
	}
	return nil
}

// match writes a match. Those that decide about a port or a state of a connection are
// written out; others by name.
func match(name string, revision byte, b []byte) string {
	ne := binary.NativeEndian
	switch {
	case (name == "udp" || name == "tcp") && len(b) >= 10:
		inverted := b[8]
		if name == "tcp" {
			if len(b) < 12 {
				break
			}
			inverted = b[11]
		}
		s := " -m " + name
		for i, o := range []string{"--sport", "--dport"} {
			lo, hi := ne.Uint16(b[4*i:]), ne.Uint16(b[4*i+2:])
			if lo == 0 && hi == 65535 {
				continue
			}
			if inverted>>i&1 != 0 {
				s += " !"
			}
			s += " " + o + " " + portRange(lo, hi)
		}
		return s
	case name == "multiport" && revision == 1 && len(b) >= 48:
		o := []string{"--sports", "--dports", "--ports"}[min(b[0], 2)]
		var ports []string
		for i := 0; i < min(int(b[1]), 15); i++ {
			p := fmt.Sprint(ne.Uint16(b[2+2*i:]))
			if b[32+i] != 0 && i+1 < 15 {
				i++
				p += ":" + fmt.Sprint(ne.Uint16(b[2+2*i:]))
			}
			ports = append(ports, p)
		}
		not := ""
		if b[47] != 0 {
			not = " !"
		}
		return " -m multiport" + not + " " + o + " " + strings.Join(ports, ",")
	}
	if mask, option := states(name, revision, b); option != "" {
		var words []string
		for _, w := range stateNames {
			if mask&w.bit != 0 {
				words = append(words, w.name)
			}
		}
		return " -m " + name + option + strings.Join(words, ",")
	}
	return " -m " + name + " --unknown"
}

var stateNames = []struct {
	bit  uint32
	name string
}{{0x01, "INVALID"}, {0x08, "NEW"}, {0x04, "RELATED"}, {0x02, "ESTABLISHED"}, {0x100, "UNTRACKED"}, {0x40, "SNAT"}, {0x80, "DNAT"}}

// states are the states of connections that a match wants, if it looks at nothing else.
func states(name string, revision byte, b []byte) (mask uint32, option string) {
	ne := binary.NativeEndian
	switch {
	case name == "state" && revision == 0 && len(b) >= 4:
		mask = ne.Uint32(b)
		if mask&0x40 != 0 { // there the bit of untracked ones
			mask = mask&^0x40 | 0x100
		}
		return mask, " --state "
	case (name == "conntrack" || name == "state") && revision >= 2 && len(b) >= 154 && ne.Uint16(b[146:]) == 1:
		option = " --ctstate "
		if name == "state" {
			option = " --state "
		}
		if ne.Uint16(b[148:])&1 != 0 {
			option = " !" + option
		}
		return uint32(ne.Uint16(b[150:])), option
	}
	return 0, ""
}

func portRange(lo, hi uint16) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d:%d", lo, hi)
}

// cString is the text up to the first zero, without what would break a line.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
