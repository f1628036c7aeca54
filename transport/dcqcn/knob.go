package dcqcn

import (
	"fmt"
	"strings"
)

// Knob is one parameter under the name that files, tools and documents use.
type Knob struct {
	// Name is mlxconfig's in lower case, or in the same style a name for a rule
	// on which the published versions differ.
	Name string
	// Paper is the symbol in SIGCOMM'15 and CoNEXT'16, or empty.
	Paper string
	// Unit of a bare number: "us", "Mb/s", "64 B", "%", … or empty.
	Unit string
	// Values are the words of a choice, in the order of their numbers.
	Values []string
	// Doc says in a line what it does.
	Doc string

	form  form
	scale int64 // base units (ns, bit/s, bytes) in one Unit
	// Limits in base units. Where off is set, 0 is allowed beside them.
	least, most int64
	off         bool

	get func(p *Params) int64
	set func(p *Params, base int64)
	div func(p *Params) *uint32 // of a rate that may be a share of the line
}

// form is how the value of a knob is written.
type form uint8

const (
	number form = iota
	toggle
	choice
	duration
	rate
	size
	weight // dce_tcp_g
)

// Set changes the knob to a value as text: a bare number of Unit, as mlxconfig
// takes it, or a number with its unit ("55us", "40Mbps", "10MB"), "1/256" for
// g, "line/5000" for a rate that follows the line rate, true or false, one of
// Values. The error is one line with the knob, the value and what is allowed;
// it leaves p as it was.
func (k Knob) Set(p *Params, text string) error {
	text = strings.TrimSpace(text)
	if k.form == weight {
		return k.setWeight(p, text)
	}
	if d, ok := strings.CutPrefix(text, "line/"); ok && k.div != nil {
		return k.setShare(p, d)
	}
	v, ok := k.parse(text)
	if !ok {
		return fmt.Errorf("%s: %q is not %s", k.Name, text, k.wants())
	}
	return k.setBase(p, v)
}

// SetInt changes the knob to a number of Unit: what Set does with a bare number.
func (k Knob) SetInt(p *Params, v int64) error {
	if k.form == weight {
		return k.setWeight(p, fmt.Sprint(v))
	}
	base, ok := times(v, k.scale)
	if !ok {
		return k.outside(fmt.Sprint(v))
	}
	return k.setBase(p, base)
}

func (k Knob) setBase(p *Params, base int64) error {
	if !k.allows(base) {
		return k.outside(k.format(base))
	}
	k.set(p, base)
	if k.div != nil {
		*k.div(p) = 0
	}
	return nil
}

// Get returns the value as text that Set takes.
func (k Knob) Get(p *Params) string {
	if k.form == weight {
		return p.DCETCPG.String()
	}
	if k.div != nil && *k.div(p) != 0 {
		return fmt.Sprintf("line/%d", *k.div(p))
	}
	return k.format(k.get(p))
}

// Int returns the value in Unit, rounded down; 0 for a share of the line.
func (k Knob) Int(p *Params) int64 { return k.get(p) / k.scale }

// Limits says in words what is allowed: "0 or 1Mbps to 1Pbps".
func (k Knob) Limits() string {
	switch {
	case k.form == weight:
		return "1/4096 to 1"
	case k.form == toggle:
		return "false or true"
	case k.form == choice:
		return strings.Join(k.Values, " or ")
	case k.off:
		return "0 or " + k.format(k.least) + " to " + k.format(k.most)
	default:
		return k.format(k.least) + " to " + k.format(k.most)
	}
}

func (k Knob) allows(base int64) bool {
	return k.off && base == 0 || base >= k.least && base <= k.most
}

func (k Knob) outside(value string) error {
	return fmt.Errorf("%s: %s is not allowed: %s", k.Name, value, k.Limits())
}

// check says whether the value in p is within the limits.
func (k Knob) check(p *Params) error {
	if k.form == weight {
		if !p.DCETCPG.valid() {
			return k.outside(p.DCETCPG.String())
		}
		return nil
	}
	if k.div != nil && *k.div(p) != 0 {
		if d := *k.div(p); d > maxDiv {
			return fmt.Errorf("%s: line/%d is not allowed: line/1 to line/%d", k.Name, d, maxDiv)
		}
		return nil
	}
	if v := k.get(p); !k.allows(v) {
		return k.outside(k.format(v))
	}
	return nil
}

// FindKnob returns the knob with a name, or with a symbol of the paper, in any
// case. Names go first: "g" is a symbol, "rpg_gd" a name.
func FindKnob(name string) (Knob, bool) {
	knobs := Knobs()
	for _, k := range knobs {
		if strings.EqualFold(k.Name, name) {
			return k, true
		}
	}
	for _, k := range knobs {
		if k.Paper != "" && strings.EqualFold(k.Paper, name) {
			return k, true
		}
	}
	return Knob{}, false
}
