package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/simhost"
	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/internal/play"
)

// runFlags is what sim run is told.
type runFlags struct {
	simChange
	dir, html, hpcc, csv  string
	snapshots             string
	pcap                  []string
	asJSON, expect, alone bool
	verbose, headers      bool

	name     string
	captures captureFiles
	outcome  *play.Outcome
	sides    []play.Side      // of the variants
	beside   bytes.Buffer     // the variants, told
	more     []report.Section // the same for the page
	cut      string           // the variant during which it was interrupted
	written  []string         // files, for the last lines
}

func (a app) simRunCommand() *cobra.Command {
	var s runFlags
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a scenario and explain what happened",
		Long: "Runs a scenario of the library or a file, and explains: verdict and causes first, then rates and queues\n" +
			"over time, tables, what was expected. Scenarios of the library that have another side (sim list --json:\n" +
			"variants) are run a second time with it, unless something is changed.\n\n" +
			"Ctrl-C stops the run and reports the part that has happened (exit status 130); a second one ends at once.\n" +
			"Exit status: 0; 1 wrong command line, or with --expect an expectation that was not met; 2 wrong scenario.",
		Args: cobra.ExactArgs(1),
		RunE: a.simRunE(func(cmd *cobra.Command, args []string) error {
			s.name = args[0]
			return a.simRun(cmd.Context(), &s)
		}),
	}
	s.flags(c)
	f := c.Flags()
	f.StringVarP(&s.dir, "out", "o", "", "write report, tables, charts, JSON, CSV and the scenario into `dir`")
	f.StringVar(&s.html, "html", "", "write the report into `file`, one page without outside references")
	f.StringVar(&s.hpcc, "hpcc", "", "write topology.txt, flow.txt, fct.txt, pfc.txt, qlen.txt, slowdown.txt as HPCC's simulator has them into `dir`")
	f.StringVar(&s.snapshots, "snapshots", "", "write every host and switch as a recording into `dir`, for verbena doctor --host dir/host0")
	f.StringArrayVar(&s.pcap, "pcap", nil, "capture a port as pcapng by `port=file`, as in leaf0/Ethernet3=x.pcapng; may be repeated")
	f.BoolVar(&s.headers, "pcap-headers", false, "cut captured frames behind their headers: a tenth of the size, but tshark calls them malformed")
	f.BoolVar(&s.asJSON, "json", false, "print the whole result as JSON, and nothing else")
	f.StringVar(&s.csv, "csv", "", "print CSV, and nothing else: `table` flows, ports, pauses, drops or series")
	f.Lookup("csv").NoOptDefVal = "flows"
	f.BoolVar(&s.expect, "expect", false, "exit with 1 if a number that the scenario expects is not met; of the library also where something is changed")
	f.BoolVar(&s.alone, "alone", false, "do not run the scenario's other side")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print everything: all of the explanation, all tables")
	return c
}

// csvTables are the tables of --csv.
var csvTables = []struct {
	name  string
	write func(io.Writer, *result.Run) error
}{
	{"flows", report.WriteFlowsCSV},
	{"ports", report.WritePortsCSV},
	{"pauses", report.WritePausesCSV},
	{"drops", report.WriteDropsCSV},
	{"series", report.WriteSeriesCSV},
}

func (a app) simRun(ctx context.Context, s *runFlags) error {
	table := slices.IndexFunc(csvTables, func(t struct {
		name  string
		write func(io.Writer, *result.Run) error
	},
	) bool {
		return t.name == s.csv
	})
	switch {
	case s.csv != "" && table < 0:
		return fmt.Errorf("--csv=%s: flows, ports, pauses, drops or series", s.csv)
	case s.csv != "" && s.asJSON:
		return errors.New("--json and --csv: one at a time")
	}
	if err := s.prepare(); err != nil {
		return err
	}
	defer s.captures.close()
	if err := a.simPlay(ctx, s); err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	if err := a.simPrint(s, table); err != nil {
		return err
	}
	switch failed := s.outcome.Failed(); {
	case s.outcome.Stopped:
		if s.asJSON || s.csv != "" {
			return context.Canceled // says so beside the output
		}
		return &quietError{simInterrupted}
	case failed > 0 && s.expect:
		a.note(fmt.Sprintf("%d of %d expected numbers were not met", failed, len(s.outcome.Checks)))
		return &quietError{simFailed}
	}
	return nil
}

// prepare makes sure that what is to be written can be, before anybody waits.
func (s *runFlags) prepare() error {
	for _, d := range []struct{ flag, dir string }{{"--out", s.dir}, {"--hpcc", s.hpcc}, {"--snapshots", s.snapshots}} {
		if d.dir == "" {
			continue
		}
		if err := os.MkdirAll(d.dir, 0o777); err != nil {
			return fmt.Errorf("%s: %w", d.flag, err)
		}
	}
	if s.html != "" {
		if err := play.CanWrite(s.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return nil
}

// simPlay runs the scenario and, where it has one, its other side.
func (a app) simPlay(ctx context.Context, s *runFlags) error {
	src, err := play.Find(s.name)
	if err != nil {
		return err
	}
	change, err := s.change()
	if err != nil {
		return err
	}
	sets, err := s.captures.ports(s.pcap)
	if err != nil {
		return err
	}
	change.Sets = append(change.Sets[:len(change.Sets):len(change.Sets)], sets...)
	sc, err := src.Scenario(change)
	if err != nil {
		return err
	}
	a.notes(sc.Notes)
	o := play.Options{Bar: play.NewBar(a.err), Warn: a.note, Headers: s.headers}
	switch {
	case len(s.pcap) > 0:
		o.Captures = s.captures.create
	case len(sc.Record.PCAP) > 0 && s.dir != "":
		s.captures.dir = s.dir
		o.Captures = s.captures.create
	case len(sc.Record.PCAP) > 0:
		a.note("record.pcap: nothing is captured without --out or --pcap")
	}
	files := src.Files()
	defer files.Close()
	if s.outcome, err = sc.Run(ctx, files, o); err != nil {
		return err
	}
	if src.Library() && len(s.words()) > 0 && !s.expect {
		s.outcome.Checks = nil // they are about the scenario as it is
	}
	if n := s.outcome.Missed; n > 0 {
		a.note(fmt.Sprintf("record.pcap_packets: %d frames were not captured any more", n))
	}
	if !src.Library() || s.outcome.Stopped || s.alone || s.asJSON || s.csv != "" || len(s.words()) > 0 {
		return nil
	}
	return a.simBeside(ctx, src, sc, s)
}

// simBeside runs the variants of a scenario of the library.
func (a app) simBeside(ctx context.Context, src *play.Source, base *play.Reading, s *runFlags) error {
	variants := lab.Variants(src.Name)
	if len(variants) == 0 {
		return nil
	}
	sides := []play.Side{{Name: "as it is", Run: s.outcome.Result}}
	const head = "THE OTHER SIDE"
	title := head
	var lead []string
	var checks []play.Check
	for _, v := range variants {
		sc, err := src.Scenario(play.Change{Sets: v.All()})
		if err != nil {
			return err
		}
		sc.Name = base.Name + ", " + v.Name
		out, err := sc.Run(ctx, &play.Files{}, play.Options{Bar: play.NewBar(a.err)})
		if err != nil {
			return err
		}
		if out.Stopped {
			s.outcome.Stopped, s.cut = true, v.Name
			return nil
		}
		var says strings.Builder
		lead = append(lead, fmt.Sprintf("%s: %s (%s)", v.Name, v.Says, strings.Join(v.Sets, " ")))
		play.Paragraph(&says, "  ", lead[len(lead)-1])
		title += "\n" + strings.TrimSuffix(says.String(), "\n")
		for _, c := range out.Checks {
			c.What = v.Name + ": " + c.What
			checks = append(checks, c)
		}
		sides = append(sides, play.Side{Name: v.Name, Run: out.Result})
	}
	play.TellBeside(&s.beside, title, sides, nil)
	s.more = []report.Section{play.Beside(head, lead, sides)}
	s.sides = sides[1:]
	s.outcome.Checks = append(s.outcome.Checks, checks...)
	return nil
}

// again is the command that repeats the run.
func (s *runFlags) again() string {
	return commandLine(append([]string{"verbena", "sim", "run", s.name}, s.words()...)...)
}

// writeFiles writes what flags ask for.
func (s *runFlags) writeFiles() error {
	o := s.outcome
	s.written = append(s.written, s.captures.names...)
	if err := s.captures.close(); err != nil {
		return err
	}
	if s.snapshots != "" {
		n, err := simhost.Record(s.snapshots, o.Reading.Scenario, o.Graph, o.Result)
		if err != nil {
			return err
		}
		s.written = append(s.written, fmt.Sprintf("%s (%d hosts and switches at the beginning and the end: verbena doctor --host)", s.snapshots, n))
	}
	if s.dir == "" && s.html == "" && s.hpcc == "" {
		return nil
	}
	page := o.Page(s.more, s.again(), buildVersion())
	if s.html != "" {
		if err := play.WriteFile(s.html, func(w io.Writer) error { return report.WriteHTML(w, o.Result, page) }); err != nil {
			return err
		}
		s.written = append(s.written, s.html)
	}
	if s.dir != "" {
		names, err := o.WriteDir(s.dir, page)
		if err != nil {
			return err
		}
		for _, side := range s.sides {
			name := filepath.Join(s.dir, "run-"+side.Name+".json")
			if err := play.WriteFile(name, func(w io.Writer) error { return report.WriteJSON(w, side.Run) }); err != nil {
				return err
			}
			names = append(names, name)
		}
		s.written = append(s.written, fmt.Sprintf("%s (%d files, report.html first)", s.dir, len(names)))
	}
	if s.hpcc != "" {
		names, err := o.WriteHPCC(s.hpcc)
		if err != nil {
			return err
		}
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		s.written = append(s.written, fmt.Sprintf("%s (%s)", s.hpcc, strings.Join(names, ", ")))
	}
	return nil
}

// simPrint prints what became of the run.
func (a app) simPrint(s *runFlags, table int) error {
	o := s.outcome
	switch {
	case s.asJSON:
		return report.WriteJSON(a.out, o.Result)
	case table >= 0:
		return csvTables[table].write(a.out, o.Result)
	}
	long := play.Short
	if s.verbose {
		long = play.Long
	}
	if err := o.Tell(a.out, long); err != nil {
		return err
	}
	if _, err := a.out.Write(s.beside.Bytes()); err != nil {
		return err
	}
	if err := o.TellChecks(a.out, long); err != nil {
		return err
	}
	var b bytes.Buffer
	if s.cut != "" {
		fmt.Fprintf(&b, "INTERRUPTED before the other side, %s, had ended.\n", s.cut)
	}
	for i, name := range s.written {
		fmt.Fprintf(&b, "%-8s%s\n", cmp.Or(map[bool]string{true: "files:"}[i == 0], ""), name)
	}
	fmt.Fprintf(&b, "again:  %s\n", s.again())
	if len(s.written) == 0 && !s.verbose {
		fmt.Fprintln(&b, "more:   -v prints all of it, -o DIR writes the report with charts, --set key=value changes something")
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// captureFiles are the files of captured ports.
type captureFiles struct {
	dir   string // for ports that are not named; "" where all are
	file  map[string]string
	names []string
	open  []*os.File
}

// ports reads --pcap and returns the override that asks for them.
func (c *captureFiles) ports(list []string) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	c.file = map[string]string{}
	var quoted []string
	for _, p := range list {
		port, file, ok := strings.Cut(p, "=")
		port = strings.Replace(port, ":", "/", 1)
		if node, name, both := strings.Cut(port, "/"); !ok || !both || node == "" || name == "" || file == "" || strings.ContainsAny(port, "*,[]") {
			return nil, fmt.Errorf("--pcap %q: give one port and a file, as in leaf0/Ethernet3=x.pcapng", p)
		}
		if c.file[port] != "" {
			return nil, fmt.Errorf("--pcap %q: the port is captured already", p)
		}
		if err := play.CanWrite(file); err != nil {
			return nil, fmt.Errorf("--pcap %s: %w", port, err)
		}
		c.file[port] = file
		quoted = append(quoted, fmt.Sprintf("%q", port))
	}
	return []string{"record.pcap=[" + strings.Join(quoted, ", ") + "]"}, nil
}

// create makes the file of a port.
func (c *captureFiles) create(port string) (io.Writer, error) {
	name := c.file[port]
	if name == "" {
		name = filepath.Join(c.dir, strings.ReplaceAll(port, "/", "-")+".pcapng")
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	c.open = append(c.open, f)
	c.names = append(c.names, name)
	return f, nil
}

// close closes the files; again it does nothing.
func (c *captureFiles) close() error {
	var errs []error
	for _, f := range c.open {
		errs = append(errs, f.Close())
	}
	c.open = nil
	return errors.Join(errs...)
}
