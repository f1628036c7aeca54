package scenario

// kind is what a node of the file is.
type kind uint8

const (
	nullKind kind = iota
	scalarKind
	mapKind
	listKind
)

func (k kind) String() string {
	return [...]string{"nothing", "a value", "a map", "a list"}[k]
}

// node is a part of a file, independent of the library that read it. Aliases
// share nodes, so a tree is never changed in place below its root maps: the
// override code copies what it changes.
type node struct {
	kind    kind
	pos     position
	text    string         // of a scalar
	bare    bool           // a number or truth value of JSON, not a text
	entries []entry        // of a map, in the order of the file
	items   []*node        // of a list
	places  map[string]int // index of entries, of large maps; nil: not made
}

type entry struct {
	key string
	pos position
	val *node
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if len(n.entries) > 32 {
		if n.places == nil {
			n.places = make(map[string]int, len(n.entries))
			for i := range n.entries {
				n.places[n.entries[i].key] = i
			}
		}
		if i, ok := n.places[key]; ok {
			return n.entries[i].val
		}
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].val
		}
	}
	return nil
}

// with returns a copy of a map in which key has another value.
func (n *node) with(key string, pos position, val *node) *node {
	c := &node{kind: mapKind, pos: n.pos, entries: append([]entry(nil), n.entries...)}
	for i := range c.entries {
		if c.entries[i].key == key {
			c.entries[i].val, c.entries[i].pos = val, pos
			return c
		}
	}
	c.entries = append(c.entries, entry{key, pos, val})
	return c
}
