package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Exit statuses of a report.
const (
	ExitOK     = 0
	ExitWarn   = 1
	ExitFail   = 2
	ExitUnsure = 3 // nothing could be judged
)

// Exit returns the exit status of a report.
func (r *Report) Exit() int {
	exit := ExitOK
	for i := range r.Findings {
		switch r.Findings[i].Status {
		case Fail:
			return ExitFail
		case Warn:
			exit = ExitWarn
		default:
		}
	}
	if exit == ExitOK && len(r.Findings) == 0 && len(r.Passed) == 0 {
		return ExitUnsure
	}
	return exit
}

// stepNames are the operator's steps.
var stepNames = []string{"", "link", "counters", "lossless configuration", "application", "host network"}

// Text writes a report for people; verbose lists what passed and what was skipped.
func (r *Report) Text(w io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "doctor: %s", r.Host)
	if r.Peer != "" {
		fmt.Fprintf(&b, " and its peer %s", r.Peer)
	}
	if r.Seconds > 0 {
		fmt.Fprintf(&b, ", over %.4g s", r.Seconds)
	} else {
		b.WriteString(", one snapshot: counters are totals since they were reset")
	}
	b.WriteByte('\n')
	if r.Program != nil {
		r.Program.text(&b)
	}
	b.WriteByte('\n')
	for i := range r.Findings {
		r.Findings[i].text(&b, i+1)
	}
	r.tail(&b, verbose)
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Finding) text(b *strings.Builder, n int) {
	fmt.Fprintf(b, "%d. %s %s  %s: %s  (confidence %.0f %%)\n", n, f.Status, f.Rule, f.Where, f.Title, f.Confidence*100)
	if len(f.ExplainedBy) > 0 {
		fmt.Fprintf(b, "   probably a symptom of %s\n", strings.Join(f.ExplainedBy, ", "))
	}
	for _, line := range f.shown() {
		fmt.Fprintf(b, "   %s\n", line)
	}
	if limits := f.limits(); limits != "" {
		fmt.Fprintf(b, "   threshold: %s   %s\n", f.Condition, limits)
	}
	fmt.Fprintf(b, "   cause: %s\n   why it matters: %s\n", f.Cause, f.Why)
	for _, c := range f.short {
		fmt.Fprintf(b, "   fix: %s\n", c)
	}
	if f.Verify != "" {
		fmt.Fprintf(b, "   verify: %s\n", f.Verify)
	}
	b.WriteByte('\n')
}

// limits lists the thresholds of the rule, by name.
func (f *Finding) limits() string {
	var parts []string
	for _, name := range sortedKeys(f.rule.Limits) {
		if strings.Contains(f.Condition, "limit."+name) {
			parts = append(parts, fmt.Sprintf("%s = %s", name, format(f.rule.Limits[name])))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) tail(b *strings.Builder, verbose bool) {
	count := map[Status]int{}
	for i := range r.Findings {
		count[r.Findings[i].Status]++
	}
	fmt.Fprintf(b, "%d FAIL, %d WARN, %d INFO, %d PASS, %d SKIP", count[Fail], count[Warn], count[Info], len(r.Passed), len(r.Skipped))
	if len(r.Skipped) > 0 && !verbose {
		b.WriteString(" (--verbose says what was skipped and why)")
	}
	b.WriteByte('\n')
	for _, f := range r.Faults {
		fmt.Fprintf(b, "%s: rule %s could not be judged: %s\n", f.Place, f.Rule, f.Why)
	}
	for i := range r.Problems {
		fmt.Fprintf(b, "could not read %s: %s\n", r.Problems[i].Place, r.Problems[i].Why)
	}
	if !verbose {
		return
	}
	for i := range r.Passed {
		f := &r.Passed[i]
		fmt.Fprintf(b, "PASS %s  %s: not so: %s\n", f.Rule, f.Where, f.Title)
	}
	for i := range r.Skipped {
		f := &r.Skipped[i]
		fmt.Fprintf(b, "SKIP %s  %s: %s: %s\n", f.Rule, f.Where, f.Title, f.Missing)
	}
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}

func sortedKeys(m map[string]float64) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
