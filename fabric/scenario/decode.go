package scenario

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

var (
	typeTime     = reflect.TypeFor[sim.Time]()
	typeRate     = reflect.TypeFor[sim.Rate]()
	typeBytes    = reflect.TypeFor[Bytes]()
	typeLength   = reflect.TypeFor[Length]()
	typeRatio    = reflect.TypeFor[Ratio]()
	typePrios    = reflect.TypeFor[Prios]()
	typeSelect   = reflect.TypeFor[Select]()
	typeQuantity = reflect.TypeFor[Quantity]()
	typeHeadroom = reflect.TypeFor[Headroom]()
	typeSeed     = reflect.TypeFor[ECMPSeed]()
	typeIgnored  = reflect.TypeFor[Ignored]()
	typeOverlay  = reflect.TypeFor[Overlay]()
)

// decoder fills the model from a tree. The walk is bounded although aliases
// share parts of the tree.
type decoder struct {
	pos   map[string]position
	keys  map[string][]string // keys given in each map, by its path
	steps int
}

func newDecoder() *decoder {
	return &decoder{pos: map[string]position{}, keys: map[string][]string{}}
}

// field is a key of a struct: its value and its tags.
type field struct {
	key string
	val reflect.Value
	tag reflect.StructTag
}

// fields lists the keys of a struct in the order of the model.
func fields(v reflect.Value) []field {
	var out []field
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" || !f.IsExported() {
			continue
		}
		out = append(out, field{key, v.Field(i), f.Tag})
	}
	return out
}

// presetter is a part with a key "preset": its values stand in for those that
// the file does not give beside it.
type presetter interface{ applyPreset(name string) error }

func (d *decoder) structure(n *node, v reflect.Value, path string) error {
	if n.kind == nullKind {
		return nil
	}
	if n.kind != mapKind {
		return errorAt(n.pos, path, "%s where a map is wanted", describe(n))
	}
	if p, ok := v.Addr().Interface().(presetter); ok {
		if x := n.get("preset"); x != nil && x.kind == scalarKind {
			if err := p.applyPreset(x.text); err != nil {
				return errorAt(x.pos, join(path, "preset"), "%s", err)
			}
		}
	}
	fs := fields(v)
	for i := range n.entries {
		e := &n.entries[i]
		p := join(path, e.key)
		f := lookup(fs, e.key)
		if f == nil {
			if any := lookup(fs, "*"); any != nil {
				if err := d.knob(e, any.val, path, fs); err != nil {
					return err
				}
				continue
			}
			return unknownKey(e, path, fs)
		}
		d.pos[p] = e.val.pos
		d.keys[path] = append(d.keys[path], e.key)
		if err := d.value(e.val, f.val, f.tag, p); err != nil {
			return err
		}
	}
	return nil
}

func lookup(fs []field, key string) *field {
	for i := range fs {
		if fs[i].key == key {
			return &fs[i]
		}
	}
	return nil
}

func unknownKey(e *entry, path string, fs []field) error {
	var names []string
	for i := range fs {
		if fs[i].key != "*" {
			names = append(names, fs[i].key)
		}
	}
	if len(names) < len(fs) {
		names = append(names, knobNames()...)
	}
	if near := nearest(e.key, names); near != "" {
		return errorAt(e.pos, join(path, clip(e.key)), "unknown key; did you mean %s?", near)
	}
	return errorAt(e.pos, join(path, clip(e.key)), "unknown key; keys here: %s", strings.Join(names, ", "))
}

// knob keeps a key that is the name of a knob, or its symbol in the paper.
func (d *decoder) knob(e *entry, v reflect.Value, path string, fs []field) error {
	knob, ok := dcqcn.FindKnob(e.key)
	if !ok {
		return unknownKey(e, path, fs)
	}
	path = join(path, knob.Name)
	if e.val.kind != scalarKind {
		return errorAt(e.val.pos, path, "%s where a value is wanted", describe(e.val))
	}
	d.pos[path] = e.val.pos
	list := v.Interface().([]Knob)
	out := make([]Knob, 0, len(list)+1)
	for _, k := range list {
		if k.Name != knob.Name {
			out = append(out, k)
		}
	}
	v.Set(reflect.ValueOf(append(out, Knob{knob.Name, e.val.text})))
	return nil
}

// describe names what stands where something else is wanted.
func describe(n *node) string {
	if n.kind == scalarKind {
		return strconv.Quote(clip(n.text))
	}
	return n.kind.String()
}

func (d *decoder) value(n *node, v reflect.Value, tag reflect.StructTag, path string) error {
	if d.steps++; d.steps > maxNodes {
		return errorAt(n.pos, path, "more than %d values", maxNodes)
	}
	switch v.Type() {
	case typePrios:
		return d.prios(n, v, path)
	case typeSelect:
		return d.names(n, v, path)
	case typeIgnored:
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		switch v.Type() {
		case typeQuantity, typeHeadroom, typeSeed:
		default:
			return d.structure(n, v, path)
		}
	case reflect.Array:
		return d.array(n, v, tag, path)
	case reflect.Slice:
		return d.list(n, v, tag, path)
	default: // a value without keys
	}
	if n.kind != scalarKind {
		return errorAt(n.pos, path, "%s where a value is wanted", describe(n))
	}
	if err := scalar(n.text, v, tag); err != nil {
		return errorAt(n.pos, path, "%s", err)
	}
	return nil
}

// list replaces what the default has.
func (d *decoder) list(n *node, v reflect.Value, tag reflect.StructTag, path string) error {
	if n.kind == nullKind {
		v.SetZero()
		return nil
	}
	if n.kind != listKind {
		return errorAt(n.pos, path, "%s where a list is wanted", describe(n))
	}
	if limit, err := strconv.Atoi(tag.Get("items")); err == nil && len(n.items) > limit {
		return errorAt(n.pos, path, "%d entries; the limit is %d", len(n.items), limit)
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		p, e := index(path, i), out.Index(i)
		d.pos[p] = item.pos
		if v.Type().Elem() == typeOverlay {
			if err := d.overlay(item, e.Addr().Interface().(*Overlay), p); err != nil {
				return err
			}
			continue
		}
		if item.kind == nullKind {
			return errorAt(item.pos, p, "an empty entry")
		}
		if def, ok := e.Addr().Interface().(interface{ setDefaults() }); ok {
			def.setDefaults()
		}
		if err := d.value(item, e, tag, p); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

// array changes those elements whose numbers the map names.
func (d *decoder) array(n *node, v reflect.Value, tag reflect.StructTag, path string) error {
	if n.kind == nullKind {
		return nil
	}
	if n.kind != mapKind {
		return errorAt(n.pos, path, "%s where a map is wanted, as in {3: 1}", describe(n))
	}
	for i := range n.entries {
		e := &n.entries[i]
		p := join(path, e.key)
		k, err := strconv.ParseUint(e.key, 10, 16)
		if err != nil || int(k) >= v.Len() {
			return errorAt(e.pos, path, "key %q is not a number from 0 to %d", clip(e.key), v.Len()-1)
		}
		if e.val.kind != scalarKind {
			return errorAt(e.val.pos, p, "%s where a value is wanted", describe(e.val))
		}
		d.pos[p] = e.val.pos
		if v.Type().Elem().Kind() == reflect.Uint8 {
			tag = `min:"0" max:"7"`
		}
		if err := scalar(e.val.text, v.Index(int(k)), tag); err != nil {
			return errorAt(e.val.pos, p, "%s", err)
		}
	}
	return nil
}

func (d *decoder) prios(n *node, v reflect.Value, path string) error {
	var set Prios
	items := n.items
	switch n.kind {
	case nullKind:
	case listKind:
	case scalarKind:
		switch n.text {
		case "all":
			set = 0xff
		case "none":
		default:
			items = []*node{n}
		}
	default:
		return errorAt(n.pos, path, "%s where priorities are wanted, as in [3, 4], all or none", describe(n))
	}
	for _, item := range items {
		p, err := strconv.ParseUint(item.text, 10, 8)
		if item.kind != scalarKind || err != nil || p > 7 {
			return errorAt(item.pos, path, "%s is not a priority from 0 to 7", describe(item))
		}
		set |= 1 << p
	}
	v.Set(reflect.ValueOf(set))
	return nil
}

func (d *decoder) names(n *node, v reflect.Value, path string) error {
	var out Select
	switch n.kind {
	case nullKind:
	case scalarKind:
		out = Select{n.text}
	case listKind:
		if len(n.items) > maxSelect {
			return errorAt(n.pos, path, "%d names; the limit is %d; use ranges, as in host0..host99", len(n.items), maxSelect)
		}
		for i, item := range n.items {
			if d.steps++; d.steps > maxNodes {
				return errorAt(n.pos, path, "more than %d values", maxNodes)
			}
			if item.kind != scalarKind {
				return errorAt(item.pos, index(path, i), "%s where a name is wanted", describe(item))
			}
			out = append(out, item.text)
		}
	default:
		return errorAt(n.pos, path, "%s where names are wanted, as in host0 or [host0, host8..host23]", describe(n))
	}
	v.Set(reflect.ValueOf(out))
	return nil
}
