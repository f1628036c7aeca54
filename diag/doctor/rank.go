package doctor

import (
	"cmp"
	"slices"
)

// rank orders findings by likely root cause. A finding that another one explains
// comes after those that none explains; then the graver, the more certain, the
// earlier in the operator's order, and the rule's number.
func rank(all []Finding) []Finding {
	for i := range all {
		for j := range all {
			if i != j && slices.Contains(all[j].rule.Explains, all[i].Rule) && all[j].outweighs(&all[i]) &&
				!slices.Contains(all[i].ExplainedBy, all[j].Rule) {
				all[i].ExplainedBy = append(all[i].ExplainedBy, all[j].Rule)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(min(len(a.ExplainedBy), 1), min(len(b.ExplainedBy), 1)),
			cmp.Compare(b.weight(), a.weight()),
			cmp.Compare(a.Step, b.Step),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Where, b.Where),
		)
	})
	return all
}

// outweighs reports whether a finding may explain another: a remark explains no
// failure.
func (f *Finding) outweighs(other *Finding) bool {
	return f.Status != Info || other.Status == Info
}

// weight joins gravity and certainty: a failure that is a guess does not come before
// a warning that is certain.
func (f *Finding) weight() float64 {
	gravity := map[Status]float64{Fail: 1, Warn: 0.7, Info: 0.3}[f.Status]
	return gravity * f.Confidence
}
