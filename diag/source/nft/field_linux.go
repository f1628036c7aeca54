package nft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// kind is what a register holds, as far as it matters.
type kind uint8

const (
	kindOther kind = iota
	kindProto
	kindFamily
	kindSaddr
	kindDaddr
	kindSPort
	kindDPort
	kindIIF
	kindOIF
	kindIIFIndex
	kindOIFIndex
	kindCTState
	kindFragment
)

// field is a value that was loaded, perhaps with a mask.
type field struct {
	kind kind
	name string // as nft says it
	size int    // bytes in its register; 0 if it is not known
	mask []byte
}

// metaSizes are the sizes of other fields that sets are made of.
var metaSizes = map[expr.MetaKey]int{expr.MetaKeyMARK: 4, expr.MetaKeyPRIORITY: 4, expr.MetaKeySKUID: 4, expr.MetaKeySKGID: 4, expr.MetaKeyPKTTYPE: 1, expr.MetaKeyIIFTYPE: 2, expr.MetaKeyOIFTYPE: 2, expr.MetaKeyCPU: 4}

func metaField(k expr.MetaKey) field {
	switch k { //nolint:exhaustive // the others are not understood
	case expr.MetaKeyL4PROTO:
		return field{kind: kindProto, name: "meta l4proto", size: 1}
	case expr.MetaKeyNFPROTO:
		return field{kind: kindFamily, name: "meta nfproto", size: 1}
	case expr.MetaKeyIIFNAME:
		return field{kind: kindIIF, name: "iifname", size: 16}
	case expr.MetaKeyOIFNAME:
		return field{kind: kindOIF, name: "oifname", size: 16}
	case expr.MetaKeyIIF:
		return field{kind: kindIIFIndex, name: "iif", size: 4}
	case expr.MetaKeyOIF:
		return field{kind: kindOIFIndex, name: "oif", size: 4}
	case expr.MetaKeyPROTOCOL:
		return field{kind: kindFamily, name: "meta protocol", size: 2}
	}
	return field{name: "meta " + strconv.Itoa(int(k)), size: metaSizes[k]}
}

// payloadField names a part of a header. In a table of both families a comparison of
// the family precedes addresses; their length says which.
func payloadField(six bool, p *expr.Payload) field {
	f := field{name: fmt.Sprintf("@%d,%d,%d", p.Base, 8*p.Offset, 8*p.Len)}
	switch p.Base { //nolint:exhaustive // the others are not understood
	case expr.PayloadBaseTransportHeader:
		switch {
		case p.Offset == 0 && p.Len == 2:
			f = field{kind: kindSPort, name: "sport"}
		case p.Offset == 2 && p.Len == 2:
			f = field{kind: kindDPort, name: "dport"}
		}
	case expr.PayloadBaseNetworkHeader:
		v4 := !six
		switch {
		// Prefixes of whole bytes are loaded short.
		case v4 && p.Offset == 12 && p.Len <= 4:
			f = field{kind: kindSaddr, name: "ip saddr"}
		case v4 && p.Offset == 16 && p.Len <= 4:
			f = field{kind: kindDaddr, name: "ip daddr"}
		case v4 && p.Offset == 9 && p.Len == 1:
			f = field{kind: kindProto, name: "ip protocol"}
		case p.Offset == 8 && p.Len <= 16 && (six || p.Len > 1): // one byte is IPv4's TTL
			f = field{kind: kindSaddr, name: "ip6 saddr"}
		case p.Offset == 24 && p.Len <= 16:
			f = field{kind: kindDaddr, name: "ip6 daddr"}
		case p.Offset == 6 && p.Len == 1 && !v4:
			f = field{kind: kindProto, name: "ip6 nexthdr"}
		case v4 && p.Offset == 6 && p.Len == 2:
			f = field{kind: kindFragment, name: "ip frag-off"}
		}
	}
	f.size = int(p.Len)
	return f
}

var protocols = map[byte]string{1: "icmp", 6: "tcp", 17: "udp", 58: "ipv6-icmp", 132: "sctp", 47: "gre", 4: "ipip", 50: "esp"}

func protocol(b []byte) string {
	if len(b) == 0 {
		return "?"
	}
	if p, ok := protocols[b[0]]; ok {
		return p
	}
	return strconv.Itoa(int(b[0]))
}

// format is a value as nft would print it, for what is not understood.
func (f field) format(b []byte) string {
	switch f.kind { //nolint:exhaustive // the rest comes after
	case kindProto:
		return protocol(b)
	case kindSPort, kindDPort:
		if len(b) == 2 {
			return strconv.Itoa(int(binary.BigEndian.Uint16(b)))
		}
	case kindIIF, kindOIF:
		return ifname(b)
	case kindSaddr, kindDaddr:
		if a, ok := netip.AddrFromSlice(b); ok {
			return a.String()
		}
	}
	return fmt.Sprintf("0x%x", b)
}

func ifname(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return string(b[:i])
	}
	return string(b) + "*" // without an end the name is a prefix
}

// span is what is between two values, both inclusive.
type span struct{ from, to []byte }

func (s span) single() bool { return bytes.Equal(s.from, s.to) }

func (s span) ports() ([2]int, bool) {
	if len(s.from) != 2 || len(s.to) != 2 {
		return [2]int{}, false
	}
	return [2]int{int(binary.BigEndian.Uint16(s.from)), int(binary.BigEndian.Uint16(s.to))}, true
}

// put notes that a field is in one of some spans.
func (t *translator) put(f field, spans ...span) {
	if len(spans) == 0 || !t.understand(f, spans) {
		t.unknown(f.name + " " + f.list(spans))
	}
}

// putNot notes that a field is in none of some spans.
func (t *translator) putNot(f field, spans ...span) {
	if f.kind == kindSPort || f.kind == kindDPort {
		if rest, ok := complement(spans); ok && f.mask == nil {
			t.ports(t.portsOf(f.kind), f.name, rest)
			return
		}
	}
	t.unknown(f.name + " != " + f.list(spans))
}

func (f field) list(spans []span) string {
	words := make([]string, 0, min(len(spans), 5))
	for _, s := range spans {
		if len(words) == 4 {
			words = append(words, "…")
			break
		}
		w := f.format(s.from)
		if !s.single() {
			w += "-" + f.format(s.to)
		}
		words = append(words, w)
	}
	if len(words) == 1 {
		return words[0]
	}
	return "{ " + strings.Join(words, ", ") + " }"
}

// understand notes what can be told in the model.
func (t *translator) understand(f field, spans []span) bool {
	one := spans[0]
	switch f.kind {
	case kindProto:
		if len(spans) == 1 && one.single() && len(one.from) == 1 && f.mask == nil {
			t.say("%s %s", f.name, protocol(one.from))
			t.setProto(protocol(one.from))
			return true
		}
	case kindFamily:
		return len(spans) == 1 && one.single() && t.family(f, one.from)
	case kindSPort, kindDPort:
		if f.mask != nil {
			return false
		}
		var list [][2]int
		for _, s := range spans {
			p, ok := s.ports()
			if !ok {
				return false
			}
			list = append(list, p)
		}
		t.ports(t.portsOf(f.kind), f.name, list)
		return true
	case kindIIF, kindOIF, kindIIFIndex, kindOIFIndex:
		return len(spans) == 1 && t.putInterface(f, one.from, one.single())
	case kindSaddr, kindDaddr:
		return t.addresses(f, spans)
	case kindCTState:
		if len(spans) == 1 && one.single() && len(one.from) == 4 && f.mask == nil {
			t.states(binary.NativeEndian.Uint32(one.from))
			return true
		}
	case kindOther, kindFragment:
	}
	return false
}

func (t *translator) setProto(p string) {
	if t.rule.Proto != "" && t.rule.Proto != p {
		t.unknown("both " + t.rule.Proto + " and " + p)
	}
	t.rule.Proto, t.l4 = p, p
}

// family notes that a rule is for IPv4 or IPv6 only.
func (t *translator) family(f field, b []byte) bool {
	is := ""
	switch {
	case f.name == "meta nfproto" && bytes.Equal(b, []byte{unix.NFPROTO_IPV4}), f.name == "meta protocol" && bytes.Equal(b, []byte{0x08, 0x00}):
		is = "ip"
	case f.name == "meta nfproto" && bytes.Equal(b, []byte{unix.NFPROTO_IPV6}), f.name == "meta protocol" && bytes.Equal(b, []byte{0x86, 0xdd}):
		is = "ip6"
	default:
		return false
	}
	t.rule.Family, t.six = is, is == "ip6"
	if f.name == "meta nfproto" {
		is = map[string]string{"ip": "ipv4", "ip6": "ipv6"}[is]
	}
	t.say("%s %s", f.name, is)
	return true
}

func (t *translator) portsOf(k kind) *[][2]int {
	if k == kindSPort {
		return &t.rule.SPort
	}
	return &t.rule.DPort
}

// ports notes that a port is in one of some ranges, beside what is known of it.
func (t *translator) ports(to *[][2]int, name string, list [][2]int) {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = strconv.Itoa(r[0])
		if r[0] != r[1] {
			words[i] += "-" + strconv.Itoa(r[1])
		}
	}
	text := strings.Join(words, ", ")
	if len(words) != 1 {
		text = "{ " + text + " }"
	}
	t.say("%s %s %s", t.l4, name, text)
	if *to != nil {
		list = common(*to, list)
	}
	if len(list) == 0 {
		t.unknown("no " + name + " at all")
	}
	*to = list
}

// common are the ports in both of two lists.
func common(a, b [][2]int) [][2]int {
	var all [][2]int
	for _, x := range a {
		for _, y := range b {
			if lo, hi := max(x[0], y[0]), min(x[1], y[1]); lo <= hi {
				all = append(all, [2]int{lo, hi})
			}
		}
	}
	return all
}

// complement are the ports in none of some spans, which need no order.
func complement(spans []span) ([][2]int, bool) {
	var in [][2]int
	for _, s := range spans {
		p, ok := s.ports()
		if !ok {
			return nil, false
		}
		in = append(in, p)
	}
	slices.SortFunc(in, func(a, b [2]int) int { return a[0] - b[0] })
	var out [][2]int
	next := 0
	for _, p := range in {
		if p[0] > next {
			out = append(out, [2]int{next, p[0] - 1})
		}
		next = max(next, p[1]+1)
	}
	if next <= 65535 {
		out = append(out, [2]int{next, 65535})
	}
	return out, true
}

func (t *translator) addresses(f field, spans []span) bool {
	list := &t.rule.Daddr
	if f.kind == kindSaddr {
		list = &t.rule.Saddr
	}
	if *list != nil { // a second condition
		return false
	}
	var words []string
	for _, s := range spans {
		prefixes, ok := f.prefixes(s.from, s.to)
		if !ok {
			return false
		}
		for _, p := range prefixes {
			words = append(words, p.String())
		}
	}
	for _, w := range words {
		t.say("%s %s", f.name, w)
	}
	*list = words
	return true
}

func (t *translator) putInterface(f field, from []byte, same bool) bool {
	if !same || f.mask != nil {
		return false
	}
	name := ifname(from)
	if f.kind == kindIIFIndex || f.kind == kindOIFIndex {
		if len(from) != 4 {
			return false
		}
		i := binary.NativeEndian.Uint32(from)
		name = "if" + strconv.Itoa(int(i))
		if dev, err := net.InterfaceByIndex(int(i)); err == nil {
			name = dev.Name
		}
	}
	to := &t.rule.IIF
	if f.kind == kindOIF || f.kind == kindOIFIndex {
		to = &t.rule.OIF
	}
	if *to != "" && *to != name {
		return false
	}
	*to = name
	t.say("%s %q", f.name, name)
	return true
}

// prefixes covers a range of addresses; with a mask, or loaded short, the range is a
// prefix.
func (f field) prefixes(from, to []byte) ([]netip.Prefix, bool) {
	size := 4
	if f.name == "ip6 saddr" || f.name == "ip6 daddr" {
		size = 16
	}
	if len(from) > size || len(from) != len(to) {
		return nil, false
	}
	if bytes.Equal(from, to) {
		length := 8 * len(from)
		if f.mask != nil {
			ones, whole := net.IPMask(f.mask).Size()
			if whole == 0 {
				return nil, false
			}
			length = ones
		}
		a, ok := netip.AddrFromSlice(append(bytes.Clone(from), make([]byte, size-len(from))...))
		return []netip.Prefix{netip.PrefixFrom(a, length).Masked()}, ok
	}
	if f.mask != nil || len(from) != size {
		return nil, false
	}
	return cover(from, to)
}

// cover splits a range of addresses into at most 64 prefixes.
func cover(from, to []byte) ([]netip.Prefix, bool) {
	a, aok := netip.AddrFromSlice(from)
	b, bok := netip.AddrFromSlice(to)
	if !aok || !bok || b.Less(a) {
		return nil, false
	}
	var all []netip.Prefix
	for len(all) < 64 {
		zeros := trailingZeros(a)
		for ; zeros > 0; zeros-- {
			if last := last(a, zeros); !b.Less(last) {
				break
			}
		}
		all = append(all, netip.PrefixFrom(a, a.BitLen()-zeros))
		end := last(a, zeros)
		if !end.Less(b) {
			return all, true
		}
		a = end.Next()
	}
	return nil, false
}

func trailingZeros(a netip.Addr) int {
	n := 0
	s := a.AsSlice()
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0 {
			return n + bits.TrailingZeros8(s[i])
		}
		n += 8
	}
	return n
}

// last is the last address of the prefix that starts at a and leaves n bits open.
func last(a netip.Addr, n int) netip.Addr {
	s := a.AsSlice()
	for i := len(s) - 1; n > 0; i-- {
		s[i] |= byte(1<<min(n, 8) - 1)
		n -= 8
	}
	b, _ := netip.AddrFromSlice(s)
	return b
}

func after(b []byte) []byte {
	b = bytes.Clone(b)
	for i := len(b) - 1; i >= 0; i-- {
		b[i]++
		if b[i] != 0 {
			break
		}
	}
	return b
}

func before(b []byte) []byte {
	b = bytes.Clone(b)
	for i := len(b) - 1; i >= 0; i-- {
		b[i]--
		if b[i] != 0xff {
			break
		}
	}
	return b
}
