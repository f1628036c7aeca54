package doctor

import (
	"embed"
	"fmt"
)

//go:embed rules/*.yaml
var builtin embed.FS

// Builtin returns the rules that come with the doctor, in the operator's order.
func Builtin() ([]*Rule, error) {
	files, err := builtin.ReadDir("rules")
	if err != nil {
		return nil, err
	}
	var all []*Rule
	for _, f := range files {
		text, err := builtin.ReadFile("rules/" + f.Name())
		if err != nil {
			return nil, err
		}
		rules, err := Parse(f.Name(), text)
		if err != nil {
			return nil, err
		}
		if all, err = Merge(all, rules, false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Merge adds rules to others. Several rules may share an id where they look at
// different kinds of things. With replace, a rule of the same id and kind takes the
// place of the old one; without, it is an error.
func Merge(all, more []*Rule, replace bool) ([]*Rule, error) {
	at := map[ruleKey]int{}
	for i, r := range all {
		at[ruleKey{r.ID, r.Each}] = i
	}
	for _, r := range more {
		i, ok := at[ruleKey{r.ID, r.Each}]
		switch {
		case ok && !replace:
			return nil, fmt.Errorf("%s: rule %s is there already, at %s", r.place, r.ID, all[i].place)
		case ok:
			all[i] = r
		default:
			at[ruleKey{r.ID, r.Each}] = len(all)
			all = append(all, r)
		}
	}
	return all, nil
}

// WithConfidence returns copies of rules with other confidences by id, for those who
// have counted how often a rule is right in their network. A rule that is not in the
// map keeps its own.
func WithConfidence(rules []*Rule, by map[string]float64) []*Rule {
	out := make([]*Rule, len(rules))
	for i, r := range rules {
		c := *r
		if v, ok := by[r.ID]; ok {
			c.Confidence, c.SureConfidence = v, max(v, r.SureConfidence*v)
		}
		out[i] = &c
	}
	return out
}
