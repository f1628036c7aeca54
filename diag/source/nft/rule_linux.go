package nft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// translator turns the expressions of one rule into what they mean.
type translator struct {
	sets  *reader
	chain chainKey
	regs  map[uint32]field // what a register holds
	rule  snapshot.NFTRule
	text  []string
	l4    string // protocol that ports belong to
	six   bool   // the rule is for IPv6
	low   *bound // a lower bound whose upper one may follow
}

// bound is the lower end of a range that is given as two comparisons.
type bound struct {
	reg  uint32
	from []byte
}

// translate returns what a rule does: one rule, or one for each element of a set that it
// looks into.
func (m *ruleMessage) translate(sets *reader) []snapshot.NFTRule {
	t := translator{sets: sets, chain: m.chain, regs: map[uint32]field{}, six: m.chain.family == unix.NFPROTO_IPV6}
	t.rule.Handle = m.handle
	return t.run(m.exprs)
}

func (t *translator) run(exprs []any) []snapshot.NFTRule {
	for i, e := range exprs {
		l, ok := e.(*expr.Lookup)
		if !ok {
			t.expr(e)
			continue
		}
		t.flush()
		ways := t.lookup(l)
		if ways == nil {
			continue
		}
		var all []snapshot.NFTRule
		for _, w := range ways {
			c := t.clone()
			w(c)
			all = append(all, c.run(exprs[i+1:])...)
			if len(all) > maxWays {
				t.unknown("more than " + strconv.Itoa(maxWays) + " combinations of @" + l.SetName)
				return t.run(exprs[i+1:])
			}
		}
		return all
	}
	t.flush()
	t.rule.Text = strings.Join(t.text, " ")
	return []snapshot.NFTRule{t.rule}
}

// clone is a translator that goes its own way from here.
func (t *translator) clone() *translator {
	c := *t
	c.regs = maps.Clone(t.regs)
	c.text = slices.Clone(t.text)
	r := &c.rule
	r.DPort, r.SPort = slices.Clone(r.DPort), slices.Clone(r.SPort)
	r.Saddr, r.Daddr = slices.Clone(r.Saddr), slices.Clone(r.Daddr)
	r.CTState, r.Unknown = slices.Clone(r.CTState), slices.Clone(r.Unknown)
	return &c
}

func (t *translator) say(format string, args ...any) {
	t.text = append(t.text, fmt.Sprintf(format, args...))
}

// unknown notes a part that is not understood.
func (t *translator) unknown(what string) {
	t.rule.Unknown = append(t.rule.Unknown, what)
	t.text = append(t.text, "["+what+"]")
}

// reg is the number of a register of 4 bytes; those of 16 have the numbers 1 to 4.
func reg(r uint32) uint32 {
	if r >= 1 && r <= 4 {
		return 4*r + 4
	}
	return r
}

// flush takes a lower bound that stayed alone as a range to the end.
func (t *translator) flush() {
	if b := t.low; b != nil {
		t.low = nil
		t.put(t.regs[b.reg], span{b.from, bytes.Repeat([]byte{0xff}, len(b.from))})
	}
}

func (t *translator) expr(e any) {
	if c, ok := e.(*expr.Cmp); !ok || c.Op != expr.CmpOpLte && c.Op != expr.CmpOpLt {
		t.flush()
	}
	switch e := e.(type) {
	case string: // not understood: it may have written any register
		t.unknown(e)
		clear(t.regs)
	case *expr.Meta:
		if e.SourceRegister {
			t.say("meta set") // marks, priorities: no match
			return
		}
		t.regs[reg(e.Register)] = metaField(e.Key)
	case *expr.Payload:
		if e.OperationType != expr.PayloadLoad {
			t.unknown("changes the packet")
			return
		}
		t.regs[reg(e.DestRegister)] = payloadField(t.six, e)
	case *expr.Ct:
		if e.SourceRegister {
			t.say("ct set")
			return
		}
		f := field{kind: kindOther, name: "ct " + fmt.Sprint(uint32(e.Key))}
		if e.Key == expr.CtKeySTATE {
			f = field{kind: kindCTState, name: "ct state", size: 4}
		}
		t.regs[reg(e.Register)] = f
	case *expr.Bitwise:
		f := t.regs[reg(e.SourceRegister)]
		if bytes.Count(e.Xor, []byte{0}) != len(e.Xor) {
			f = field{kind: kindOther, name: f.name + " xor"}
		}
		f.mask = e.Mask
		t.regs[reg(e.DestRegister)] = f
	case byteorder:
		f := t.regs[reg(e.from)]
		t.regs[reg(e.to)] = field{kind: kindOther, name: f.name, size: f.size}
	case *expr.Cmp:
		t.compare(e)
	case *expr.Range:
		t.between(e)
	case *expr.Counter:
		t.rule.Packets, t.rule.Bytes = snapshot.Known(e.Packets), snapshot.Known(e.Bytes)
		t.say("counter packets %d bytes %d", e.Packets, e.Bytes)
	case *expr.Limit:
		over := ""
		if e.Over {
			over = "over "
		}
		t.unknown(fmt.Sprintf("limit rate %s%d", over, e.Rate))
	case *expr.Log:
		t.say("log")
	case *expr.Reject:
		t.rule.Verdict = "reject"
		t.say("reject")
	case *expr.Verdict:
		t.verdict(e.Kind, e.Chain)
	case *expr.Immediate:
		delete(t.regs, reg(e.Register))
		t.say("immediate")
	case *expr.Notrack, *expr.NAT, *expr.Masq, *expr.Redir:
		t.say("%s", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*expr.")))
	case *expr.Match:
		t.match(e)
	case *expr.Target:
		t.target(e)
	default:
		t.unknown(strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*expr.")))
	}
}

func (t *translator) verdict(kind expr.VerdictKind, chain string) {
	word := ""
	switch kind {
	case expr.VerdictAccept:
		word = "accept"
	case expr.VerdictDrop:
		word = "drop"
	case expr.VerdictReturn:
		word = "return"
	case expr.VerdictJump:
		word = "jump " + chain
	case expr.VerdictGoto:
		word = "goto " + chain
	case expr.VerdictContinue:
		word = ""
	default:
		t.unknown(fmt.Sprintf("verdict %d", kind))
		return
	}
	t.rule.Verdict = word
	if word != "" {
		t.say("%s", word)
	}
}

func (t *translator) compare(e *expr.Cmp) {
	f, ok := t.regs[reg(e.Register)]
	if !ok {
		f = field{kind: kindOther, name: "a register"}
	}
	if f.kind == kindCTState && e.Op == expr.CmpOpNeq && bytes.Count(e.Data, []byte{0}) == len(e.Data) && len(f.mask) == 4 {
		t.states(binary.NativeEndian.Uint32(f.mask))
		return
	}
	if f.kind == kindFragment && e.Op == expr.CmpOpEq {
		t.unknown(f.name)
		return
	}
	switch e.Op {
	case expr.CmpOpGte:
		t.low = &bound{reg(e.Register), e.Data}
		return
	case expr.CmpOpGt:
		t.low = &bound{reg(e.Register), after(e.Data)}
		return
	case expr.CmpOpLte, expr.CmpOpLt:
		from, to := make([]byte, len(e.Data)), e.Data
		if t.low != nil && t.low.reg == reg(e.Register) {
			from = t.low.from
			t.low = nil
		}
		t.flush()
		if e.Op == expr.CmpOpLt {
			to = before(to)
		}
		t.put(f, span{from, to})
		return
	case expr.CmpOpEq:
		t.put(f, span{e.Data, e.Data})
		return
	case expr.CmpOpNeq:
	}
	t.putNot(f, span{e.Data, e.Data})
}

func (t *translator) states(bits uint32) {
	for _, s := range []struct {
		bit  uint32
		name string
	}{
		{expr.CtStateBitINVALID, "invalid"},
		{expr.CtStateBitESTABLISHED, "established"},
		{expr.CtStateBitRELATED, "related"},
		{expr.CtStateBitNEW, "new"},
		{expr.CtStateBitUNTRACKED, "untracked"},
	} {
		if bits&s.bit != 0 {
			t.rule.CTState = append(t.rule.CTState, s.name)
		}
	}
	t.say("ct state %s", strings.Join(t.rule.CTState, ","))
}

func (t *translator) between(e *expr.Range) {
	f := t.regs[reg(e.Register)]
	if e.Op != expr.CmpOpEq {
		t.putNot(f, span{e.FromData, e.ToData})
		return
	}
	t.put(f, span{e.FromData, e.ToData})
}

// match reads a match of iptables-nft.
func (t *translator) match(e *expr.Match) {
	switch info := e.Info.(type) {
	case *xt.Udp:
		t.xtPorts("udp", info.SrcPorts, info.DstPorts, uint8(info.InvFlags))
	case *xt.Tcp:
		if info.FlagsMask != 0 || info.Option != 0 {
			t.unknown("tcp flags")
		}
		t.xtPorts("tcp", info.SrcPorts, info.DstPorts, uint8(info.InvFlags))
	case *xt.Comment:
		t.say("/* %s */", string(*info))
	case *xt.ConntrackMtinfo3:
		t.xtState(info.MatchFlags, info.InvertFlags, uint32(info.StateMask))
	case *xt.ConntrackMtinfo2:
		t.xtState(info.MatchFlags, info.InvertFlags, uint32(info.StateMask))
	default:
		t.unknown("match " + e.Name)
	}
}

func (t *translator) xtPorts(proto string, src, dst [2]uint16, invert uint8) {
	t.setProto(proto)
	if invert&3 != 0 {
		t.unknown(proto + " ports other than some")
		return
	}
	if src != [2]uint16{0, 65535} {
		t.ports(&t.rule.SPort, "sport", [][2]int{{int(src[0]), int(src[1])}})
	}
	if dst != [2]uint16{0, 65535} {
		t.ports(&t.rule.DPort, "dport", [][2]int{{int(dst[0]), int(dst[1])}})
	}
}

// xtState reads a match of connection states: bits are 1 invalid, then 2 established,
// 4 related, 8 new, 64 untracked, the same as nftables has.
func (t *translator) xtState(flags, invert uint16, mask uint32) {
	const state = 1
	if flags&^(state|1<<13) != 0 || invert&state != 0 || flags&state == 0 {
		t.unknown("match conntrack")
		return
	}
	t.states(mask)
}

func (t *translator) target(e *expr.Target) {
	switch e.Name {
	case "REJECT":
		t.rule.Verdict = "reject"
	case "LOG", "MARK", "CONNMARK", "TCPMSS", "CHECKSUM", "NOTRACK", "CT", "MASQUERADE", "SNAT", "NFLOG":
	default:
		t.unknown("target " + e.Name)
		return
	}
	t.say("%s", strings.ToLower(e.Name))
}
