package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Markdown describes rules and the vocabulary of their conditions: docs/rules.md.
func Markdown(rules []*Rule) string {
	var b strings.Builder
	b.WriteString("# The doctor's rules\n\nMade from the rules themselves; how to use and write them is in [doctor.md](doctor.md).\n" +
		"A condition that needs a fact which the snapshot does not have is a SKIP with the reason, never a pass. Several conditions of one\n" +
		"kind are alternatives.\n")
	for step := 1; step < len(stepNames); step++ {
		fmt.Fprintf(&b, "\n## %d. %s\n", step, capital(stepNames[step]))
		for _, r := range rules {
			if r.Step == step {
				r.markdown(&b)
			}
		}
	}
	b.WriteString("\n## Facts\n\nWords of conditions. `peer.` before one is the same at the other end; `known(fact)` asks whether it is known.\n" +
		"`delta`, `rate`, `total` and `seen` (the rise between two snapshots, or the total where there is one) read counters: the canonical\n" +
		"names of [package counter](../diag/counter/counter.go), those of `counters/` in sysfs, `pause_rx`, `pause_tx`, `pause_rx_us`, `pause_tx_us` and\n" +
		"`discards_prio` by priority, and `ethtool:NAME`. `event(kind, code…)` is an error that the program printed.\n\n| fact | what it is | where |\n|---|---|---|\n")
	for _, f := range Facts() {
		where := "everywhere"
		if f.Each != nil {
			parts := make([]string, len(f.Each))
			for i, e := range f.Each {
				parts[i] = string(e)
			}
			where = strings.Join(parts, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Doc, where)
	}
	return b.String()
}

// Fact is a word of the vocabulary of conditions.
type Fact struct {
	Name string `json:"name"`
	Doc  string `json:"doc"` // what it is, with its unit
	// Each are the things of which it can be had; nil for all.
	Each []Each `json:"each,omitempty"`
}

// Facts lists the vocabulary by name.
func Facts() []Fact {
	var out []Fact
	for _, name := range slices.Sorted(maps.Keys(vocabulary)) {
		out = append(out, Fact{name, vocabulary[name].doc, slices.Clone(vocabulary[name].each)})
	}
	return out
}

func (r *Rule) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s: %s\n\nLooks at each %s", r.ID, r.Title, strings.ReplaceAll(string(r.Each), "_", " "))
	if r.Scope != Both {
		fmt.Fprintf(b, ", %s devices only", r.Scope)
	}
	fmt.Fprintf(b, ". Confidence %.0f %%.", r.Confidence*100)
	if r.Source != "" {
		fmt.Fprintf(b, " Source: %s.", r.Source)
	}
	b.WriteString("\n\n")
	for _, l := range r.Let {
		fmt.Fprintf(b, "- `%s` is `%s`\n", l.Name, l.Expr)
	}
	if r.When != "" {
		fmt.Fprintf(b, "- when `%s`\n", r.When)
	}
	for _, c := range []struct {
		what  string
		codes Cond
	}{{"FAIL", r.Fail}, {"WARN", r.Warn}, {"INFO", r.Info}, {"sure", r.Sure}} {
		for _, code := range c.codes {
			fmt.Fprintf(b, "- %s: `%s`\n", c.what, code)
		}
	}
	for _, name := range sortedKeys(r.Limits) {
		fmt.Fprintf(b, "- limit.%s = %s\n", name, format(r.Limits[name]))
	}
	fmt.Fprintf(b, "\nCause: %s. Why it matters: %s.\n\n", strings.TrimSuffix(r.Cause, "."), strings.TrimSuffix(r.Why, "."))
	b.WriteString("```sh\n")
	for _, f := range r.Fix {
		if f.By == nil {
			b.WriteString(f.All + "\n")
		}
		for _, name := range families {
			if t, ok := f.By[name]; ok {
				fmt.Fprintf(b, "%s: %s\n", name, t)
			}
		}
	}
	b.WriteString("```\n")
	if len(r.Explains) > 0 {
		fmt.Fprintf(b, "\nIts symptoms: %s.\n", strings.Join(r.Explains, ", "))
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
