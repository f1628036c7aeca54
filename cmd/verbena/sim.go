package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

func (a app) simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "simulate a lossless fabric: PFC, ECN, DCQCN, and why it does what it does",
		Long: "sim runs scenarios: a topology, switches, hosts whose NICs are the adapters of this\n" +
			"program, traffic and faults, packet by packet in virtual time. A scenario is a YAML file,\n" +
			"or a name of the library (verbena sim list).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.simListCommand(), a.simShowCommand(), a.simCheckCommand(), a.simRunCommand())
	return c
}

func (a app) simListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "list the library of scenarios", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, n := range lab.Names() {
				sc, _, err := openScenario(n, nil)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%-22s %s\n", n, sc.Title)
			}
			return nil
		},
	}
}

func (a app) simShowCommand() *cobra.Command {
	var sets []string
	c := &cobra.Command{
		Use: "show SCENARIO", Short: "print a scenario with everything it leaves to the defaults", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			sc, _, err := openScenario(args[0], sets)
			if err != nil {
				return err
			}
			_, err = a.out.Write(sc.YAML())
			return err
		},
	}
	setFlag(c, &sets)
	return c
}

func setFlag(c *cobra.Command, sets *[]string) {
	c.Flags().StringArrayVar(sets, "set", nil, "change a `key=value` of the scenario, as in switch.ecn.kmin=8KB; may be repeated")
}

func (a app) simCheckCommand() *cobra.Command {
	var sets []string
	c := &cobra.Command{
		Use: "check SCENARIO", Short: "say what is impossible or unwise in a scenario, without running it", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			sc, files, err := openScenario(args[0], sets)
			if err != nil {
				return err
			}
			_, warnings, err := fabric.Load(sc, files)
			for _, w := range warnings {
				fmt.Fprintln(a.out, "warning:", w)
			}
			if err == nil && len(warnings) == 0 {
				fmt.Fprintln(a.out, "nothing to remark")
			}
			return err
		},
	}
	setFlag(c, &sets)
	return c
}

func (a app) simRunCommand() *cobra.Command {
	var sets []string
	var dir, format string
	c := &cobra.Command{
		Use: "run SCENARIO", Short: "run a scenario and explain what happened", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.simRun(cmd.Context(), args[0], sets, dir, format)
		},
	}
	setFlag(c, &sets)
	c.Flags().StringVarP(&dir, "out", "o", "", "write the report and all files into `dir`")
	c.Flags().StringVar(&format, "format", "text", "what is printed: text or json")
	return c
}

func (a app) simRun(ctx context.Context, name string, sets []string, dir, format string) error {
	sc, files, err := openScenario(name, sets)
	if err != nil {
		return err
	}
	r, warnings, err := fabric.Load(sc, files)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(a.err, "warning:", w)
	}
	for over := false; !over && ctx.Err() == nil; {
		if over, err = r.Advance(1 << 16); err != nil {
			return err
		}
	}
	res := r.Result()
	res.Source = string(sc.YAML())
	if format == "json" {
		return report.WriteJSON(a.out, res)
	}
	return a.simReport(res)
}

func (a app) simReport(res *result.Run) error {
	story := explain.Explain(res)
	if err := story.Text(a.out, 100); err != nil {
		return err
	}
	return report.WriteText(a.out, res)
}

// openScenario reads a file, or a scenario of the library, and says how files
// that it names are opened: beside it.
func openScenario(name string, sets []string) (*scenario.Scenario, fabric.Files, error) {
	text, err := os.ReadFile(name)
	if err == nil {
		sc, err := scenario.ParseSet(name, text, sets)
		return sc, filesBeside(name), err
	}
	file, text, libErr := lab.Source(name)
	if libErr != nil {
		if strings.ContainsAny(name, "/.") {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%w; verbena sim list shows them, and there is no file of that name", libErr)
	}
	sc, err := scenario.ParseSet(file, text, sets)
	return sc, nil, err
}

// filesBeside opens files relative to the scenario that names them.
func filesBeside(scenarioFile string) fabric.Files {
	return func(name string) (io.Reader, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(scenarioFile), name)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if st, err := f.Stat(); err == nil && st.IsDir() {
			_ = f.Close()
			return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("is a directory")}
		}
		return f, nil
	}
}
