package nft

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// maxWays bounds into how many rules a lookup is split.
const maxWays = 256

// lookup takes a lookup into a set. Where the set is a verdict map, or cannot be told as
// one condition, the rule has several ways, and each notes one element.
func (t *translator) lookup(e *expr.Lookup) []func(*translator) {
	s, err := t.sets.set(t.chain, e.SetName)
	if err != nil {
		t.unknown(fmt.Sprintf("@%s: %v", e.SetName, err))
		clear(t.regs)
		return nil
	}
	fields, ok := t.fields(reg(e.SourceRegister), s)
	switch {
	case s.odd || !ok || e.IsDestRegSet && e.DestRegister != unix.NFT_REG_VERDICT:
		name := "a register"
		if len(fields) > 0 {
			name = fields[0].name
		}
		t.unknown(name + " @" + e.SetName)
		if e.IsDestRegSet {
			delete(t.regs, reg(e.DestRegister))
		}
		return nil
	case e.Invert && len(fields) == 1:
		t.putNot(fields[0], s.spans(fields[0])...)
		return nil
	case e.Invert:
		t.unknown(fields[0].name + " … != @" + e.SetName)
		return nil
	case len(s.elements) == 0:
		t.unknown(fields[0].name + " of an empty set")
		return nil
	case e.IsDestRegSet || len(fields) > 1 || !fields[0].unites():
		if len(s.elements) > maxWays {
			t.unknown(fmt.Sprintf("%s @%s of %d elements", fields[0].name, e.SetName, len(s.elements)))
			return nil
		}
		return ways(s, fields, e.IsDestRegSet)
	}
	t.put(fields[0], s.spans(fields[0])...)
	return nil
}

// unites reports whether a rule can have several values of a field.
func (f field) unites() bool {
	return f.kind == kindSPort || f.kind == kindDPort || f.kind == kindSaddr || f.kind == kindDaddr
}

// fields are what a lookup compares: one field, or as many as the key is long, each
// from a multiple of 4 bytes on.
func (t *translator) fields(r uint32, s *set) ([]field, bool) {
	var all []field
	for left := s.keyLen; left > 0; {
		f, ok := t.regs[r]
		if !ok {
			return all, false
		}
		all = append(all, f)
		size := (f.size + 3) &^ 3
		if size == 0 || left <= size {
			return all, left <= size || len(all) == 1
		}
		left -= size
		r += uint32(size / 4)
	}
	return all, len(all) > 0
}

func ways(s *set, fields []field, verdicts bool) []func(*translator) {
	var all []func(*translator)
	var others []span
	for _, e := range s.elements {
		if !e.all {
			others = append(others, span{e.from, e.to})
		}
	}
	for _, e := range s.elements {
		all = append(all, func(t *translator) {
			switch f := fields[0]; {
			case !e.all:
				e.put(t, fields)
			case len(fields) == 1 && (f.kind == kindSPort || f.kind == kindDPort):
				t.putNot(f, others...)
			default:
				t.unknown(f.name + " of no other element")
			}
			if verdicts {
				t.verdict(e.verdict, e.chain)
			}
		})
	}
	return all
}

// put notes that fields are those of an element.
func (e *element) put(t *translator, fields []field) {
	from, to := e.from, e.to
	for _, f := range fields {
		size := f.size
		if len(fields) == 1 {
			size = len(from)
		}
		if size > len(from) || size > len(to) {
			t.unknown(f.name + " of a short element")
			return
		}
		t.put(f, span{from[:size], to[:size]})
		from, to = from[min((size+3)&^3, len(from)):], to[min((size+3)&^3, len(to)):]
	}
}

type setKey struct {
	chainKey
	set string
}

// set is the elements of a set; odd is one that has no such form.
type set struct {
	keyLen   int
	elements []element
	odd      bool
}

// element is a range of keys, of a map with its verdict; all is the one that takes what
// no other takes.
type element struct {
	from, to []byte
	all      bool
	verdict  expr.VerdictKind
	chain    string
}

// spans are the keys of a set of one field.
func (s *set) spans(f field) []span {
	var all []span
	for _, e := range s.elements {
		if e.all {
			e.from, e.to = make([]byte, f.size), bytes.Repeat([]byte{0xff}, f.size)
		}
		all = append(all, span{e.from, e.to})
	}
	return all
}

// set returns a set of a chain's table.
func (r *reader) set(of chainKey, name string) (*set, error) {
	of.name = ""
	key := setKey{of, name}
	if s, ok := r.sets[key]; ok {
		return s, nil
	}
	if r.sets == nil {
		r.sets = map[setKey]*set{}
	}
	if len(r.sets) >= maxSets {
		return nil, fmt.Errorf("more than %d sets", maxSets)
	}
	kinds, err := r.kindsOfSets()
	if err != nil {
		return nil, err
	}
	kind, ok := kinds[key]
	if !ok {
		return nil, errors.New("no such set")
	}
	s := &set{keyLen: kind.keyLen}
	var raw []rawElement
	attrs := []netlink.Attribute{
		{Type: unix.NFTA_SET_ELEM_LIST_TABLE, Data: append([]byte(of.table), 0)},
		{Type: unix.NFTA_SET_ELEM_LIST_SET, Data: append([]byte(name), 0)},
	}
	err = r.dump(unix.NFT_MSG_GETSETELEM, of.family, attrs, func(_ byte, d *netlink.AttributeDecoder) error {
		for d.Next() {
			if d.Type() == unix.NFTA_SET_ELEM_LIST_ELEMENTS {
				d.Nested(func(d *netlink.AttributeDecoder) error {
					for d.Next() {
						d.Nested(func(d *netlink.AttributeDecoder) error {
							raw = append(raw, elementOf(d))
							return nil
						})
					}
					return nil
				})
			}
		}
		if len(raw) > maxElements {
			return fmt.Errorf("a set with more than %d elements", maxElements)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.elements, s.odd = join(raw, kind.flags&unix.NFT_SET_INTERVAL != 0)
	r.sets[key] = s
	return s, nil
}

// setKind is a set without its elements.
type setKind struct {
	keyLen int
	flags  uint32
}

// kindsOfSets asks for the sets of all tables, once.
func (r *reader) kindsOfSets() (map[setKey]setKind, error) {
	if r.kinds != nil {
		return r.kinds, nil
	}
	all := map[setKey]setKind{}
	err := r.dump(unix.NFT_MSG_GETSET, 0, nil, func(family byte, d *netlink.AttributeDecoder) error {
		key, kind := setKey{chainKey: chainKey{family: family}}, setKind{}
		for d.Next() {
			switch d.Type() {
			case unix.NFTA_SET_TABLE:
				key.table = d.String()
			case unix.NFTA_SET_NAME:
				key.set = d.String()
			case unix.NFTA_SET_FLAGS:
				kind.flags = d.Uint32()
			case unix.NFTA_SET_KEY_LEN:
				kind.keyLen = int(d.Uint32())
			}
		}
		all[key] = kind
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.kinds = all
	return all, nil
}

// rawElement is an element as the kernel has it: in a set of intervals, the start or the
// end of one.
type rawElement struct {
	element
	end bool
}

func elementOf(d *netlink.AttributeDecoder) rawElement {
	const flagEnd, flagAll, keyEnd = 1, 2, 10
	var e rawElement
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_SET_ELEM_KEY:
			e.from = value(d)
		case keyEnd:
			e.to = value(d)
		case unix.NFTA_SET_ELEM_FLAGS:
			f := d.Uint32()
			e.end, e.all = f&flagEnd != 0, f&flagAll != 0
		case unix.NFTA_SET_ELEM_DATA:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if d.Type() == unix.NFTA_DATA_VERDICT {
						d.Nested(func(d *netlink.AttributeDecoder) error {
							for d.Next() {
								switch d.Type() {
								case unix.NFTA_VERDICT_CODE:
									e.verdict = expr.VerdictKind(int32(d.Uint32()))
								case unix.NFTA_VERDICT_CHAIN:
									e.chain = d.String()
								}
							}
							return nil
						})
					}
				}
				return nil
			})
		}
	}
	return e
}

func value(d *netlink.AttributeDecoder) (b []byte) {
	d.Nested(func(d *netlink.AttributeDecoder) error {
		for d.Next() {
			if d.Type() == unix.NFTA_DATA_VALUE {
				b = d.Bytes()
			}
		}
		return nil
	})
	return b
}

// join makes elements of the starts and ends of intervals, which the kernel lists in any
// order; an end is the first value after. Elements of several fields have both ends.
func join(raw []rawElement, interval bool) (all []element, odd bool) {
	slices.SortStableFunc(raw, func(a, b rawElement) int {
		if a.all != b.all { // last: what no other takes
			return map[bool]int{true: 1, false: -1}[a.all]
		}
		if c := bytes.Compare(a.from, b.from); c != 0 {
			return c
		}
		switch {
		case a.end == b.end:
			return 0
		case a.end:
			return -1
		}
		return 1
	})
	var open *element
	for i := range raw {
		e := &raw[i]
		switch {
		case e.all:
			all = append(all, e.element)
		case e.to != nil && len(e.to) == len(e.from):
			all = append(all, e.element)
		case !interval:
			e.to = e.from
			all = append(all, e.element)
		case e.end && open != nil:
			open.to = before(e.from)
			all = append(all, *open)
			open = nil
		case e.end: // the start of what is not in the set
		case open != nil:
			return nil, true
		default:
			open = &e.element
		}
	}
	if open != nil { // to the end of all values
		open.to = bytes.Repeat([]byte{0xff}, len(open.from))
		all = append(all, *open)
	}
	return all, false
}
