package sweep

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/metric"
)

// Axis is settings that take several values, all of its keys the same one.
type Axis struct {
	Keys   []string
	Values []string
}

// Name is the keys as they were given.
func (x *Axis) Name() string { return strings.Join(x.Keys, "+") }

// sets returns the overrides of one value.
func (x *Axis) sets(i int) []string {
	var out []string
	for _, k := range x.Keys {
		out = append(out, k+"="+x.Values[i])
	}
	return out
}

// MaxPoints is how many points a grid may have.
const MaxPoints = 100_000

// whole is a range of whole numbers.
var whole = regexp.MustCompile(`^([0-9]+)\.\.([0-9]+)$`)

// ParseSets splits overrides into those with one value and those with several:
// key=8KB,16KB,32KB, several keys together as in ecn.kmin+ecn.kmax=8KB,16KB, or
// a range of whole numbers, seed=1..20. Commas within brackets or quotes belong
// to one value.
func ParseSets(sets []string) (fixed []string, axes []Axis, err error) {
	seen := map[string]bool{}
	for _, set := range sets {
		keys, text, ok := strings.Cut(set, "=")
		if !ok {
			return nil, nil, fmt.Errorf("--set %s: no =; give key=value or key=value,value,…", set)
		}
		x := Axis{}
		for k := range strings.SplitSeq(keys, "+") {
			k = strings.TrimSpace(k)
			if k == "" {
				return nil, nil, fmt.Errorf("--set %s: a key is missing", set)
			}
			if seen[k] {
				return nil, nil, fmt.Errorf("--set %s: %s is set twice", set, k)
			}
			seen[k] = true
			x.Keys = append(x.Keys, k)
		}
		if x.Values, err = values(text); err != nil {
			return nil, nil, fmt.Errorf("--set %s: %w", set, err)
		}
		if len(x.Values) == 1 {
			fixed = append(fixed, x.sets(0)...)
			continue
		}
		axes = append(axes, x)
	}
	points := 1
	for i := range axes {
		if points *= len(axes[i].Values); points > MaxPoints {
			return nil, nil, fmt.Errorf("the grid has more than %d points", MaxPoints)
		}
	}
	return fixed, axes, nil
}

// values cuts a text at its outer commas.
func values(text string) ([]string, error) {
	var out []string
	depth, quote, from := 0, byte(0), 0
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ',' && depth == 0 && quote == 0 {
			v := strings.TrimSpace(text[from:i])
			if v == "" && (i < len(text) || len(out) > 0) {
				return nil, fmt.Errorf("an empty value between commas")
			}
			from = i + 1
			r, err := span(v)
			if err != nil {
				return nil, err
			}
			out = append(out, r...)
			continue
		}
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
	}
	for i, v := range out {
		for _, w := range out[:i] {
			if v == w {
				return nil, fmt.Errorf("%s is there twice", v)
			}
		}
		if i > 1000 {
			return nil, fmt.Errorf("more than 1000 values")
		}
	}
	return out, nil
}

// span returns the numbers of a range, or the value itself.
func span(v string) ([]string, error) {
	m := whole.FindStringSubmatch(v)
	if m == nil {
		return []string{v}, nil
	}
	a, aerr := strconv.ParseUint(m[1], 10, 64)
	b, berr := strconv.ParseUint(m[2], 10, 64)
	if aerr != nil || berr != nil || b < a || b-a >= 1000 {
		return nil, fmt.Errorf("%s is not a range of up to 1000 numbers", v)
	}
	var out []string
	for n := range b - a + 1 {
		out = append(out, strconv.FormatUint(a+n, 10))
	}
	return out, nil
}

// numbers returns the values as numbers of one unit; ok is false where they are
// words or of several units. 0 goes with every unit.
func (x *Axis) numbers() (v []float64, u metric.Unit, ok bool) {
	known := false
	for _, s := range x.Values {
		f, unit, ok := number(s)
		if !ok {
			return nil, 0, false
		}
		if f != 0 {
			if known && unit != u {
				return nil, 0, false
			}
			u, known = unit, true
		}
		v = append(v, f)
	}
	return v, u, true
}
