package doctor

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// rank orders findings by likely root cause. A finding that another one explains
// comes after those that none explains; then the graver, the more certain, the
// earlier in the operator's order, and the rule's number.
func rank(all []Finding) []Finding {
	by := map[string][]*Finding{} // findings by the rules whose findings they explain
	for i := range all {
		for _, id := range all[i].rule.Explains {
			by[id] = append(by[id], &all[i])
		}
	}
	explained := make([][]string, len(all))
	for i := range all {
		for _, f := range by[all[i].Rule] {
			if f != &all[i] && f.outweighs(&all[i]) && f.concerns(&all[i]) && !slices.Contains(explained[i], f.Rule) {
				explained[i] = append(explained[i], f.Rule)
			}
		}
	}
	for i := range all {
		all[i].ExplainedBy = explained[i]
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(min(len(a.ExplainedBy), 1), min(len(b.ExplainedBy), 1)),
			cmp.Compare(b.weight(), a.weight()),
			cmp.Compare(a.Step, b.Step),
			cmp.Compare(a.Rule, b.Rule),
			snapshot.Natural(a.Where, b.Where),
		)
	})
	return all
}

// outweighs reports whether a finding may explain another: a remark explains no
// failure.
func (f *Finding) outweighs(other *Finding) bool {
	return f.Status != Info || other.Status == Info
}

// concerns reports whether a finding is about what another one is about: the state of
// one port explains nothing of another port. What is about the whole host, the switch or
// an interface without a device explains all.
func (f *Finding) concerns(other *Finding) bool {
	a, b := &f.at, &other.at
	return a.dev == nil || b.dev == nil || a.dev == b.dev && (a.port == nil || b.port == nil || a.port == b.port)
}

// weight joins gravity and certainty: a failure that is a guess does not come before
// a warning that is certain.
func (f *Finding) weight() float64 {
	gravity := map[Status]float64{Fail: 1, Warn: 0.7, Info: 0.3}[f.Status]
	return gravity * f.Confidence
}
