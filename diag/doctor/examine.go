package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Status is the outcome of a rule on one thing.
type Status string

// Outcomes, gravest first.
const (
	Fail Status = "FAIL"
	Warn Status = "WARN"
	Info Status = "INFO"
	Skip Status = "SKIP" // a source is missing: not judged
	Pass Status = "PASS"
)

// Finding is the outcome of a rule on one thing of the host, or the same outcome on
// several.
type Finding struct {
	Rule   string `json:"rule"`
	Status Status `json:"status"`
	Title  string `json:"title"`
	Step   int    `json:"step"`
	// Where names the things for people; Places are their names, all of them.
	Where      string     `json:"where"`
	Places     []string   `json:"places"`
	Evidence   []Evidence `json:"evidence,omitempty"`
	Condition  string     `json:"condition,omitempty"` // the one that holds, with its limits
	Cause      string     `json:"cause,omitempty"`
	Why        string     `json:"why,omitempty"`
	Fix        []string   `json:"fix,omitempty"`
	Verify     string     `json:"verify,omitempty"`
	Confidence float64    `json:"confidence,omitempty"`
	// Processes are those of the program for which it is so, where the rule asks about the
	// program and a process is known.
	Processes []int `json:"processes,omitempty"`
	// Missing says for SKIP which fact is not known, and why.
	Missing string `json:"missing,omitempty"`
	// ExplainedBy are rules of which this is a symptom.
	ExplainedBy []string `json:"explained_by,omitempty"`

	rule   *Rule
	faulty bool // the rule itself is wrong
	at     moment
	fixes  []rendered
	verify rendered
	short  []string // Fix with one line for all things
}

// Report is what the doctor found.
type Report struct {
	Host     string    `json:"host"`
	Peer     string    `json:"peer,omitempty"`
	Seconds  float64   `json:"window_seconds"`
	Program  *Program  `json:"program,omitempty"`
	Findings []Finding `json:"findings"` // FAIL, WARN and INFO, likely root causes first
	Skipped  []Finding `json:"skipped"`
	Passed   []Finding `json:"passed"`
	// Problems are places of the snapshot that could not be read.
	Problems []snapshot.Problem `json:"problems,omitempty"`
	// Faults are rules that could not be judged for a mistake of theirs.
	Faults []RuleFault `json:"faults,omitempty"`
}

// RuleFault is a mistake in a rule that shows only when it is judged: an expression of
// the wrong type.
type RuleFault struct {
	Rule  string `json:"rule"`
	Place string `json:"place"` // file and line
	Why   string `json:"why"`
}

// Examine holds a host against rules.
func Examine(in Input, rules []*Rule) *Report {
	restarted := forget(&in)
	r := &Report{Host: in.Host.After.Host.Or("host"), Seconds: in.Host.Length().Seconds(), Problems: in.Host.After.Problems}
	r.Problems = append(slices.Clip(r.Problems), restarted...)
	if in.Peer != nil {
		r.Peer = in.Peer.After.Host.Or("peer")
	}
	w := newWork()
	r.Program = w.program(in.Host.After)
	paired := map[Each]bool{}
	for _, rule := range rules {
		all := w.scopes(&in, in.Host, rule.Each)
		if in.Peer != nil && !paired[rule.Each] {
			w.pairPeers(&in, rule.Each, all)
			paired[rule.Each] = true
		}
		for _, s := range all {
			if !s.concerns(rule) {
				continue
			}
			for _, f := range w.judgeAll(rule, s) {
				r.add(f)
			}
		}
	}
	r.Findings = group(rank(r.Findings))
	r.Skipped, r.Passed = group(r.Skipped), group(r.Passed)
	return r
}

// forget leaves out the earlier snapshot of a host that was started anew after it: what
// its counters say now rose since then.
func forget(in *Input) (told []snapshot.Problem) {
	const why = "%s was started anew between the two snapshots: its counters are judged by the later one alone"
	if in.Host.Restarted() {
		in.Host.Before = nil
		told = append(told, snapshot.Problem{Place: "proc/uptime", Why: fmt.Sprintf(why, in.Host.After.Host.Or("the host"))})
	}
	if in.Peer != nil && in.Peer.Restarted() {
		in.Peer = &snapshot.Window{After: in.Peer.After}
		told = append(told, snapshot.Problem{Place: "proc/uptime", Why: fmt.Sprintf(why, in.Peer.After.Host.Or("the peer"))})
	}
	return told
}

func (r *Report) add(f Finding) {
	switch f.Status {
	case Skip:
		if fault := (RuleFault{f.Rule, f.rule.place, f.Missing}); f.faulty && !slices.Contains(r.Faults, fault) {
			r.Faults = append(r.Faults, fault)
		}
		r.Skipped = append(r.Skipped, f)
	case Pass:
		r.Passed = append(r.Passed, f)
	default:
		r.Findings = append(r.Findings, f)
	}
}

// judge holds one thing against one rule; ok is false where the rule does not apply.
func judge(r *Rule, s *scope) (Finding, bool) {
	f := Finding{Rule: r.ID, Title: r.Title, Step: r.Step, Where: s.name(), rule: r, at: s.now}
	skip := func(err error) (Finding, bool) {
		f.Status = Skip
		if u, ok := isUnknown(err); ok {
			f.Missing = u.Error()
		} else {
			f.faulty = true
			first, _, _ := strings.Cut(err.Error(), "\n") // an excerpt of the expression follows
			f.Missing = oneLine(first)
		}
		return f, true
	}
	t := &trace{}
	e := environment(r, s, t)
	if r.prog.when != nil {
		applies, err := truth(r.prog.when, e)
		if err != nil {
			return skip(err)
		}
		if !applies {
			return f, false
		}
	}
	asked := t.seen // by when: it says that the rule applies, and is no evidence beside that of a condition
	t.seen = nil
	var missing error
	for _, c := range []struct {
		status Status
		progs  []*vm.Program
		codes  Cond
	}{{Fail, r.prog.fail, r.Fail}, {Warn, r.prog.warn, r.Warn}, {Info, r.prog.info, r.Info}} {
		i, err := anyOf(c.progs, e, t)
		if err != nil && missing == nil {
			missing = err
		}
		if i >= 0 {
			if len(t.seen) == 0 {
				t.seen = asked
			}
			f.Status, f.Condition = c.status, c.codes[i]
			r.fill(&f, e, t)
			return f, true
		}
	}
	if missing != nil {
		return skip(missing)
	}
	f.Status = Pass
	f.Evidence = t.seen
	return f, true
}

// fill writes the texts of a finding.
func (r *Rule) fill(f *Finding, e *env, t *trace) {
	for i, p := range r.prog.evidence {
		before := len(t.seen)
		v, err := evaluate(p, e)
		if err == nil && len(t.seen) == before {
			t.add(Evidence{What: r.Evidence[i], Value: format(v)})
		}
	}
	f.Evidence = slices.Clone(t.seen)
	f.Confidence = r.Confidence
	if i, _ := anyOf(r.prog.sure, e, t); i >= 0 {
		f.Confidence = r.SureConfidence
		f.Evidence = slices.Clone(t.seen)
	}
	quiet := *t
	f.Cause, f.Why, f.verify = r.prog.cause.render(e, false).text, r.prog.why.render(e, false).text, r.prog.verify.render(e, true)
	for i := range r.prog.fix {
		if t := r.prog.fix[i].of(family(f.at.dev)); t != nil {
			f.fixes = append(f.fixes, t.render(e, true))
		}
	}
	*t = quiet
}
