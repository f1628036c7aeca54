package fault

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// ParseError says where a text is no rule.
type ParseError struct {
	Line   int // from 1
	Column int // in bytes, from 1
	Reason string
}

func (e *ParseError) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("fault rule, line %d, column %d: %s", e.Line, e.Column, e.Reason)
	}
	return fmt.Sprintf("fault rule, column %d: %s", e.Column, e.Reason)
}

// Parse reads rules, separated by semicolons or lines; "#" begins a comment.
// A rule is an action and any number of conditions, in any order:
//
//	drop | dup | corrupt | ce | delay 1ms | reorder [3]
//	loss 1%                         drop 1%
//	1%                              by chance
//	3rd   every 10th   times 5      by count of packets that meet the conditions
//	send write read-request read-response atomic atomic-ack ack rnr-nak nak cnp
//	first middle last only          place in the message
//	qp=0x11  psn=5  psn=0x10..0x20  opcode=0x0d
//	peer=10.0.0.2  peer=fd00::/64   the other host
//	after 100   for 50              so many of these packets pass first; are looked at then
//	after 1s    for 500ms           the same in time since the link was first used
//	in | out | both                 what comes in (the default), what leaves
//
// Several kinds, places, QPs or opcodes mean any of them. The error is a
// [*ParseError].
func Parse(text string) ([]Rule, error) {
	var rules []Rule
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		column := 1
		for _, stmt := range strings.Split(line, ";") {
			p := parser{line: n + 1, column: column, rest: stmt}
			if r, any, err := p.rule(); err != nil {
				return nil, err
			} else if any {
				rules = append(rules, r)
			}
			column += len(stmt) + 1
		}
	}
	return rules, nil
}

// parser reads one statement, word by word.
type parser struct {
	line   int
	column int    // of rest
	rest   string // not yet read
	at     int    // column of the last word
}

// word returns the next word, "" at the end.
func (p *parser) word() string {
	trimmed := strings.TrimLeft(p.rest, " \t\r")
	p.at = p.column + len(p.rest) - len(trimmed)
	w := trimmed
	if i := strings.IndexAny(w, " \t\r"); i >= 0 {
		w = w[:i]
	}
	p.column = p.at + len(w)
	p.rest = trimmed[len(w):]
	return w
}

// peek returns the next word without taking it.
func (p *parser) peek() string {
	q := *p
	return q.word()
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{Line: p.line, Column: p.at, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) rule() (r Rule, any bool, err error) {
	w := p.word()
	if w == "" {
		return r, false, nil
	}
	start := p.at
	switch w {
	case "drop":
		r.Action = Drop
	case "loss":
		r.Action = Drop
		if !strings.HasSuffix(p.peek(), "%") {
			p.word()
			return r, false, p.fail("loss needs a percentage, as in \"loss 1%%\"")
		}
	case "dup", "duplicate":
		r.Action = Duplicate
	case "corrupt":
		r.Action = Corrupt
	case "ce":
		r.Action = MarkCE
	case "delay":
		r.Action = Delay
		d, err := time.ParseDuration(p.word())
		if err != nil || d <= 0 {
			return r, false, p.fail("delay needs a duration, as in \"delay 1ms\"")
		}
		r.Delay = d
	case "reorder":
		r.Action = Reorder
		if n, err := strconv.Atoi(p.peek()); err == nil {
			p.word()
			if n < 1 || n > maxReordered {
				return r, false, p.fail("reorder by %d: must be 1 to %d packets", n, maxReordered)
			}
			r.Distance = n
		}
	default:
		return r, false, p.fail("unknown action %q; there are drop, loss, dup, delay, reorder, corrupt, ce", w)
	}
	for w := p.word(); w != ""; w = p.word() {
		if err := p.condition(&r, w); err != nil {
			return r, false, err
		}
	}
	if err := r.validate(); err != nil {
		p.at = start
		return r, false, p.fail("%s", strings.TrimPrefix(err.Error(), "fault rule: "))
	}
	return r, true, nil
}

func (p *parser) condition(r *Rule, w string) error {
	for _, k := range kindNames {
		if w == k.name {
			r.Kinds |= k.kind
			return nil
		}
	}
	for _, x := range posNames {
		if w == x.name {
			r.Pos |= x.pos
			return nil
		}
	}
	if name, value, ok := strings.Cut(w, "="); ok {
		return p.field(r, name, value)
	}
	if percent, ok := strings.CutSuffix(w, "%"); ok {
		f, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(f > 0 && f <= 100) {
			return p.fail("%q: a percentage is more than 0 and at most 100", w)
		}
		r.Rate = f / 100
		return nil
	}
	switch w {
	case "in":
		r.Out, r.Both = false, false
		return nil
	case "out":
		r.Out, r.Both = true, false
		return nil
	case "both":
		r.Out, r.Both = false, true
		return nil
	case "after", "for":
		return p.window(r, w)
	case "every", "times":
		v := p.word()
		n, ok := count(v)
		if !ok {
			return p.fail("%s needs a number from 1, not %q", w, v)
		}
		if w == "every" {
			r.Every = n
		} else {
			r.Times = n
		}
		return nil
	}
	if n, ok := count(w); ok && !isNumber(w) {
		r.Nth = n
		return nil
	}
	return p.fail("unknown condition %q; there are kinds (%s), places (first, middle, last, only), 1%%, 3rd, every 10th, times 5, qp=, psn=, opcode=, peer=, after 100, after 1s, for 50, for 1s, in, out, both",
		w, strings.Join(names(), ", "))
}

// window reads a number of packets or a duration behind "after" or "for".
func (p *parser) window(r *Rule, w string) error {
	v := p.word()
	if n, ok := count(v); ok && isNumber(v) {
		if w == "after" {
			r.Skip = n
		} else {
			r.Span = n
		}
		return nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return p.fail("%s needs a number of packets or a duration, as in \"%s 100\" or \"%s 1s\", not %q", w, w, w, v)
	}
	if w == "after" {
		r.From = d
	} else {
		r.Lasts = d
	}
	return nil
}

func names() []string {
	var n []string
	for _, k := range kindNames {
		n = append(n, k.name)
	}
	return n
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// count reads "3" or "3rd".
func count(s string) (uint64, bool) {
	for _, suffix := range []string{"st", "nd", "rd", "th"} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			s = digits
			break
		}
	}
	if s == "" || !isNumber(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return n, err == nil && n > 0
}

func (p *parser) field(r *Rule, name, value string) error {
	number := func(s string, max uint64) (uint64, error) {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil || n > max {
			return 0, p.fail("%s=%s: a number from 0 to 0x%x, decimal or with 0x", name, value, max)
		}
		return n, nil
	}
	switch name {
	case "qp":
		n, err := number(value, uint64(ib.MaxQPN))
		if err != nil {
			return err
		}
		r.QPNs = append(r.QPNs, ib.QPN(n))
	case "opcode":
		n, err := number(value, 0xFF)
		if err != nil {
			return err
		}
		r.Opcodes = append(r.Opcodes, wire.Opcode(n))
	case "psn":
		from, to, ok := strings.Cut(value, "..")
		if !ok {
			to = from
		}
		a, err := number(from, uint64(ib.PSNMask))
		if err != nil {
			return err
		}
		b, err := number(to, uint64(ib.PSNMask))
		if err != nil {
			return err
		}
		r.PSNs = &PSNRange{From: ib.PSN(a), To: ib.PSN(b)}
	case "peer":
		x, err := ParsePeer(value)
		if err != nil {
			return p.fail("peer=%s: an address or a prefix, as in 10.0.0.2 or 10.0.0.0/24", value)
		}
		r.Peers = append(r.Peers, x)
	default:
		return p.fail("unknown field %q; there are qp, psn, opcode, peer", name)
	}
	return nil
}

// ParsePeer reads an address or a prefix.
func ParsePeer(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	x, err := netip.ParsePrefix(text)
	if err == nil && x.Addr().Is4In6() {
		err = fmt.Errorf("%s: an IPv4 prefix is written as one", text)
	}
	return x.Masked(), err
}
