package sweep

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/internal/play"
)

// The bounds of what a terminal shows.
const (
	maxRows       = 60
	maxColumns    = 6 // metrics
	maxImpossible = 3 // points that are named
	maxKnees      = 3 // that are told in a sentence
)

// Tell writes the table for a terminal: a line for each point, the knees
// marked, then what they are, and what was impossible.
func (r *Result) Tell(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %d points", r.Name, len(r.Points))
	if r.Seeds > 1 {
		fmt.Fprintf(&b, " of %d runs each, medians", r.Seeds)
	}
	fmt.Fprintf(&b, "; %d runs made now, %d earlier", r.Ran, r.Stored)
	if len(r.Fixed) > 0 {
		fmt.Fprintf(&b, "; %s", strings.Join(r.Fixed, " "))
	}
	fmt.Fprintln(&b)
	if r.Stopped {
		fmt.Fprintf(&b, "INTERRUPTED: %d of %d runs are there; the same command goes on.\n", r.Ran+r.Stored, r.Total)
	}
	fmt.Fprintln(&b)
	shown := r.Metrics[:min(len(r.Metrics), maxColumns)]
	marks, lines := r.knees(shown)
	var heads []string
	for i := range r.Axes {
		heads = append(heads, r.Axes[i].Name())
	}
	heads = append(heads, shown...)
	g := play.NewGrid(append(heads, "<")...)
	more := 0
	for _, p := range r.Points {
		if p.Impossible != "" {
			continue
		}
		if g.Len() == maxRows {
			more++
			continue
		}
		cells := append([]string(nil), p.Values...)
		for _, m := range shown {
			mid, _, _ := p.Cell(m)
			text := "-"
			if mid.Err == "" {
				text = play.ValueText(mid.Value)
			}
			cells = append(cells, text)
		}
		g.Row(append(cells, marks[p])...)
	}
	for _, l := range g.Lines() {
		fmt.Fprintln(&b, "  "+l)
	}
	if more > 0 {
		fmt.Fprintf(&b, "  … %d more points: the CSV and JSON files have all\n", more)
	}
	if n := len(r.Metrics) - len(shown); n > 0 {
		fmt.Fprintf(&b, "  … %d more metrics in the CSV and JSON files\n", n)
	}
	fmt.Fprintln(&b)
	for _, l := range lines {
		play.Paragraph(&b, "", l)
	}
	r.tellImpossible(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// knees returns the marks of points, and a sentence for each knee.
func (r *Result) knees(metrics []string) (marks map[*Point]string, lines []string) {
	marks = map[*Point]string{}
	of := map[*Point]int{}
	for _, name := range metrics {
		for _, c := range r.curves(name) {
			if c.knee < 0 {
				continue
			}
			p := c.points[c.knee]
			if of[p]++; of[p] == 1 {
				marks[p] = "◀ knee of " + name
			}
			if len(lines) < maxKnees {
				lines = append(lines, c.sentence(r))
			}
		}
	}
	for p, n := range of {
		if n > 1 {
			marks[p] += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return marks, lines
}

// sentence says where a curve bends, and what it does on both sides.
func (c *curve) sentence(r *Result) string {
	at := func(i int) string { return c.points[i].Values[c.axis] }
	y := func(i int) string { return play.ValueText(c.y[i].Value) }
	k, n := c.knee, len(c.x)-1
	s := fmt.Sprintf("Knee of %s over %s", c.metric, r.Axes[c.axis].Name())
	if c.others != "" {
		s += " at " + c.others
	}
	return s + fmt.Sprintf(": %s. From %s to there it goes from %s to %s, from there to %s to %s.", at(k), at(0), y(0), y(k), at(n), y(n))
}

// tellImpossible names points that cannot be.
func (r *Result) tellImpossible(w io.Writer) {
	n := 0
	for _, p := range r.Points {
		if p.Impossible == "" {
			continue
		}
		if n++; n <= maxImpossible {
			play.Paragraph(w, "", "impossible: "+p.Impossible)
		}
	}
	if n > maxImpossible {
		fmt.Fprintf(w, "impossible: %d more points\n", n-maxImpossible)
	}
}

// WriteCSV writes a line for each point and metric column: the median, and of
// several runs the least and the greatest. Values are in bit/s, ps, bytes or
// plain numbers.
func (r *Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	var head []string
	for i := range r.Axes {
		head = append(head, r.Axes[i].Name())
	}
	head = append(head, "runs")
	for _, m := range r.Metrics {
		head = append(head, m)
		if r.Seeds > 1 {
			head = append(head, m+":min", m+":max")
		}
	}
	head = append(head, "knee_of", "impossible")
	if err := c.Write(head); err != nil {
		return err
	}
	marks := map[*Point]string{}
	for _, m := range r.Metrics {
		for _, k := range r.curves(m) {
			if k.knee >= 0 {
				p := k.points[k.knee]
				marks[p] = strings.TrimPrefix(marks[p]+" "+m, " ")
			}
		}
	}
	for _, p := range r.Points {
		row := append([]string(nil), p.Values...)
		row = append(row, strconv.Itoa(p.runs()))
		for _, m := range r.Metrics {
			mid, low, high := p.Cell(m)
			for i, x := range []Cell{mid, low, high} {
				switch {
				case i > 0 && r.Seeds == 1:
				case x.Err != "":
					row = append(row, "")
				default:
					row = append(row, strconv.FormatFloat(x.V, 'g', -1, 64))
				}
			}
		}
		if err := c.Write(append(row, marks[p], p.Impossible)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func (p *Point) runs() int {
	n := 0
	for _, m := range p.Runs {
		if m != nil {
			n++
		}
	}
	return n
}

type pointJSON struct {
	Set        map[string]string   `json:"set"`
	Impossible string              `json:"impossible,omitempty"`
	Runs       []runJSON           `json:"runs"`
	Median     map[string]*float64 `json:"median"`
	KneeOf     []string            `json:"knee_of,omitempty"`
}

type runJSON struct {
	Seed    string              `json:"seed"`
	Digest  string              `json:"digest"`
	Why     string              `json:"why"`
	Metrics map[string]lineCell `json:"metrics"`
}

// WriteJSON writes everything that is known.
func (r *Result) WriteJSON(w io.Writer) error {
	doc := struct {
		Scenario    string      `json:"scenario"`
		Set         []string    `json:"set"`
		Axes        []string    `json:"axes"`
		Metrics     []string    `json:"metrics"`
		Interrupted bool        `json:"interrupted"`
		Points      []pointJSON `json:"points"`
	}{r.Name, append([]string{}, r.Fixed...), []string{}, r.Metrics, r.Stopped, []pointJSON{}}
	for i := range r.Axes {
		doc.Axes = append(doc.Axes, r.Axes[i].Name())
	}
	knees := map[*Point][]string{}
	for _, m := range r.Metrics {
		for _, k := range r.curves(m) {
			if k.knee >= 0 {
				knees[k.points[k.knee]] = append(knees[k.points[k.knee]], m)
			}
		}
	}
	for _, p := range r.Points {
		j := pointJSON{Set: map[string]string{}, Impossible: p.Impossible, Runs: []runJSON{}, Median: map[string]*float64{}, KneeOf: knees[p]}
		for i := range r.Axes {
			for _, k := range r.Axes[i].Keys {
				j.Set[k] = p.Values[i]
			}
		}
		for _, m := range p.Runs {
			if m == nil {
				continue
			}
			x := runJSON{Seed: strconv.FormatUint(m.Seed, 10), Digest: fmt.Sprintf("%016x", m.Digest), Why: m.Why, Metrics: map[string]lineCell{}}
			for _, name := range r.Metrics {
				x.Metrics[name] = cellOf(m.Cells[name])
			}
			j.Runs = append(j.Runs, x)
		}
		for _, name := range r.Metrics {
			j.Median[name] = nil
			if mid, _, _ := p.Cell(name); mid.Err == "" {
				j.Median[name] = &mid.V
			}
		}
		doc.Points = append(doc.Points, j)
	}
	b, err := json.MarshalIndent(&doc, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
