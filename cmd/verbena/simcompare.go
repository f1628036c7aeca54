package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/internal/play"
)

// compareFlags is what sim compare is told.
type compareFlags struct {
	simChange           // of B
	first     simChange // of A
	metrics   []string
	dir       string
	asJSON    bool
	verbose   bool
}

func (a app) simCompareCommand() *cobra.Command {
	var s compareFlags
	c := &cobra.Command{
		Use:   "compare A [B]",
		Short: "Put two runs side by side and say what changed, what was gained and what it costs",
		Long: "A and B are scenarios (names or files) or results that were saved with sim run --json. Without B it is A\n" +
			"again, changed by --set: verbena sim compare cross-subnet-ecn --set ecn.kmin=64KB",
		Args: cobra.RangeArgs(1, 2),
		RunE: a.simRunE(func(cmd *cobra.Command, args []string) error { return a.simCompare(cmd.Context(), args, &s) }),
	}
	s.setName, s.setHelp = "set", "change a key of B by `key=value`; may be repeated"
	s.flags(c)
	f := c.Flags()
	f.StringArrayVar(&s.first.sets, "set-a", nil, "change a key of A by `key=value`; may be repeated")
	f.StringArrayVar(&s.metrics, "metric", nil, "compare another `number` too, as in flow.long.fct.p99 (see docs/sim.md); may be repeated")
	f.StringVarP(&s.dir, "out", "o", "", "write both results as a.json and b.json, and the comparison, into `dir`")
	f.BoolVar(&s.asJSON, "json", false, "print JSON")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print what changed in the explanation, too")
	return c
}

func (a app) simCompare(ctx context.Context, args []string, s *compareFlags) error {
	s.first.setName, s.first.seed, s.first.duration = "set-a", s.seed, s.duration
	if len(args) == 1 {
		if len(s.sets) == 0 && s.tables == "" && len(s.first.sets) == 0 {
			return errors.New("give a second run, or with --set what is different in it")
		}
		args = append(args, args[0])
	}
	var sides []play.Side
	for i, change := range []*simChange{&s.first, &s.simChange} {
		r, err := a.side(ctx, args[i], change)
		if err != nil {
			return err
		}
		sides = append(sides, play.Side{Name: s.sideName(args, i), Run: r})
	}
	if err := checkMetrics(sides, s.metrics); err != nil {
		return err
	}
	rows := play.Rows(sides, s.metrics)
	gain, price := play.Balance(rows)
	diff := explain.Compare(sides[0].Run, sides[1].Run)
	var text bytes.Buffer
	for i, line := range []string{diff.LineA, diff.LineB} {
		play.Paragraph(&text, "", fmt.Sprintf("%c: %s: %s", 'A'+i, sides[i].Name, line))
	}
	fmt.Fprintln(&text)
	if diff.Same {
		fmt.Fprintln(&text, "The two are the same run: equal digests.")
	} else {
		play.TellBeside(&text, "SIDE BY SIDE", []play.Side{{Name: "A", Run: sides[0].Run}, {Name: "B", Run: sides[1].Run}}, s.metrics)
		if s.verbose {
			if err := diff.Text(&text, report.TextWidth); err != nil {
				return err
			}
		}
	}
	if s.dir != "" {
		names, err := play.WriteSides(s.dir, sides, text.Bytes())
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "files:  %s (%s)\n", s.dir, strings.Join(names, ", "))
	}
	if !s.asJSON {
		_, err := a.out.Write(text.Bytes())
		return err
	}
	return writeJSON(a.out, compareDocument(sides, rows, diff, gain, price))
}

// side finds or makes the result of one side.
func (a app) side(ctx context.Context, name string, s *simChange) (*result.Run, error) {
	src, err := play.Find(name)
	if err != nil {
		return nil, err
	}
	if src.Kind == play.Saved {
		if len(s.words()) > 0 {
			return nil, fmt.Errorf("%s is a saved result: nothing of it can be changed", name)
		}
		return src.Run, nil
	}
	change, err := s.change()
	if err != nil {
		return nil, err
	}
	sc, err := src.Scenario(change)
	if err != nil {
		return nil, err
	}
	a.notes(sc.Notes)
	files := src.Files()
	defer files.Close()
	out, err := sc.Run(ctx, files, play.Options{Bar: play.NewBar(a.err), Warn: a.note})
	if err != nil {
		return nil, err
	}
	if out.Stopped {
		return nil, context.Canceled // a part compared with a whole says nothing
	}
	return out.Result, nil
}

// sideName says what a side is, shortly.
func (s *compareFlags) sideName(args []string, i int) string {
	sets := [][]string{s.first.sets, s.sets}[i]
	name := args[i]
	if strings.ContainsAny(name, `/\`) {
		name = filepath.Base(name)
	}
	if i == 1 && s.tables != "" {
		name += " with " + filepath.Base(s.tables)
	}
	if len(sets) > 0 {
		name += " " + strings.Join(sets, " ")
	}
	return name
}

// checkMetrics refuses a metric that neither run has.
func checkMetrics(sides []play.Side, names []string) error {
	for _, name := range names {
		_, err := metric.Of(sides[0].Run, name)
		if err == nil {
			continue
		}
		if _, errB := metric.Of(sides[1].Run, name); errB != nil {
			return err
		}
	}
	return nil
}

type comparedSide struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Verdict     string   `json:"verdict"`
	Seed        string   `json:"seed"`
	Digest      string   `json:"digest"`
	EndPS       int64    `json:"end_ps"`
	Interrupted bool     `json:"interrupted"`
	Warnings    []string `json:"warnings"`
}

type comparedRow struct {
	What   string   `json:"what"`
	Group  string   `json:"group"`
	Unit   string   `json:"unit"`
	A      *float64 `json:"a"`
	B      *float64 `json:"b"`
	Factor *float64 `json:"factor"`
}

// compareDocument is the JSON document of sim compare.
func compareDocument(sides []play.Side, rows []play.Row, diff *explain.Difference, gain, price string) any {
	side := func(i int, verdict string) comparedSide {
		r := sides[i].Run
		return comparedSide{
			sides[i].Name, r.Title, verdict, fmt.Sprint(r.Seed), fmt.Sprintf("%016x", r.Digest), int64(r.End), r.Interrupted, append([]string{}, r.Warnings...),
		}
	}
	list := []comparedRow{}
	for i := range rows {
		r := &rows[i]
		row := comparedRow{What: r.What, Group: r.Group, Unit: play.UnitName(r.Cells[0].Unit)}
		if r.Cells[0].None {
			row.Unit = play.UnitName(r.Cells[1].Unit)
		}
		for k, to := range []**float64{&row.A, &row.B} {
			if c := &r.Cells[k]; !c.None {
				*to = &c.V
			}
		}
		if f := r.Factor(); f > 0 {
			row.Factor = &f
		}
		list = append(list, row)
	}
	return struct {
		A     comparedSide  `json:"a"`
		B     comparedSide  `json:"b"`
		Same  bool          `json:"same"`
		Rows  []comparedRow `json:"rows"`
		Gain  string        `json:"gain"`
		Price string        `json:"price"`
	}{side(0, diff.LineA), side(1, diff.LineB), diff.Same, list, gain, price}
}
