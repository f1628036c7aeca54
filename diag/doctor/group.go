package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many things of a finding are named in a line of text.
const maxNamed = 16

// group joins what one rule says of several things in the same words: a host of eight
// rails has one finding that names eight ports. The order is that of the first of each.
func group(all []Finding) []Finding {
	type key struct{ rule, each, status, condition, cause, why, missing, explained, confidence string }
	at := map[key]int{}
	out := []Finding{} // a list in JSON, also without entries
	var members [][]*Finding
	for i := range all {
		f := &all[i]
		k := key{
			f.Rule, string(f.rule.Each), string(f.Status), f.Condition, f.Cause, f.Why, f.Missing, strings.Join(f.ExplainedBy, ","), fmt.Sprint(f.Confidence),
		}
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out, members = append(out, *f), append(members, nil)
		}
		members[j] = append(members[j], f)
	}
	for i := range out {
		out[i].join(members[i])
	}
	return out
}

// join makes a finding that of all its members.
func (f *Finding) join(members []*Finding) {
	f.Places = make([]string, len(members))
	for i, m := range members {
		f.Places[i] = m.Where
	}
	f.Where = names(f.Places)
	fixes := make([][]rendered, len(members))
	verify := make([]rendered, len(members))
	for i, m := range members {
		fixes[i], verify[i] = m.fixes, m.verify
	}
	f.Verify = likewise(verify)
	f.Fix, f.short = nil, nil
	for i := range f.fixes {
		same := make([]rendered, 0, len(members))
		for _, m := range fixes {
			if i < len(m) {
				same = append(same, m[i])
			}
		}
		for _, r := range same {
			if !slices.Contains(f.Fix, r.text) {
				f.Fix = append(f.Fix, r.text)
			}
		}
		f.short = append(f.short, likewise(same))
	}
	if len(members) == 1 {
		return
	}
	f.Evidence, f.Processes = nil, nil
	for _, m := range members {
		f.Processes = append(f.Processes, m.Processes...)
		for _, e := range m.Evidence {
			e.Where = m.Where
			f.Evidence = append(f.Evidence, e)
		}
	}
	slices.Sort(f.Processes)
	f.Processes = slices.Compact(f.Processes)
}

// names lists things in a line.
func names(all []string) string {
	if n := len(all) - maxNamed; n > 0 {
		return strings.Join(all[:maxNamed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(all, ", ")
}

// likewise is one text for several things: that of the first, and what stands in its
// place for the others where one word differs.
func likewise(all []rendered) string {
	if len(all) == 0 {
		return ""
	}
	first := all[0]
	differ := ""
	for _, r := range all[1:] {
		for _, v := range r.values {
			if first.value(v.code) == v.text || v.code == differ {
				continue
			}
			if differ != "" {
				return note(first.text, fmt.Sprintf("likewise for the other %d, with their values", len(all)-1))
			}
			differ = v.code
		}
	}
	if differ == "" {
		return first.text
	}
	others := []string{}
	own := first.value(differ)
	for _, r := range all[1:] {
		if v := r.value(differ); v != own && !slices.Contains(others, v) {
			others = append(others, v)
		}
	}
	return note(first.text, "likewise "+names(others))
}

// note puts a remark behind a command, after the one that it may have.
func note(text, remark string) string {
	if strings.Contains(text, "    # ") {
		return text + "; " + remark
	}
	return text + "    # " + remark
}

// rendered is a text of a rule for one thing, with the values of its expressions.
type rendered struct {
	text   string
	values []renderedValue
}

type renderedValue struct{ code, text string }

func (r *rendered) value(code string) string {
	for i := range r.values {
		if r.values[i].code == code {
			return r.values[i].text
		}
	}
	return ""
}

// shown is the evidence of a finding as lines for people: what is the same of all
// things once, else each value with the things that have it.
func (f *Finding) shown() []string {
	var order []string
	by := map[string][]Evidence{}
	for _, e := range f.Evidence {
		if by[e.What] == nil {
			order = append(order, e.What)
		}
		by[e.What] = append(by[e.What], e)
	}
	lines := make([]string, 0, len(order))
	for _, what := range order {
		all := by[what]
		var values []string
		have := map[string][]string{}
		for _, e := range all {
			v := oneLine(e.Value)
			switch {
			case v == "":
				v = "none"
			case e.Unit != "":
				v += " " + e.Unit
			}
			if e.Before != "" {
				v += " (was " + e.Before + ")"
			}
			if e.Rate != "" {
				v += ", " + e.Rate + " a second"
			}
			if have[v] == nil {
				values = append(values, v)
			}
			have[v] = append(have[v], e.Where)
		}
		line := what + " = " + values[0]
		if len(values) > 1 {
			for i, v := range values {
				if i == maxNamed {
					values = append(values[:i], fmt.Sprintf("%d other values", len(values)-i))
					break
				}
				values[i] = v + " at " + names(have[v])
			}
			line = what + " = " + strings.Join(values, "; ")
		}
		if all[0].Place != "" {
			line += "   [" + all[0].Place
			if slices.ContainsFunc(all, func(e Evidence) bool { return e.Place != all[0].Place }) {
				line += ", likewise for the others"
			}
			line += "]"
		}
		lines = append(lines, line)
	}
	return lines
}
