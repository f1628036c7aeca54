package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/internal/play"
	"github.com/verbena-rdma/verbena/internal/sweep"
)

// sweepFlags is what sim sweep is told.
type sweepFlags struct {
	simChange
	metrics            []string
	seeds, jobs        int
	dir                string
	dirGiven           bool
	fresh, asJSON, csv bool
}

func (a app) simSweepCommand() *cobra.Command {
	var s sweepFlags
	c := &cobra.Command{
		Use:   "sweep SCENARIO --set key=value,value,…",
		Short: "Run a grid of settings over all cores, and find the knee",
		Long: "Runs a scenario at every combination of the values that --set lists, as many runs at a time as there\n" +
			"are cores, and prints a table with the knees marked. Runs that have ended are kept in DIR/results.jsonl:\n" +
			"the same command goes on after an interruption, and asks only for what is not there.\n\n" +
			"  verbena sim sweep cross-subnet-ecn --set ecn.kmin=8KB,16KB,32KB,64KB,128KB,256KB\n" +
			"  verbena sim sweep incast --set buffer.alpha=1/16,1/8,1/4 --set ecn.kmin+ecn.kmax=50KB,100KB --seeds 5\n\n" +
			"Keys joined by + take the same value. A range of whole numbers is a list: seed=1..20.\n" +
			"The knee of a curve is the point farthest from the straight line through its ends (Kneedle).",
		Args: cobra.ExactArgs(1),
		RunE: a.simRunE(func(cmd *cobra.Command, args []string) error {
			s.dirGiven = cmd.Flags().Changed("out")
			return a.simSweep(cmd.Context(), args[0], &s)
		}),
	}
	s.setName, s.setHelp = "set", "set a key to each of several values, `key=value,value`, or at all points to one; may be repeated"
	s.flags(c)
	f := c.Flags()
	f.StringArrayVar(&s.metrics, "metric", nil, "a `number` of each run, as in flow.long.goodput (see docs/sim.md); may be repeated")
	f.IntVar(&s.seeds, "seeds", 1, "run each point with so many seeds and show medians")
	f.IntVarP(&s.jobs, "jobs", "j", 0, "runs at a time; 0: as many as cores")
	f.StringVarP(&s.dir, "out", "o", "", "`dir` for results.jsonl, sweep.csv, sweep.json and charts; default: sweep-NAME; '' keeps nothing")
	f.BoolVar(&s.fresh, "fresh", false, "run again what is in results.jsonl")
	f.BoolVar(&s.asJSON, "json", false, "print JSON")
	f.BoolVar(&s.csv, "csv", false, "print CSV")
	return c
}

func (a app) simSweep(ctx context.Context, name string, s *sweepFlags) error {
	switch {
	case s.asJSON && s.csv:
		return errors.New("--json and --csv: one at a time")
	case s.seeds < 1 || s.seeds > sweep.MaxSeeds:
		return fmt.Errorf("--seeds %d: must be between 1 and %d", s.seeds, sweep.MaxSeeds)
	case s.jobs < 0 || s.jobs > 1024:
		return fmt.Errorf("--jobs %d: must be between 0 and 1024", s.jobs)
	}
	fixed, axes, err := sweep.ParseSets(s.sets)
	if err != nil {
		return err
	}
	if len(axes) == 0 && s.seeds == 1 {
		return errors.New("give a key several values, as in --set ecn.kmin=8KB,16KB,32KB, or --seeds")
	}
	src, err := play.Find(name)
	if err != nil {
		return err
	}
	one := s.simChange
	one.sets = fixed
	change, err := one.change()
	if err != nil {
		return err
	}
	if !s.dirGiven {
		s.dir = "sweep-" + strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	r, err := sweep.Run(ctx, sweep.Config{
		Source: src, Change: change, Axes: axes, Seeds: s.seeds, Metrics: s.metrics, Jobs: s.jobs, Dir: s.dir, Fresh: s.fresh,
		Version: programVersion(), Status: a.err, Note: a.note,
	})
	if err != nil {
		return err
	}
	var names []string
	if s.dir != "" {
		if names, err = writeSweep(s.dir, r); err != nil {
			return err
		}
	}
	switch {
	case s.asJSON:
		err = r.WriteJSON(a.out)
	case s.csv:
		err = r.WriteCSV(a.out)
	default:
		var b bytes.Buffer
		if err := r.Tell(&b); err != nil {
			return err
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "files:  %s (%s)\n", s.dir, strings.Join(names, ", "))
		}
		_, err = a.out.Write(b.Bytes())
	}
	if err == nil && r.Stopped {
		if s.asJSON || s.csv {
			return context.Canceled // says so beside the output
		}
		return &quietError{simInterrupted}
	}
	return err
}

// writeSweep writes the tables and charts of a sweep beside its runs, and
// returns what files the directory has.
func writeSweep(dir string, r *sweep.Result) ([]string, error) {
	names := []string{sweep.StoreName}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"sweep.csv", r.WriteCSV}, {"sweep.json", r.WriteJSON}} {
		if err := play.WriteFile(filepath.Join(dir, f.name), f.write); err != nil {
			return nil, err
		}
		names = append(names, f.name)
	}
	charts := r.Charts()
	for _, c := range charts {
		if err := play.WriteFile(filepath.Join(dir, c.Name+".svg"), c.Drawing.WriteSVG); err != nil {
			return nil, err
		}
	}
	if len(charts) > 0 {
		names = append(names, fmt.Sprintf("%d charts", len(charts)))
	}
	return names, nil
}
