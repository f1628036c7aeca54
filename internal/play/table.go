package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Side is a run in a comparison.
type Side struct {
	Name string // of the column
	Run  *result.Run
}

// Row is one quantity in several runs.
type Row struct {
	What   string
	Group  string // of the flows; "" of the whole run
	Better int8   // 1: more is better; -1: less is; 0: neither
	Felt   bool   // it is what users of the network feel, not how that comes about
	Cells  []Cell // one for each side
}

// Cell is a value, or none.
type Cell struct {
	metric.Value
	None bool
}

// longBytes is from where a flow is long enough to ask what a message would
// take at its rate.
const longBytes = 10 << 20

// Rows puts runs side by side: rates and completion times of each group of
// flows, then what the whole network counted. Quantities that no run has are
// left out. extra are metrics to add.
func Rows(sides []Side, extra []string) []Row {
	t := sideBySide{sides: sides}
	for _, g := range t.groups() {
		t.group(g)
	}
	t.whole()
	for _, name := range extra {
		t.add(name, "", 0, func(r *result.Run) Cell {
			v, err := metric.Of(r, name)
			return Cell{v, err != nil}
		})
	}
	return t.rows
}

type sideBySide struct {
	sides []Side
	rows  []Row
}

// add adds a row unless no side has more than zero of it.
func (t *sideBySide) add(what, group string, better int8, of func(r *result.Run) Cell) {
	row := Row{What: what, Group: group, Better: better, Felt: group != ""}
	some := false
	for i := range t.sides {
		c := of(t.sides[i].Run)
		some = some || !c.None && c.V != 0
		row.Cells = append(row.Cells, c)
	}
	if some {
		t.rows = append(t.rows, row)
	}
}

// groups returns the names of the groups of all sides, in their order.
func (t *sideBySide) groups() []string {
	var out []string
	for i := range t.sides {
		for j := range t.sides[i].Run.Flows {
			if g := t.sides[i].Run.Flows[j].Group; !slices.Contains(out, g) {
				out = append(out, g)
			}
			if len(out) == maxGroups {
				return out
			}
		}
	}
	return out
}

// group adds the rows of a group of flows.
func (t *sideBySide) group(name string) {
	label := clean(cmp.Or(name, "flows"))
	of := func(f func(r *result.Run, g *report.Group) Cell) func(r *result.Run) Cell {
		return func(r *result.Run) Cell {
			gs := report.Groups(r)
			i := slices.IndexFunc(gs, func(g report.Group) bool { return g.Name == cmp.Or(name, "flows") })
			if i < 0 {
				return Cell{None: true}
			}
			return f(r, &gs[i])
		}
	}
	many, unfinished, long := 0, false, false
	for i := range t.sides {
		r := t.sides[i].Run
		n := 0
		for j := range r.Flows {
			if f := &r.Flows[j]; f.Group == name {
				n++
				unfinished = unfinished || f.State != result.Finished
				long = long || f.Bytes >= longBytes || f.Bytes == 0
			}
		}
		many = max(many, n)
	}
	if unfinished {
		t.add(label+": finished", name, 1, of(func(_ *result.Run, g *report.Group) Cell {
			return Cell{Value: metric.Value{V: float64(g.Finished)}}
		}))
	}
	if many == 1 || long || unfinished {
		what := label + ": goodput"
		if many > 1 {
			what += " of a flow, median"
		}
		t.add(what, name, 1, of(func(_ *result.Run, g *report.Group) Cell { return Cell{Value: rateOf(g.FlowGoodput)} }))
	}
	if long {
		t.add(label+": a 256 KiB message at that rate", name, -1, of(func(_ *result.Run, g *report.Group) Cell {
			return Cell{timeOf(g.FlowGoodput.For(explain.MessageBytes)), g.FlowGoodput == 0}
		}))
	}
	if many > 1 {
		for _, q := range []struct {
			what string
			of   func(g *report.Group) sim.Time
		}{
			{"FCT, median", func(g *report.Group) sim.Time { return g.P50 }},
			{"FCT, p99", func(g *report.Group) sim.Time { return g.P99 }},
			{"FCT, slowest", func(g *report.Group) sim.Time { return g.Max }},
		} {
			t.add(label+": "+q.what, name, -1, of(func(_ *result.Run, g *report.Group) Cell { return Cell{timeOf(q.of(g)), g.Finished == 0} }))
		}
	}
}

// whole adds the rows of the whole network.
func (t *sideBySide) whole() {
	t.add("longest queue", "", -1, func(r *result.Run) Cell { q, _ := longestQueue(r); return Cell{Value: bytesOf(q)} })
	t.add("mean queue there", "", -1, func(r *result.Run) Cell { _, m := longestQueue(r); return Cell{Value: bytesOf(int64(m))} })
	for _, q := range []struct{ what, metric string }{
		{"ECN marks", "marks"},
		{"CNPs", "cnps"},
		{"PFC stop frames", "pauses"},
	} {
		t.metric(q.what, q.metric)
	}
	from := len(t.rows)
	t.add("time that ports were stopped", "", -1, func(r *result.Run) Cell { return Cell{Value: timeOf(stopped(r))} })
	for _, q := range []struct{ what, metric string }{
		{"packets lost", "drops"},
		{"packets sent again", "retransmitted"},
		{"deadlocks", "deadlocks"},
		{"storms", "storms"},
	} {
		t.metric(q.what, q.metric)
	}
	for i := range t.rows[from:] {
		t.rows[from+i].Felt = true
	}
	t.add("end of the run", "", 0, func(r *result.Run) Cell { return Cell{Value: timeOf(r.End)} })
}

func (t *sideBySide) metric(what, name string) {
	t.add(what, "", -1, func(r *result.Run) Cell {
		v, err := metric.Of(r, name)
		return Cell{v, err != nil}
	})
}

// bytesOf is an amount of data as a metric's value.
func bytesOf(n int64) metric.Value { return metric.Value{V: float64(n), Unit: metric.Bytes} }

// longestQueue is the peak of the egress with the longest queue, and its mean.
func longestQueue(r *result.Run) (peak int64, mean float64) {
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			for k := range r.Nodes[i].Ports[j].Prio {
				if q := &r.Nodes[i].Ports[j].Prio[k]; q.PeakQueue > peak {
					peak, mean = q.PeakQueue, q.MeanQueue
				}
			}
		}
	}
	return peak, mean
}

// stopped sums up how long ports could not send.
func stopped(r *result.Run) sim.Time {
	n := sim.Time(0)
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			for k := range r.Nodes[i].Ports[j].Prio {
				n = n.Add(r.Nodes[i].Ports[j].Prio[k].PausedFor)
			}
		}
	}
	return n
}

func (c *Cell) text() string {
	if c.None || c.Unit == metric.Time && sim.Time(c.V) == sim.Never {
		return "-"
	}
	return ValueText(c.Value)
}

// Factor is the second side over the first; 0 where there is none.
func (r *Row) Factor() float64 {
	if len(r.Cells) != 2 || r.Cells[0].None || r.Cells[1].None || r.Cells[0].V <= 0 {
		return 0
	}
	return r.Cells[1].V / r.Cells[0].V
}

// tellRows writes runs side by side; of two also how many times the first the
// second is.
func tellRows(w io.Writer, title string, sides []Side, rows []Row) {
	heads := []string{"<"}
	for i := range sides {
		heads = append(heads, clean(sides[i].Name))
	}
	if len(sides) == 2 {
		heads = append(heads, "<")
	}
	g := NewGrid(heads...)
	for i := range rows {
		cells := []string{rows[i].What}
		for j := range rows[i].Cells {
			cells = append(cells, rows[i].Cells[j].text())
		}
		if c := rows[i].Cells; len(sides) == 2 {
			f := ""
			if !c[0].None && !c[1].None {
				f = factorText(c[0].V, c[1].V)
			}
			cells = append(cells, f)
		}
		g.Row(cells...)
	}
	g.write(w, title)
}

// notable is the change from which on something is gained or lost.
const notable = 1.05

// Balance says in a sentence each what is gained from the first side to the
// second, and what that costs; "" where nothing.
func Balance(rows []Row) (gain, cost string) {
	var gains, costs []string
	for i := range rows {
		r := &rows[i]
		a, b := &r.Cells[0], &r.Cells[1]
		// What a message would take is the goodput in other words.
		if !r.Felt || r.Better == 0 || a.None || b.None || strings.Contains(r.What, "256 KiB") ||
			max(a.V, b.V) < notable*min(a.V, b.V) || a.V == b.V {
			continue
		}
		text := fmt.Sprintf("%s %s → %s", strings.Replace(r.What, ": ", " ", 1), a.text(), b.text())
		if f := factorText(a.V, b.V); f != "" {
			text += " (" + f + ")"
		}
		if (b.V > a.V) == (r.Better > 0) {
			gains = append(gains, text)
		} else {
			costs = append(costs, text)
		}
	}
	return strings.Join(gains, "; "), strings.Join(costs, "; ")
}

// TellBeside writes the first side beside the others: a table, and what each of
// the others gains and what it costs.
func TellBeside(w io.Writer, title string, sides []Side, extra []string) {
	rows := Rows(sides, extra)
	tellRows(w, title, sides, rows)
	list := balances(sides, rows)
	for _, s := range list {
		Paragraph(w, "  ", s)
	}
	if len(list) > 0 {
		fmt.Fprintln(w)
	}
}

// balances says what each side gains over the first and what it costs, a sentence each.
func balances(sides []Side, rows []Row) []string {
	var list []string
	for i := 1; i < len(sides); i++ {
		pair := make([]Row, len(rows))
		for k := range rows {
			pair[k] = rows[k]
			pair[k].Cells = []Cell{rows[k].Cells[0], rows[k].Cells[i]}
		}
		gain, cost := Balance(pair)
		who := ""
		if len(sides) > 2 {
			who = clean(sides[i].Name) + ": "
		}
		if gain == "" && cost != "" {
			gain = "nothing"
		}
		for _, l := range []struct{ name, text string }{{"Gained: ", gain}, {"The price: ", cost}} {
			if l.text != "" {
				list = append(list, who+l.name+l.text+".")
			}
		}
	}
	return list
}
