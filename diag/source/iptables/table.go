package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	partLen = 32 // struct xt_entry_match and xt_entry_target, before their data

	verdictDrop   = -1
	verdictAccept = -2
	verdictReturn = -5

	invertSource, invertDest, invertIn, invertOut, invertProto, invertFrag = 0x08, 0x10, 0x01, 0x02, 0x40, 0x20
)

// layout is where an entry has what: struct ipt_entry or ip6t_entry. Source, destination
// and their masks come first.
type layout struct {
	addr      int  // bytes of an address
	names     int  // the interface that a packet comes in by; 16 bytes later the other
	proto     int  // 16 bits
	flags     int  // 8 bits
	inverted  int  // 8 bits
	target    int  // 16 bits: where the target is; then where the next entry is
	entry     int  // bytes of an entry before its matches
	flagFrag  byte // a match for fragments
	flagProto byte // without it no protocol is meant
	flagGoto  byte
}

var (
	ipv4 = layout{addr: 4, names: 16, proto: 80, flags: 82, inverted: 83, target: 88, entry: 112, flagFrag: 0x01, flagGoto: 0x02}
	ipv6 = layout{addr: 16, names: 64, proto: 128, flags: 131, inverted: 132, target: 140, entry: 168, flagProto: 0x01, flagGoto: 0x04}
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
func (l *layout) save(b []byte, h hooks) (string, error) {
	var rules []rule
	for at := 0; at < len(b); {
		if len(b)-at < l.entry {
			return "", errCut
		}
		target := int(binary.NativeEndian.Uint16(b[at+l.target:]))
		next := int(binary.NativeEndian.Uint16(b[at+l.target+2:]))
		if target < l.entry || next < target+partLen || next > len(b)-at {
			return "", fmt.Errorf("%w at byte %d", errCut, at)
		}
		r, err := l.rule(b[at:at+next], target)
		if err != nil {
			return "", fmt.Errorf("%w at byte %d", err, at)
		}
		r.at = uint32(at)
		rules = append(rules, r)
		at += next
	}
	return l.write(rules, h), nil
}

// write has chains first and then their rules. A chain begins at a hook's entry or after
// the entry with its name, and ends with its policy or an unconditional return, which
// are no rules.
func (l *layout) write(rules []rule, h hooks) string {
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
			body.WriteString("-A " + chain + r.text + l.verdict(r, chains) + "\n")
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

func (l *layout) verdict(r *rule, chains map[uint32]string) string {
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
	if int(r.jump) == int(r.at)+l.entry+partLen+8 {
		return "" // on to the next: no target at all
	}
	return word + "?"
}

// protocols are those that iptables-save knows by name.
var protocols = map[uint16]string{
	1: "icmp", 6: "tcp", 17: "udp", 50: "esp", 51: "ah", 58: "ipv6-icmp", 132: "sctp", 136: "udplite",
}

// rule reads one entry; target is where its target is.
func (l *layout) rule(b []byte, target int) (rule, error) {
	ne := binary.NativeEndian
	var r rule
	var s strings.Builder
	not := func(bit byte) string {
		if b[l.inverted]&bit != 0 {
			return " !"
		}
		return ""
	}
	for i, o := range []string{"-s", "-d"} {
		mask := b[(2+i)*l.addr:][:l.addr]
		if slices.Max(mask) == 0 {
			continue
		}
		ones, whole := net.IPMask(mask).Size()
		length := fmt.Sprint(ones)
		if whole == 0 { // a mask with holes
			length = address(mask)
		}
		fmt.Fprintf(&s, "%s %s %s/%s", not([]byte{invertSource, invertDest}[i]), o, address(b[i*l.addr:][:l.addr]), length)
	}
	for i, o := range []string{"-i", "-o"} {
		if name := cString(b[l.names+16*i:][:16]); name != "" {
			fmt.Fprintf(&s, "%s %s %s", not([]byte{invertIn, invertOut}[i]), o, name)
		}
	}
	flags := b[l.flags]
	if p := ne.Uint16(b[l.proto:]); p != 0 && flags&l.flagProto == l.flagProto {
		name := protocols[p]
		if name == "" {
			name = fmt.Sprint(p)
		}
		s.WriteString(not(invertProto) + " -p " + name)
	}
	if flags&l.flagFrag != 0 {
		s.WriteString(not(invertFrag) + " -f")
	}
	r.gotos = flags&l.flagGoto != 0
	for at := l.entry; at < target; {
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

func address(b []byte) string {
	a, _ := netip.AddrFromSlice(b)
	return a.String()
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
