package play

import (
	"fmt"
	"io"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Check is an expectation of a scenario beside what the run has shown.
type Check struct {
	What   string
	Value  metric.Value
	Err    string // why there is no value; "" if there is one
	Bound  string // what it must be, in words
	Source string // where that is from
	OK     bool
}

// checks reads the expected numbers off a result.
func checks(r *result.Run, list []scenario.Expect) []Check {
	var out []Check
	for i := range list {
		j := lab.Judge(r, &list[i])
		c := Check{What: list[i].What, Source: list[i].Source, Bound: bound(&list[i]), Value: j.Value, OK: j.OK}
		if j.Err != nil {
			c.Err = j.Err.Error()
		}
		out = append(out, c)
	}
	return out
}

func bound(e *scenario.Expect) string {
	switch {
	case e.Near.Given():
		return fmt.Sprintf("%s ± %s %%", e.Near, digits(e.Within.Float()*100))
	case e.Min.Given() && e.Max.Given() && e.Min.String() == e.Max.String():
		return e.Min.String()
	case e.Min.Given() && e.Max.Given():
		return fmt.Sprintf("%s to %s", e.Min, e.Max)
	case e.Min.Given():
		return fmt.Sprintf("at least %s", e.Min)
	case e.Max.Given():
		return fmt.Sprintf("at most %s", e.Max)
	}
	return "any"
}

// Failed counts the expectations that the run has not met.
func (o *Outcome) Failed() int {
	n := 0
	for i := range o.Checks {
		if !o.Checks[i].OK {
			n++
		}
	}
	return n
}

// tellChecks writes the expectations, a line each, with their sources below
// those that failed or, with all, below each.
func tellChecks(w io.Writer, list []Check, all bool) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "EXPECTED")
	t := NewGrid("<", "<what", "value", "<expected")
	for i := range list {
		c := &list[i]
		t.Row(c.mark(), c.What, c.text(), c.Bound)
	}
	text := t.Lines()
	for i := range list {
		fmt.Fprintln(w, "  "+text[i+1])
		if c := &list[i]; (all || !c.OK) && c.Source != "" {
			Paragraph(w, "         ", "source: "+c.Source)
		}
	}
	fmt.Fprintln(w)
}

func (c *Check) mark() string {
	if c.OK {
		return "ok"
	}
	return "FAILED"
}

func (c *Check) text() string {
	if c.Err != "" && c.Value == (metric.Value{}) {
		return c.Err
	}
	if c.Err != "" {
		return ValueText(c.Value) + " (" + c.Err + ")"
	}
	return ValueText(c.Value)
}

// rateOf is a rate as a metric's value.
func rateOf(r sim.Rate) metric.Value { return metric.Value{V: float64(r), Unit: metric.Bits} }

// timeOf is a span as a metric's value.
func timeOf(t sim.Time) metric.Value { return metric.Value{V: float64(t), Unit: metric.Time} }
