package scenario

import (
	"slices"
	"strings"
	"unicode"
)

// shapeKeys lists the keys of a topology that each kind uses, beside those that
// all use.
var shapeKeys = map[Shape][]string{
	Star:       {"hosts", "nics"},
	Dumbbell:   {"left", "right", "uplink_rate", "uplink_delay", "uplink_cable"},
	ParkingLot: {"switches", "hosts_per_switch", "uplink_rate", "uplink_delay", "uplink_cable"},
	SpineLeaf:  {"leaves", "spines", "hosts_per_leaf", "uplinks_per_spine", "uplink_rate", "uplink_delay", "uplink_cable", "nics"},
	FatTree:    {"k", "nics", "oversubscription", "uplink_rate", "uplink_delay", "uplink_cable"},
	ThreeTier: {
		"pods", "leaves_per_pod", "aggs_per_pod", "cores", "hosts_per_leaf", "uplinks_per_agg", "links_per_core", "nics",
		"uplink_rate", "uplink_delay", "uplink_cable", "core_rate", "core_delay", "core_cable",
	},
	Rail:     {"nics", "units", "hosts_per_unit", "spines", "uplinks_per_spine", "uplink_rate", "uplink_delay", "uplink_cable"},
	Ring:     {"switches", "hosts_per_switch", "one_way", "uplink_rate", "uplink_delay", "uplink_cable"},
	Bounce:   {"hosts_per_leaf"},
	Explicit: {"nodes", "links"},
	FromFile: {"file", "format"},
}

var sharedShapeKeys = []string{"kind", "rate", "delay", "cable", "error_rate", "subnets", "routes"}

// unusedKeys returns the keys of a map of the file that are not among those
// used, in the order of the file.
func (s *Scenario) unusedKeys(path string, used ...[]string) []string {
	var out []string
next:
	for _, key := range s.read.keys[path] {
		for _, list := range used {
			if slices.Contains(list, key) {
				continue next
			}
		}
		out = append(out, key)
	}
	return out
}

func (s *Scenario) checkTopology() error {
	c := checks{s: s, within: []string{"topology"}}
	t := &s.Topology
	if c.given("delay") && t.Cable > 0 {
		c.fail("cable", "delay is given too; give one of them")
	}
	if c.given("uplink_delay") && t.UplinkCable > 0 {
		c.fail("uplink_cable", "uplink_delay is given too; give one of them")
	}
	if t.Rate == 0 {
		c.fail("rate", "0 carries nothing")
	}
	if c.given("core_delay") && t.CoreCable > 0 {
		c.fail("core_cable", "core_delay is given too; give one of them")
	}
	switch t.Kind {
	case Explicit:
		c.checkExplicit(t)
	case FromFile:
		if t.File == "" {
			c.fail("file", "missing: kind is file")
		}
	case Star, Dumbbell, ParkingLot, SpineLeaf, FatTree, ThreeTier, Rail, Ring, Bounce:
		c.checkShape(t)
	}
	if t.Kind != FromFile && t.File != "" {
		c.fail("file", "kind is %s; a file needs kind: file", t.Kind)
	}
	for i := range t.Routes {
		r, path := &t.Routes[i], index("routes", i)
		for _, m := range []struct {
			key     string
			missing bool
		}{{"switch", r.Switch == ""}, {"to", len(r.To) == 0}, {"via", len(r.Via) == 0}} {
			if m.missing {
				c.fail(join(path, m.key), "missing")
			}
		}
	}
	return c.err
}

// checkShape lets the generator check its parameters.
func (c *checks) checkShape(t *Topology) {
	if err := t.shape().Validate(); err != nil {
		// "spine-leaf: Leaves 0 is less than 1": the field is the key in Go's style.
		_, what, _ := strings.Cut(err.Error(), ": ")
		field, rest, _ := strings.Cut(what, " ")
		if key := snake(field); slices.Contains(shapeKeys[t.Kind], key) || slices.Contains(sharedShapeKeys, key) {
			c.fail(key, "%s", rest)
			return
		}
		c.fail("kind", "%s", err)
	}
}

// snake turns HostsPerLeaf into hosts_per_leaf.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) {
			if i > 0 && !unicode.IsUpper(rune(s[i-1])) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *checks) checkExplicit(t *Topology) {
	if len(t.Nodes) == 0 {
		c.fail("nodes", "missing: kind is explicit")
	}
	if len(t.Links) == 0 {
		c.fail("links", "missing: kind is explicit")
	}
	kinds := make(map[string]string, len(t.Nodes))
	linked := make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		path := index("nodes", i)
		if !goodName(n.Name) {
			c.fail(join(path, "name"), "%q is not a name of letters, digits, - and _", clip(n.Name))
		}
		if _, ok := kinds[n.Name]; ok {
			c.fail(join(path, "name"), "%q is there already", clip(n.Name))
		}
		if n.Kind == "" {
			c.fail(join(path, "kind"), "missing: host or switch")
		}
		kinds[n.Name] = n.Kind
	}
	names := make([]string, len(t.Nodes))
	for i := range t.Nodes {
		names[i] = t.Nodes[i].Name
	}
	type pair struct{ a, b string }
	seen := map[pair]int{}
	for i := range t.Links {
		l, path := &t.Links[i], index("links", i)
		for _, end := range []struct{ key, name string }{{"a", l.A}, {"b", l.B}} {
			if _, ok := kinds[end.name]; !ok {
				c.unknown(join(path, end.key), "node", end.name, names)
			}
			linked[end.name]++
		}
		if l.A == l.B {
			c.fail(join(path, "b"), "joins %s to itself", clip(l.A))
		}
		p := pair{l.A, l.B}
		if p.b < p.a {
			p.a, p.b = p.b, p.a
		}
		if j, ok := seen[p]; ok {
			c.fail(path, "joins %s and %s, as links[%d] does; give count for parallel links", clip(l.A), clip(l.B), j)
		}
		seen[p] = i
		if l.Cable > 0 && c.given(join(path, "delay")) {
			c.fail(join(path, "cable"), "delay is given too; give one of them")
		}
	}
	for i, n := range t.Nodes {
		if linked[n.Name] == 0 {
			c.fail(join(index("nodes", i), "name"), "%s has no link", clip(n.Name))
		}
	}
}

// unknown fails with the nearest of the names that there are.
func (c *checks) unknown(key, what, name string, names []string) {
	if name == "" {
		c.fail(key, "missing: the name of a %s", what)
		return
	}
	if near := nearest(name, names); near != "" {
		c.fail(key, "there is no %s %q; did you mean %s?", what, clip(name), near)
		return
	}
	c.fail(key, "there is no %s %q", what, clip(name))
}

// goodName reports whether a name can be used in selections and file names.
func goodName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" ||
		!strings.ContainsAny(s, "/*?[]., \t") && strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0
}
