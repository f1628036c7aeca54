package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// maxOverride is the longest override that is read.
const maxOverride = 1 << 16

// override returns the tree with one key set: "path=value". The path goes
// through maps by key and through lists by number or name, as in
// switch.ecn.kmin, workload.long.bytes, workload[0].bytes, switches.leaf1.trust.
// It may begin below the top where that is clear: ecn.kmin.
func override(root *node, set string) (*node, error) {
	pos := position{file: "--set " + clip(oneLine(set))}
	path, text, ok := strings.Cut(set, "=")
	if !ok {
		return nil, errorAt(pos, "", "no =; an override is key.path=value")
	}
	if len(set) > maxOverride {
		return nil, errorAt(pos, "", "%d bytes; the limit is %d", len(set), maxOverride)
	}
	segs, err := splitPath(strings.TrimSpace(path))
	if err != nil {
		return nil, errorAt(pos, "", "%s", err)
	}
	if segs, err = complete(segs); err != nil {
		return nil, errorAt(pos, strings.TrimSpace(path), "%s", err)
	}
	s := setter{pos: pos, text: text}
	if val, err := readTree(pos.file, []byte(text)); err == nil && strings.TrimSpace(text) != "" {
		s.val = relocate(val, pos)
	}
	return s.set(root, reflect.TypeFor[Scenario](), "", segs)
}

// splitPath cuts a.b[2].c into its keys.
func splitPath(path string) ([]string, error) {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", "")
	segs := strings.Split(path, ".")
	if len(segs) > maxDepth {
		return nil, fmt.Errorf("a path of %d keys; the limit is %d", len(segs), maxDepth)
	}
	for _, s := range segs {
		if s == "" {
			return nil, fmt.Errorf("%q is not a path of keys, as in switch.ecn.kmin", clip(path))
		}
	}
	return segs, nil
}

// relocate copies a tree to another place.
func relocate(n *node, pos position) *node {
	c := &node{kind: n.kind, pos: pos, text: n.text}
	for _, e := range n.entries {
		c.entries = append(c.entries, entry{e.key, pos, relocate(e.val, pos)})
	}
	for _, x := range n.items {
		c.items = append(c.items, relocate(x, pos))
	}
	return c
}

// complete finds the full path of one that begins below the top.
func complete(segs []string) ([]string, error) {
	top := reflect.TypeFor[Scenario]()
	if _, ok := keyType(top, segs[0]); ok {
		return segs, nil
	}
	var found [][]string
	walkKeys(top, nil, func(path []string, t reflect.Type) {
		if path[len(path)-1] == segs[0] && reaches(t, segs[1:]) {
			found = append(found, append(append([]string(nil), path...), segs[1:]...))
		}
	})
	if _, ok := dcqcn.FindKnob(segs[0]); ok && len(segs) == 1 {
		found = append(found, []string{"host", "dcqcn", segs[0]})
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		names := make([]string, len(found))
		for i := range found {
			names[i] = strings.Join(found[i], ".")
		}
		return nil, fmt.Errorf("may mean %s", strings.Join(names, " or "))
	}
	var all []string
	walkKeys(top, nil, func(path []string, _ reflect.Type) { all = append(all, path[len(path)-1]) })
	if near := nearest(segs[0], all); near != "" {
		return nil, fmt.Errorf("unknown key; did you mean %s?", near)
	}
	return nil, fmt.Errorf("unknown key")
}

// walkKeys visits the keys that are reached through structs alone.
func walkKeys(t reflect.Type, path []string, visit func([]string, reflect.Type)) {
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("yaml")
		if key == "" || key == "*" {
			continue
		}
		ft := t.Field(i).Type
		at := append(append([]string(nil), path...), key)
		visit(at, ft)
		if isMap(ft) {
			walkKeys(ft, at, visit)
		}
	}
}

// isMap reports whether a type is a map of keys in files.
func isMap(t reflect.Type) bool {
	switch t {
	case typeQuantity, typeHeadroom, typeSeed, typeIgnored, typeOverlay:
		return false
	}
	return t.Kind() == reflect.Struct
}

// reaches reports whether the rest of a path can be followed in a type.
func reaches(t reflect.Type, segs []string) bool {
	if len(segs) == 0 {
		return true
	}
	if isMap(t) {
		ft, ok := keyType(t, segs[0])
		return ok && reaches(ft, segs[1:])
	}
	if t.Kind() == reflect.Array {
		_, err := strconv.ParseUint(segs[0], 10, 16)
		return err == nil && len(segs) == 1
	}
	return t.Kind() == reflect.Slice && t != typeSelect
}

// keyType returns the type of a key of a struct.
func keyType(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		switch t.Field(i).Tag.Get("yaml") {
		case key:
			return t.Field(i).Type, true
		case "*":
			if _, ok := dcqcn.FindKnob(key); ok {
				return reflect.TypeFor[string](), true
			}
		}
	}
	return nil, false
}

// setter changes one key of a tree, copying what is on the way.
type setter struct {
	pos  position
	text string
	val  *node // the text as YAML; nil if it is none
}

// value returns what is set: of a text key the text itself, where it is not
// the text of some YAML.
func (s *setter) value(t reflect.Type, path string) (*node, error) {
	switch {
	case t.Kind() == reflect.String && (s.val == nil || s.val.kind != scalarKind):
		return &node{kind: scalarKind, pos: s.pos, text: s.text}, nil
	case s.val != nil:
		return s.val, nil
	case strings.TrimSpace(s.text) == "":
		return &node{kind: nullKind, pos: s.pos}, nil
	}
	return nil, errorAt(s.pos, path, "%q is not a value", clip(s.text))
}

func (s *setter) set(n *node, t reflect.Type, path string, segs []string) (*node, error) {
	if len(segs) == 0 {
		return s.value(t, path)
	}
	if t.Kind() == reflect.Slice && t != typeSelect {
		return s.list(n, t.Elem(), path, segs)
	}
	if t == typeOverlay {
		// What keys are right is found when the overlay is read.
		return s.child(n, reflect.TypeFor[Ignored](), path, segs)
	}
	if isMap(t) {
		ft, ok := keyType(t, segs[0])
		if !ok {
			v := reflect.New(t).Elem()
			return nil, unknownKey(&entry{key: segs[0], pos: s.pos}, path, fields(v))
		}
		return s.child(n, ft, path, segs)
	}
	if t.Kind() == reflect.Array || t == typeIgnored {
		return s.child(n, typeIgnored, path, segs)
	}
	return nil, errorAt(s.pos, path, "has no keys below it, so %q cannot be set", clip(segs[0]))
}

func (s *setter) child(n *node, t reflect.Type, path string, segs []string) (*node, error) {
	if n == nil || n.kind == nullKind {
		n = &node{kind: mapKind, pos: s.pos}
	}
	if n.kind != mapKind {
		return nil, errorAt(s.pos, path, "is %s in the file, so %q cannot be set", describe(n), clip(segs[0]))
	}
	val, err := s.set(n.get(segs[0]), t, join(path, segs[0]), segs[1:])
	if err != nil {
		return nil, err
	}
	return n.with(segs[0], s.pos, val), nil
}

func (s *setter) list(n *node, elem reflect.Type, path string, segs []string) (*node, error) {
	if n == nil || n.kind != listKind || len(n.items) == 0 {
		return nil, errorAt(s.pos, path, "the file gives none, so %q cannot be set", clip(segs[0]))
	}
	i, err := findItem(n, segs[0])
	if err != nil {
		return nil, errorAt(s.pos, path, "%s", err)
	}
	val, err := s.set(n.items[i], elem, index(path, i), segs[1:])
	if err != nil {
		return nil, err
	}
	c := &node{kind: listKind, pos: n.pos, items: append([]*node(nil), n.items...)}
	c.items[i] = val
	return c, nil
}

// findItem finds an entry of a list by its number, or by its name, match or kind.
func findItem(n *node, seg string) (int, error) {
	if i, err := strconv.Atoi(seg); err == nil {
		if i < 0 || i >= len(n.items) {
			return 0, fmt.Errorf("no entry %d, it has 0 to %d", i, len(n.items)-1)
		}
		return i, nil
	}
	var names []string
	for _, key := range []string{"name", "match", "kind", "what"} {
		for i, item := range n.items {
			x := item.get(key)
			if x == nil || x.kind != scalarKind {
				continue
			}
			if x.text == seg {
				return i, nil
			}
			names = append(names, x.text)
		}
	}
	if len(names) > 8 {
		names = append(names[:8], "...")
	}
	return 0, fmt.Errorf("no entry %q, it has %s", clip(seg), strings.Join(names, ", "))
}
