package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
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
		{"step: 1", "step: 6", "bad.yaml:3: rule U01: step is 6, must be 1 to 5"},
		{"step: 1", "step: one", "bad.yaml:3:9: step must be a whole number"},
		{"confidence: 0.5", "confidence: high", "bad.yaml:6:15: confidence must be a number"},
		{"confidence: 0.5", "sure_confidence: 2\n  confidence: 0.5", "bad.yaml:6: rule U01: sure_confidence is 2, must be above 0 and at most 1"},
		{"title: a test", "title: ''", "bad.yaml:2: rule U01: title must be set"},
		{"warn: 'port.state != 4'", "error: 'port.state != 4'", `bad.yaml:5:3: unknown field "error"; a rule has id, title, step, each, scope, when, fail, warn, info,`},
		{"port.state != 4", "port.rate_mbps < limit.mbps", "bad.yaml:5: rule U01: warn, column 1: limits has no mbps; it has none"},
		{"port.state != 4", "port.rate_mbps < limit.mpbs'\n  limits: {mbps: 1, gbps: 2}\n  verify: 'x", "bad.yaml:5: rule U01: warn, column 1: limits has no mpbs; it has gbps, mbps"},
		{"port.state != 4", "port.state / 0 > 1", "bad.yaml:5: rule U01: warn, column 1: it divides by 0"},
		{"port.state != 4", "port.state % 0 > 1", "bad.yaml:5: rule U01: warn, column 1: it divides by 0"},
		{"port.state != 4", "1 / 0.0 > 1", "it divides by 0"},
		{"port.state != 4", `"a" < 3`, "bad.yaml:5: rule U01: warn, column 5: invalid operation: < (mismatched types string and int)"},
		{"why: w", "wyh: w", `bad.yaml:8:3: unknown field "wyh"`},
		{"why: w", "why: '${1 / 0}'", "bad.yaml:8: rule U01: why, column 1: it divides by 0"},
		{goodRule, goodRule + goodRule, "bad.yaml:10: rule U01 for each port is there already, at bad.yaml:1"},
		{goodRule, "", "bad.yaml:1: no rule is in it; a file of rules is a list: - id: U01,"},
		{goodRule, "# none yet\n---\n", "bad.yaml:1: no rule is in it;"},
		{goodRule, "id: U01\ntitle: a test\n", "bad.yaml:1:3: mapping was used where sequence is expected; a file of rules is a list"},
		{goodRule, "port.state != 4", "bad.yaml:1:1: string was used where sequence is expected; a file of rules is a list"},
		{goodRule, "- 3\n", "bad.yaml:1:3: "},
		{goodRule, goodRule + "-\n", "bad.yaml:10: rule 2 is empty; a file of rules is a list"},
		{goodRule, "\x00\x01\x02", "bad.yaml:1"},
		{"each: port", "each: cable", `each is "cable", must be host`},
		{"port.state != 4", "port.stat != 4", "warn, column 1: no fact is called port.stat"},
		{"port.state != 4", "profile.kmin > 4", "warn, column 1: profile.kmin is not to be had where each is port"},
		{"port.state != 4", `seen("ack_timeouts") > 4`, `column 1: seen("ack_timeouts"): no counter of this name`},
		{"port.state != 4", "port.state !=", "warn, column "},
		{"port.state != 4", "ports > 4", "unknown name ports"},
		{"confidence: 0.5", "confidence: 50", "bad.yaml:6: rule U01: confidence is 50, must be above 0"},
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

// A mistake that shows only with the values of a host is told, beside the SKIP; a
// quotient by a value that is 0 is not known.
func TestMistakesWithValues(t *testing.T) {
	for _, c := range []struct{ cond, fault, missing string }{
		{"port.rate_mbps + 1", "the condition is 100001, which is neither true nor false", "neither true nor false"},
		{`port.rate_mbps < "x"`, "invalid operation: int < string (1:16)", "invalid operation"},
		{"port.rate < 5", "invalid operation: string < int (1:11)", "invalid operation"},
		{"port.rate_mbps / port.rate > 1", "100000 / 100 Gb/sec (4X EDR): both must be numbers (1:16)", "must be numbers"},
		{"port.rate_mbps / seen(\"ack_timeout\") > 1", "", "division: by 0"},
		{"port.rate_mbps / (port.state - 4) < 1", "", "division: by 0"},
		{"delta(\"ack_timeout\") / window.seconds > 5", "", ""},
	} {
		rules, err := doctor.Parse("mine.yaml", []byte(strings.Replace(goodRule, "port.state != 4", strings.ReplaceAll(c.cond, "'", "''"), 1)))
		if err != nil {
			t.Fatal(c.cond, err)
		}
		w := newWorld()
		r := doctor.Examine(w.input(), rules)
		if c.fault == "" && len(r.Faults) > 0 || c.fault != "" && (len(r.Faults) != 1 || r.Faults[0] != doctor.RuleFault{Rule: "U01", Place: "mine.yaml:1", Why: c.fault}) {
			t.Errorf("%s: faults %+v, want %q", c.cond, r.Faults, c.fault)
		}
		skipped := len(r.Skipped) > 0 && strings.Contains(r.Skipped[0].Missing, c.missing)
		if skipped != (c.missing != "") {
			t.Errorf("%s: skipped %+v, want %q", c.cond, r.Skipped, c.missing)
		}
		if len(r.Findings) > 0 {
			t.Errorf("%s: %+v", c.cond, r.Findings)
		}
		var b strings.Builder
		if err := r.Text(&b, false); err != nil || c.fault != "" && !strings.Contains(b.String(), "mine.yaml:1: rule U01 could not be judged: "+c.fault+"\n") {
			t.Errorf("%s: %v, %s", c.cond, err, b.String())
		}
	}
}

// The rule in docs/doctor.md is one, and finds what it says.
func TestDocumentedRule(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## Rules of your own")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no rule in docs/doctor.md")
	}
	rules, err := doctor.Parse("mine.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := doctor.Merge(builtin(t), rules, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mbps int64
		want string
	}{{100_000, "mlx5_0/1, mlx5_1/1, mlx5_2/1"}, {200_000, ""}} {
		w := newWorld()
		for i := range w.after.Devices {
			w.after.Devices[i].Ports[0].RateMbps = snapshot.Known(c.mbps)
		}
		found := findingsOf(doctor.Examine(w.input(), all), "U01")
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%d Mb/s: %+v", c.mbps, found)
		case c.want != "" && (len(found) != 1 || found[0].Where != c.want || found[0].Fix[0] != "replace the cable of eth0" || found[0].Evidence[0].Value != "100000"):
			t.Errorf("%d Mb/s: %+v", c.mbps, found)
		}
	}
}
