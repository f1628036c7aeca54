package doctor_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
)

const goodRule = `- id: U01
  title: a test
  step: 1
  each: port
  warn: 'port.state != 4'
  confidence: 0.5
  cause: c
  why: w
  fix: ['true']
`

// Bad rules are refused with one line that names the place and the thing.
func TestBadRules(t *testing.T) {
	if _, err := doctor.Parse("good.yaml", []byte(goodRule)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"id: U01", "id: u1", `rule u1: id is "u1", must be a capital letter and two or three digits`},
		{"title: a test", "titel: a test", `bad.yaml:2:3: unknown field "titel"`},
		{"step: 1", "step: 6", "bad.yaml:1: rule U01: step is 6, must be 1 to 5"},
		{"step: 1", "step: one", "bad.yaml:3:9: "},
		{"each: port", "each: cable", `each is "cable", must be host`},
		{"port.state != 4", "port.stat != 4", "warn, column 1: no fact is called port.stat"},
		{"port.state != 4", "profile.kmin > 4", "warn, column 1: profile.kmin is not to be had where each is port"},
		{"port.state != 4", `seen("ack_timeouts") > 4`, `column 1: seen("ack_timeouts"): no counter of this name`},
		{"port.state != 4", "port.state !=", "warn, column "},
		{"port.state != 4", "ports > 4", "unknown name ports"},
		{"confidence: 0.5", "confidence: 50", "confidence is 50 "},
		{"cause: c", "cause: '${port.nam}'", "cause, column 1: no fact is called port.nam"},
		{"cause: c", "cause: '${port.state'", "cause: ${ without }"},
		{"fix: ['true']", "fix: []", "cause, why and fix must be set"},
		{"fix: ['true']", "fix: ['true']\n  explains: [all]", `explains "all", which is no rule's id`},
		{"warn: 'port.state != 4'", "when: 'true'", "none of fail, warn and info is set"},
		{goodRule, "[]: {", "bad.yaml:1:"},
	} {
		text := strings.Replace(goodRule, c.old, c.new, 1)
		_, err := doctor.Parse("bad.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s -> %s: error %v, want one line with %q", c.old, c.new, err, c.want)
		}
	}
	if _, err := doctor.Parse("big.yaml", make([]byte, 2<<20)); err == nil {
		t.Error("a file of 2 MB is taken")
	}
}

// Every rule that the first release promises is there.
func TestPromisedRules(t *testing.T) {
	have := map[string]bool{}
	for _, r := range builtin(t) {
		have[r.ID] = true
	}
	for _, id := range strings.Fields(`P02 P03 P04 P05 P08 C01 C02 C03 C05 C06 C08 C10 C12 C13 C14 C15 C16 C17 L01 L03 L04 L05 L06 L10 L11 L13 L14 L15
		L18 P10 C11 C23 C24 L09 L12 L17 L20 L24 L25 L26 A15 A16 N05 N06 N10 N11 N12 N13 A01 A04 A06 A08 A09 A13 N01 N02 N04 N07 A07 A12 A14 C04 C21 C22 P12`) {
		if !have[id] {
			t.Errorf("no rule %s", id)
		}
	}
}

// What a rule explains is a rule.
func TestExplainedRulesExist(t *testing.T) {
	rules := builtin(t)
	have := map[string]bool{}
	for _, r := range rules {
		have[r.ID] = true
	}
	for _, r := range rules {
		for _, id := range r.Explains {
			if !have[id] {
				t.Errorf("%s explains %s, which there is not", r.ID, id)
			}
		}
	}
}

// Merge refuses doubles, or replaces them where that is asked for.
func TestMerge(t *testing.T) {
	one, err := doctor.Parse("one.yaml", []byte(goodRule))
	if err != nil {
		t.Fatal(err)
	}
	two, err := doctor.Parse("two.yaml", []byte(strings.Replace(goodRule, "a test", "another", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doctor.Merge(one, two, false); err == nil || !strings.Contains(err.Error(), "two.yaml:1: rule U01 is there already, at one.yaml:1") {
		t.Errorf("error %v", err)
	}
	all, err := doctor.Merge(builtin(t), one, true)
	if err != nil {
		t.Fatal(err)
	}
	n := len(all)
	if all, err = doctor.Merge(all, two, true); err != nil || len(all) != n || all[n-1].Title != "another" {
		t.Errorf("%d rules, error %v", len(all), err)
	}
}
