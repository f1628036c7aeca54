package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"strconv"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
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
	mask []byte
}

func metaField(k expr.MetaKey) field {
	switch k { //nolint:exhaustive // the others are not understood
	case expr.MetaKeyL4PROTO:
		return field{kind: kindProto, name: "meta l4proto"}
	case expr.MetaKeyNFPROTO:
		return field{kind: kindFamily, name: "meta nfproto"}
	case expr.MetaKeyIIFNAME:
		return field{kind: kindIIF, name: "iifname"}
	case expr.MetaKeyOIFNAME:
		return field{kind: kindOIF, name: "oifname"}
	case expr.MetaKeyIIF:
		return field{kind: kindIIFIndex, name: "iif"}
	case expr.MetaKeyOIF:
		return field{kind: kindOIFIndex, name: "oif"}
	case expr.MetaKeyPROTOCOL:
		return field{kind: kindFamily, name: "meta protocol"}
	}
	return field{name: "meta " + strconv.Itoa(int(k))}
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

// put notes that a field is between two values.
func (t *translator) put(f field, from, to []byte) {
	same := bytes.Equal(from, to)
	switch f.kind { //nolint:exhaustive // the rest comes after
	case kindProto:
		if same {
			t.rule.Proto, t.l4 = protocol(from), protocol(from)
			t.say("%s %s", f.name, t.l4)
			return
		}
	case kindFamily:
		if same {
			t.say("%s %s", f.name, f.format(from))
			if f.name == "meta nfproto" && len(from) > 0 {
				// The family stays visible in the text; addresses tell it too.
				t.six = from[0] == 10
				t.text[len(t.text)-1] = map[byte]string{2: "meta nfproto ipv4", 10: "meta nfproto ipv6"}[from[0]]
				if from[0] == 10 || from[0] == 2 {
					return
				}
			}
			return
		}
	case kindSPort, kindDPort:
		if len(from) != 2 || len(to) != 2 || f.mask != nil {
			break
		}
		r := [2]int{int(binary.BigEndian.Uint16(from)), int(binary.BigEndian.Uint16(to))}
		list := &t.rule.DPort
		if f.kind == kindSPort {
			list = &t.rule.SPort
		}
		*list = append(*list, r)
		word := strconv.Itoa(r[0])
		if !same {
			word += "-" + strconv.Itoa(r[1])
		}
		t.say("%s %s %s", t.l4, f.name, word)
		return
	case kindIIF, kindOIF, kindIIFIndex, kindOIFIndex:
		if t.putInterface(f, from, same) {
			return
		}
	case kindSaddr, kindDaddr:
		prefixes, ok := f.prefixes(from, to)
		if !ok {
			break
		}
		list := &t.rule.Daddr
		if f.kind == kindSaddr {
			list = &t.rule.Saddr
		}
		for _, p := range prefixes {
			*list = append(*list, p.String())
			t.say("%s %s", f.name, p)
		}
		return
	case kindCTState:
		if same && len(from) == 4 && f.mask == nil {
			t.states(binary.NativeEndian.Uint32(from))
			return
		}
	}
	t.unknown(f.name + " " + f.format(from))
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

// sets reads sets once.
type sets struct {
	conn  *nftables.Conn
	known map[string]*set
}

// set is the elements of a set as ranges; odd is one that has no such form: a map, or
// keys of several parts.
type set struct {
	ranges [][2][]byte
	odd    bool
}

const maxElements = 10_000

func (s *sets) get(table *nftables.Table, name string) (*set, error) {
	key := fmt.Sprint(table.Family, "\x00", table.Name, "\x00", name)
	if x, ok := s.known[key]; ok {
		return x, nil
	}
	nfset, err := s.conn.GetSetByName(table, name)
	if err != nil {
		return nil, err
	}
	elements, err := s.conn.GetSetElements(nfset)
	if err != nil {
		return nil, err
	}
	if len(elements) > maxElements {
		return nil, errors.New("a set with too many elements")
	}
	x := &set{odd: nfset.IsMap || nfset.Concatenation}
	if !x.odd {
		x.ranges, x.odd = ranges(elements, nfset.Interval)
	}
	s.known[key] = x
	return x, nil
}

// ranges joins the starts and ends of intervals; the kernel lists them in any order
// and an end is the first value after.
func ranges(elements []nftables.SetElement, interval bool) (all [][2][]byte, odd bool) {
	if !interval {
		for _, e := range elements {
			all = append(all, [2][]byte{e.Key, e.Key})
		}
		return all, false
	}
	sortElements(elements)
	var open []byte
	for _, e := range elements {
		switch {
		case e.IntervalEnd && open != nil:
			all = append(all, [2][]byte{open, before(e.Key)})
			open = nil
		case e.IntervalEnd: // the start of what is not in the set
		case open != nil:
			return nil, true
		default:
			open = e.Key
		}
	}
	if open != nil { // to the end of all values
		all = append(all, [2][]byte{open, bytes.Repeat([]byte{0xff}, len(open))})
	}
	return all, false
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
