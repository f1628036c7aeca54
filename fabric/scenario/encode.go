package scenario

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// YAML returns the scenario as a file: every key that has a meaning for the
// kinds of topology, workloads and faults in it, with its effective value.
// Reading it gives the same scenario.
func (s *Scenario) YAML() []byte { return s.encode(false) }

// Changes returns the keys that differ from Default, as a file.
func (s *Scenario) Changes() []byte { return s.encode(true) }

func (s *Scenario) encode(changes bool) []byte {
	e := encoder{changes: changes}
	e.structure(reflect.ValueOf(s).Elem(), reflect.ValueOf(Default()).Elem(), 0)
	return e.b
}

// encoder writes the model. Lists of maps are written one entry a line, unless
// entries are long.
type encoder struct {
	b       []byte
	changes bool
}

func (e *encoder) structure(v, def reflect.Value, depth int) {
	def = presetOf(v, def)
	used := usedKeys(v)
	for _, f := range fields(v) {
		if f.val.Type() == typeIgnored || used != nil && !used[f.key] {
			continue
		}
		if f.key == "*" {
			for _, k := range f.val.Interface().([]Knob) {
				e.line(depth, k.Name, quote(k.Value))
			}
			continue
		}
		var d reflect.Value
		if def.IsValid() {
			d = lookup(fields(def), f.key).val
		}
		if e.changes && d.IsValid() && reflect.DeepEqual(f.val.Interface(), d.Interface()) {
			continue
		}
		e.field(f.key, f.val, d, depth)
	}
}

func (e *encoder) field(key string, v, def reflect.Value, depth int) {
	switch {
	case isMap(v.Type()):
		e.line(depth, key, "")
		n := len(e.b)
		e.structure(v, def, depth+1)
		if len(e.b) == n {
			e.b = append(e.b[:n-1], " {}\n"...)
		}
	case v.Kind() == reflect.Slice && v.Type() != typeSelect:
		e.list(key, v, depth)
	case v.Kind() == reflect.Array:
		e.line(depth, key, e.array(v, def))
	default:
		if text, ok := inline(v); ok {
			e.line(depth, key, text)
		}
	}
}

// presetOf returns the values that a part has where the file gives only its preset.
func presetOf(v, def reflect.Value) reflect.Value {
	if _, ok := v.Addr().Interface().(presetter); !ok || !def.IsValid() {
		return def
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(def)
	p := lookup(fields(v), "preset").val
	_ = c.Addr().Interface().(presetter).applyPreset(p.String()) // it was read from a file
	lookup(fields(c), "preset").val.Set(lookup(fields(def), "preset").val)
	return c
}

// array writes the elements that differ from the default, or all.
func (e *encoder) array(v, def reflect.Value) string {
	var parts []string
	for i := range v.Len() {
		x := v.Index(i)
		if def.IsValid() && x.Equal(def.Index(i)) || x.Type() == typeRatio && x.IsZero() {
			continue
		}
		text, _ := inline(x)
		parts = append(parts, strconv.Itoa(i)+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (e *encoder) list(key string, v reflect.Value, depth int) {
	if v.Len() == 0 {
		if !e.changes {
			e.line(depth, key, "[]")
		}
		return
	}
	e.line(depth, key, "")
	for i := range v.Len() {
		e.indent(depth + 1)
		x := v.Index(i)
		e.b = append(e.b, "- "...)
		if x.Type() == typeOverlay {
			o := x.Interface().(Overlay)
			e.b = append(e.b, "{match: "...)
			e.b = append(e.b, selectText(o.Match)...)
			for _, en := range o.set.entries {
				e.b = append(e.b, ", "+quote(en.key)+": "+en.val.flow()...)
			}
			e.b = append(e.b, "}\n"...)
			continue
		}
		e.b = append(e.b, e.flow(x)...)
		e.b = append(e.b, '\n')
	}
}

// flow writes a struct on one line: what differs from a new entry.
func (e *encoder) flow(v reflect.Value) string {
	fresh := reflect.New(v.Type())
	if def, ok := fresh.Interface().(interface{ setDefaults() }); ok {
		def.setDefaults()
	}
	defaults := fields(fresh.Elem())
	var parts []string
	for i, f := range fields(v) {
		if reflect.DeepEqual(f.val.Interface(), defaults[i].val.Interface()) {
			continue
		}
		text, ok := inline(f.val)
		if f.val.Kind() == reflect.Slice && f.val.Type() != typeSelect {
			var items []string
			for j := range f.val.Len() {
				items = append(items, e.flow(f.val.Index(j)))
			}
			text, ok = "["+strings.Join(items, ", ")+"]", true
		}
		if ok {
			parts = append(parts, f.key+": "+text)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// inline writes a value that has no keys; ok is false for what is not given.
func inline(v reflect.Value) (text string, ok bool) {
	switch x := v.Interface().(type) {
	case sim.Time:
		return TimeText(x), true
	case sim.Rate:
		return RateText(x), true
	case Quantity:
		return x.text, x.Given()
	case Select:
		return selectText(x), true
	case Prios:
		return x.String(), true
	case Bytes:
		return x.String(), true
	case Length:
		return x.String(), true
	case Ratio:
		return x.String(), true
	case Headroom:
		return x.String(), true
	case ECMPSeed:
		return x.String(), true
	}
	switch v.Kind() {
	case reflect.String:
		return quote(v.String()), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), true
	default:
		return "", false
	}
}

func selectText(s Select) string {
	if len(s) == 1 {
		return quote(s[0])
	}
	parts := make([]string, len(s))
	for i := range s {
		parts[i] = quote(s[i])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// flow writes a tree on one line.
func (n *node) flow() string {
	var parts []string
	switch n.kind {
	case scalarKind:
		if n.text == "true" || n.text == "false" {
			return n.text // one is as good as the other here: texts are what is read
		}
		return quote(n.text)
	case mapKind:
		for _, e := range n.entries {
			parts = append(parts, quote(e.key)+": "+e.val.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case listKind:
		for _, x := range n.items {
			parts = append(parts, x.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case nullKind:
	}
	return "null"
}

func (e *encoder) indent(depth int) {
	for range depth {
		e.b = append(e.b, "  "...)
	}
}

func (e *encoder) line(depth int, key, text string) {
	e.indent(depth)
	e.b = append(e.b, key...)
	e.b = append(e.b, ':')
	if text != "" {
		e.b = append(e.b, ' ')
		e.b = append(e.b, text...)
	}
	e.b = append(e.b, '\n')
}

// plain are the characters of texts that YAML takes without quotes anywhere.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+*%"

// quote writes a text so that YAML reads the same.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "", "null", "~", "true", "false", "yes", "no", "on", "off", ".inf", ".nan":
		return strconv.Quote(s)
	}
	if strings.Trim(s, plain) == "" && strings.IndexByte("-.+*%0123456789", s[0]) < 0 || isNumberText(s) {
		return s
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "")
	}
	return strconv.Quote(s)
}

// isNumberText reports whether a text is a number with or without unit, which
// reads back as it is: this package reads the text of a number, not its value.
func isNumberText(s string) bool {
	num, suffix := splitNumber(s)
	if _, ok := decimal(num); !ok || num+suffix != s || strings.IndexByte(".+", num[0]) >= 0 {
		return false
	}
	if digits := strings.TrimLeft(num, "-"); len(digits) > 1 && digits[0] == '0' && digits[1] != '.' {
		return false
	}
	if suffix == "" || suffix == "%" {
		return true
	}
	for _, k := range []*quantityKind{timeKind, rateKind, byteKind, lengthKind} {
		for _, u := range k.units {
			if u.name == suffix {
				return true
			}
		}
	}
	return false
}

// usedKeys returns the keys that mean something for the kind of a part; nil: all.
func usedKeys(v reflect.Value) map[string]bool {
	t, ok := v.Addr().Interface().(*Topology)
	if !ok {
		return nil
	}
	used := map[string]bool{}
	for _, list := range [][]string{sharedShapeKeys, shapeKeys[t.Kind]} {
		for _, k := range list {
			used[k] = true
		}
	}
	// Of a delay and a length, one is given.
	for _, pair := range [][2]string{{"delay", "cable"}, {"uplink_delay", "uplink_cable"}, {"core_delay", "core_cable"}} {
		fs := fields(v)
		if lookup(fs, pair[1]).val.IsZero() {
			delete(used, pair[1])
		} else {
			delete(used, pair[0])
		}
	}
	return used
}
