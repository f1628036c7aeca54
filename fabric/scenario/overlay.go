package scenario

import (
	"path"
	"reflect"
)

// Overlay changes the settings of the switches or hosts whose names match.
// Later ones go over earlier ones.
type Overlay struct {
	// Match is a name, a pattern (leaf*), or a range (leaf0..leaf3).
	Match Select
	set   *node // the other keys
}

// overlay reads one entry of a list of overlays; its keys are read when it is applied.
func (d *decoder) overlay(n *node, o *Overlay, path string) error {
	if n.kind != mapKind {
		return errorAt(n.pos, path, "%s where a map is wanted", describe(n))
	}
	rest := &node{kind: mapKind, pos: n.pos}
	for _, e := range n.entries {
		if e.key != "match" {
			rest.entries = append(rest.entries, e)
			continue
		}
		d.pos[join(path, "match")] = e.val.pos
		if err := d.names(e.val, reflect.ValueOf(&o.Match).Elem(), join(path, "match")); err != nil {
			return err
		}
	}
	if len(o.Match) == 0 {
		return errorAt(n.pos, join(path, "match"), "missing: the names that it is for, as in leaf0 or leaf*")
	}
	o.set = rest
	return nil
}

// Matches reports whether a name is meant.
func (o *Overlay) Matches(name string) bool { return o.Match.Matches(name) }

// SwitchFor returns the settings of the switch of a name.
func (s *Scenario) SwitchFor(name string) Switch {
	sw := s.Switch.clone()
	for i := range s.Switches {
		if o := &s.Switches[i]; o.Matches(name) {
			o.apply(&sw)
		}
	}
	s.settle(&sw, nil)
	return sw
}

// HostFor returns the settings of the host of a name.
func (s *Scenario) HostFor(name string) Host {
	h := s.Host.clone()
	for i := range s.Hosts {
		if o := &s.Hosts[i]; o.Matches(name) {
			o.apply(&h)
		}
	}
	s.settle(nil, &h)
	return h
}

// apply sets what the overlay names; that it can be read was checked by Parse.
func (o *Overlay) apply(to any) {
	if o.set != nil {
		d := newDecoder()
		_ = d.structure(o.set, reflect.ValueOf(to).Elem(), "")
	}
}

// clone shares no slices with the original.
func (s *Switch) clone() Switch {
	c := *s
	c.Buffer.HeadroomByRate = append([]RateHeadroom(nil), s.Buffer.HeadroomByRate...)
	c.ECN.ByRate = append([]RateMark(nil), s.ECN.ByRate...)
	c.ECN.ByPriority = append([]PrioMark(nil), s.ECN.ByPriority...)
	return c
}

func (h *Host) clone() Host {
	c := *h
	c.DCQCN.Knobs = append([]Knob(nil), h.DCQCN.Knobs...)
	return c
}

// Matches reports whether one of the names, ranges or patterns means a name.
func (s Select) Matches(name string) bool {
	for _, p := range s {
		if p == name || p == "all" || p == "*" {
			return true
		}
		if lo, hi, prefix, ok := Span(p); ok {
			if n, ok := numbered(name, prefix); ok && n >= lo && n <= hi {
				return true
			}
			continue
		}
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}
