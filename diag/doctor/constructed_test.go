package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
)

// Constructed hosts have one cause each that an operator would name, or none though
// they look odd. What is expected was written down before the rules saw them.
func TestConstructedHosts(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	cases := load(t, "testdata/constructed")
	sick := 0
	for i := range cases {
		c := &cases[i]
		r := doctor.Examine(c.in, rules)
		if len(r.Faults) > 0 {
			t.Errorf("%s: %+v", c.name, r.Faults)
		}
		if len(c.Answer.Root) > 0 {
			sick++
			if position(r.Findings, c.Answer.Root) != 0 {
				t.Errorf("%s: want %v first, have %s", c.name, c.Answer.Root, list(r.Findings))
			}
		}
		allowed := slices.Concat(c.Answer.Root, c.Answer.Acceptable)
		for _, f := range r.Findings {
			if f.Status == doctor.Fail && !slices.Contains(allowed, f.Rule) {
				t.Errorf("%s: %s fails at %s and is neither the cause nor a symptom: %v", c.name, f.Rule, f.Where, f.Evidence)
			}
			if f.Status != doctor.Info && slices.Contains(c.Answer.MustNot, f.Rule) {
				t.Errorf("%s: %s must not warn: %v", c.name, f.Rule, f.Evidence)
			}
		}
		if strings.HasPrefix(c.name, "h") {
			t.Logf("%s: %s", c.name, list(r.Findings))
		}
	}
	if sick < 43 || len(cases)-sick < 25 {
		t.Errorf("%d sick and %d healthy hosts", sick, len(cases)-sick)
	}
}
