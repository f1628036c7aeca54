package explain

import (
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Difference is what changed from one run to another.
type Difference struct {
	A, B     string // names of the runs
	LineA    string // verdicts in one line
	LineB    string
	Same     bool // the same events in the same order: equal digests
	Groups   []GroupChange
	Totals   []Change // what all ports and flows counted
	Verdicts []Change // of words
	// Roots of PFC trees that are in one run alone, or in both with another
	// cause.
	Gone, New []string
	Kept      []Change
}

// Change is a quantity in both runs, as text if it is one.
type Change struct {
	Name string
	A, B float64
	Unit string // "", "us", "Gb/s"
	// TextA and TextB are set instead of numbers.
	TextA, TextB string
}

// Factor is B over A, 0 if A is nothing.
func (c *Change) Factor() float64 { return ratio(c.B, c.A) }

// Differs reports whether a quantity changed by more than samePermille, or a
// text at all.
func (c *Change) Differs() bool {
	if c.TextA != "" || c.TextB != "" {
		return c.TextA != c.TextB
	}
	d := c.B - c.A
	return max(d, -d)*1000 > max(c.A, c.B, -c.A, -c.B)*samePermille
}

// GroupChange compares the flows of one group.
type GroupChange struct {
	Group  string // "" is shown as "(no group)"
	A, B   GroupFigures
	OnlyIn string // "A" or "B": the other has no such group
}

// GroupFigures sums up a group. Percentiles are nearest rank over finished
// flows; Goodput is the mean over all that have started.
type GroupFigures struct {
	Flows, Finished, Failed int
	P50, P99, Max           sim.Time
	Goodput                 sim.Rate
	Slowdown                float64 // median
	Marks, CNPs, Again      uint64
}

// Compare says what changed from a to b. Runs need not have the same network
// or traffic: what is in one alone is said to be.
func Compare(a, b *result.Run) *Difference {
	if a == nil {
		a = &result.Run{}
	}
	if b == nil {
		b = &result.Run{}
	}
	sa, sb := Explain(a), Explain(b)
	d := &Difference{A: clean(a.Name), B: clean(b.Name), LineA: sa.Line(), LineB: sb.Line(), Same: a.Digest == b.Digest && a.Events == b.Events}
	d.groups(a, b)
	ta, tb := totals(a), totals(b)
	for i := range ta {
		d.Totals = append(d.Totals, Change{Name: ta[i].name, A: ta[i].v, B: tb[i].v, Unit: ta[i].unit})
	}
	d.verdicts(sa, sb)
	d.roots(sa, sb)
	return d
}

func (d *Difference) groups(a, b *result.Run) {
	names, fa := figures(a)
	other, fb := figures(b)
	for _, g := range names {
		c := GroupChange{Group: g, A: fa[g], B: fb[g]}
		if !slices.Contains(other, g) {
			c.OnlyIn = "A"
		}
		d.Groups = append(d.Groups, c)
	}
	for _, g := range other {
		if !slices.Contains(names, g) {
			d.Groups = append(d.Groups, GroupChange{Group: g, B: fb[g], OnlyIn: "B"})
		}
	}
}

// figures returns the groups in order of their first flow.
func figures(r *result.Run) ([]string, map[string]GroupFigures) {
	n := index(r)
	var names []string
	ids := map[string][]int32{}
	for i := range n.flows {
		g := clean(n.flows[i].f.Group)
		if _, ok := ids[g]; !ok {
			names = append(names, g)
		}
		ids[g] = append(ids[g], int32(i))
	}
	out := make(map[string]GroupFigures, len(names))
	for _, g := range names {
		out[g] = n.figures(ids[g])
	}
	return names, out
}

func (n *net) figures(ids []int32) GroupFigures {
	out := GroupFigures{Flows: len(ids)}
	var fct []sim.Time
	var slow []float64
	var sum, started int64
	for _, i := range ids {
		d := &n.flows[i]
		out.Marks += d.f.Marks
		out.CNPs += d.f.CNPs
		out.Again += d.f.Retransmitted
		if d.f.State != result.Waiting {
			started++
			sum += int64(d.goodput())
		}
		switch d.f.State {
		case result.Finished:
			out.Finished++
			fct = append(fct, d.life())
			slow = append(slow, d.f.Slowdown())
		case result.Failed:
			out.Failed++
		case result.Waiting, result.Running:
		}
	}
	if started > 0 {
		out.Goodput = sim.Rate(sum / started)
	}
	if len(fct) > 0 {
		slices.Sort(fct)
		slices.Sort(slow)
		out.P50, out.P99, out.Max = rank(fct, 50), rank(fct, 99), fct[len(fct)-1]
		out.Slowdown = rank(slow, 50)
	}
	return out
}

// rank is the percentile by nearest rank of a sorted list.
func rank[T any](v []T, percent int) T {
	return v[max(0, (len(v)*percent+99)/100-1)]
}

type total struct {
	name string
	v    float64
	unit string
}

func totals(r *result.Run) []total {
	var marks, pauses, drops, again, timeouts, cnps, handled uint64
	var paused sim.Time
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			for k := range r.Nodes[i].Ports[j].Prio {
				p := &r.Nodes[i].Ports[j].Prio[k]
				marks += p.Marked
				pauses += p.PauseTx
				paused += p.PausedFor
			}
		}
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		again += f.Retransmitted
		timeouts += f.Timeouts
		cnps += f.CNPs
		handled += f.CNPsHandled
	}
	drops = uint64(len(r.Drops)) + r.DropsCut
	return []total{
		{"virtual time", r.End.Micros(), "us"},
		{"ECN marks", float64(marks), ""},
		{"CNPs sent", float64(cnps), ""},
		{"CNPs handled", float64(handled), ""},
		{"PFC stop frames sent", float64(pauses), ""},
		{"time stopped", paused.Micros(), "us"},
		{"packets lost", float64(drops), ""},
		{"packets sent again", float64(again), ""},
		{"timeouts", float64(timeouts), ""},
		{"deadlocks", float64(len(r.Deadlocks)), ""},
		{"storms", float64(len(r.Storms)), ""},
	}
}

func (d *Difference) verdicts(a, b *Story) {
	d.Verdicts = []Change{
		{Name: "lossless", TextA: a.Lossless.Verdict.String(), TextB: b.Lossless.Verdict.String()},
		{Name: "main cause", TextA: a.mainCause(), TextB: b.mainCause()},
		{Name: "victims", A: float64(a.Spreading.Count), B: float64(b.Spreading.Count)},
		{Name: "flows held by marks", A: float64(held(a)), B: float64(held(b))},
		{Name: "unfair groups", A: float64(len(a.Fairness.Groups)), B: float64(len(b.Fairness.Groups))},
	}
}

func held(s *Story) int {
	if s.Rates == nil {
		return 0
	}
	return s.Rates.HeldCount
}

func (d *Difference) roots(a, b *Story) {
	at := func(s *Story, t *Tree) int {
		return slices.IndexFunc(s.Trees, func(x Tree) bool { return x.Root.Name == t.Root.Name && x.Prio == t.Prio })
	}
	name := func(t *Tree) string { return fmt.Sprintf("%s priority %d (%s)", t.Root, t.Prio, t.Cause.Kind) }
	for i := range a.Trees {
		t := &a.Trees[i]
		j := at(b, t)
		if j < 0 {
			d.Gone = append(d.Gone, name(t))
			continue
		}
		x := &b.Trees[j]
		d.Kept = append(d.Kept, Change{Name: name(t), A: t.Stopped.Micros(), B: x.Stopped.Micros(), Unit: "us"})
		if x.Cause.Kind != t.Cause.Kind {
			d.Kept = append(d.Kept, Change{Name: "cause at " + t.Root.Name, TextA: t.Cause.Kind.String(), TextB: x.Cause.Kind.String()})
		}
	}
	for i := range b.Trees {
		if at(a, &b.Trees[i]) < 0 {
			d.New = append(d.New, name(&b.Trees[i]))
		}
	}
}

// Text writes the difference for a terminal of so many columns (0: 100). The
// error is the writer's.
func (d *Difference) Text(w io.Writer, width int) error {
	if width <= 0 {
		width = 100
	}
	return print(w, d.Sections(width-2))
}

// Sections returns the difference in words.
func (d *Difference) Sections(width int) []Section {
	if width <= 0 {
		width = 100
	}
	return render([]section{d.tellVerdicts(), d.tellGroups(), d.tellTotals(), d.tellRoots()}, width)
}
