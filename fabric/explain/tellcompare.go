package explain

import (
	"fmt"
	"slices"
	"strings"
)

func (d *Difference) tellVerdicts() section {
	sec := section{title: "A AND B"}
	sec.say("A is %s: %s.", or(d.A, "a run"), d.LineA)
	sec.say("B is %s: %s.", or(d.B, "a run"), d.LineB)
	if d.Same {
		sec.say("The two are the same run: equal digests.")
		return sec
	}
	for i := range d.Verdicts {
		if c := &d.Verdicts[i]; c.Differs() {
			sec.item("%s", c.sentence())
		}
	}
	return sec
}

func (d *Difference) tellGroups() section {
	sec := section{title: "FLOWS"}
	for i := range d.Groups {
		g := &d.Groups[i]
		name := or(g.Group, "(no group)")
		if g.OnlyIn != "" {
			f := &g.A
			if g.OnlyIn == "B" {
				f = &g.B
			}
			sec.item("%s: only in %s, %s", name, g.OnlyIn, plural(f.Flows, "flow"))
			continue
		}
		if text := g.changes(); text != "" {
			sec.item("%s (%s): %s", name, g.flows(), text)
		} else {
			sec.item("%s (%s): as before", name, g.flows())
		}
	}
	return sec
}

func (g *GroupChange) flows() string {
	if g.A.Flows == g.B.Flows {
		return plural(g.A.Flows, "flow")
	}
	return fmt.Sprintf("%d and %d flows", g.A.Flows, g.B.Flows)
}

func (g *GroupChange) changes() string {
	all := []Change{
		{Name: "finished", A: float64(g.A.Finished), B: float64(g.B.Finished)},
		{Name: "failed", A: float64(g.A.Failed), B: float64(g.B.Failed)},
		{Name: "FCT p50", A: g.A.P50.Micros(), B: g.B.P50.Micros(), Unit: "us"},
		{Name: "goodput", A: g.A.Goodput.Gbit(), B: g.B.Goodput.Gbit(), Unit: "Gb/s"},
		{Name: "marks", A: float64(g.A.Marks), B: float64(g.B.Marks)},
		{Name: "CNPs", A: float64(g.A.CNPs), B: float64(g.B.CNPs)},
		{Name: "sent again", A: float64(g.A.Again), B: float64(g.B.Again)},
	}
	// Of fewer than a hundred the 99th percentile is the largest, of one flow
	// all are the same.
	if n := max(g.A.Finished, g.B.Finished); n > 1 {
		tail := []Change{{Name: "max", A: g.A.Max.Micros(), B: g.B.Max.Micros(), Unit: "us"}}
		if n >= 100 {
			tail = append([]Change{{Name: "p99", A: g.A.P99.Micros(), B: g.B.P99.Micros(), Unit: "us"}}, tail...)
		}
		all = slices.Insert(all, 3, tail...)
	}
	var out []string
	for i := range all {
		if all[i].Differs() {
			out = append(out, all[i].sentence())
		}
	}
	return strings.Join(out, ", ")
}

func (d *Difference) tellTotals() section {
	sec := section{title: "COUNTS"}
	for i := range d.Totals {
		if c := &d.Totals[i]; c.Differs() {
			sec.item("%s", c.sentence())
		}
	}
	if len(sec.paras) == 0 {
		sec.say("All as before.")
	}
	return sec
}

func (d *Difference) tellRoots() section {
	sec := section{title: "ROOTS OF PFC TREES"}
	for _, x := range d.Gone {
		sec.item("gone: %s", x)
	}
	for _, x := range d.New {
		sec.item("new: %s", x)
	}
	for i := range d.Kept {
		if c := &d.Kept[i]; c.Differs() && c.TextA == "" {
			sec.item("%s stopped others %s", c.Name, strings.TrimPrefix(c.sentence(), c.Name+" "))
		} else if c.Differs() {
			sec.item("%s", c.sentence())
		}
	}
	return sec
}

// sentence writes a change with its factor where that says something.
func (c *Change) sentence() string {
	if c.TextA != "" || c.TextB != "" {
		return fmt.Sprintf("%s: %s → %s", c.Name, or(c.TextA, "nothing"), or(c.TextB, "nothing"))
	}
	unit := c.Unit
	if unit != "" {
		unit = " " + unit
	}
	text := fmt.Sprintf("%s %s → %s%s", c.Name, figure(c.A), figure(c.B), unit)
	if f := c.Factor(); f > 0 && c.B > 0 && (f >= 1.005 || f <= 0.995) {
		text += fmt.Sprintf(" (x %s)", digits(f))
	}
	return text
}

// figure writes a number with thousands apart.
func figure(v float64) string {
	if v >= 1000 {
		return count(uint64(v))
	}
	return digits(v)
}
