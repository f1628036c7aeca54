package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/doctor"
)

// doctorUsage is the exit status where nothing was examined: 0 to 3 speak of the host.
const doctorUsage = 4

// doctorFlags is what doctor is told.
type doctorFlags struct {
	host           hostFlags
	peer           string
	prio           int
	rules          []string
	only, skip     []string
	asJSON, detail bool
}

func (a app) doctorCommand() *cobra.Command {
	var s doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say why RDMA does not work, or is slow, on this host or a recorded one",
		Long: "Walks the operator's order: 1 the link, 2 counters, 3 the lossless path, 4 the program, 5 the host's\n" +
			"network. Findings come with their values and the command that mends them, the likely root cause first.\n" +
			"Nothing is changed and no command is run.\n\n" +
			"Exit status: 0 nothing found, 1 a warning, 2 a failure, 3 nothing could be judged, 4 wrong usage or a\n" +
			"host that cannot be read.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.doctor(c.Context(), &s)
			if quiet := (*quietError)(nil); err == nil || errors.As(err, &quiet) {
				return err
			}
			return &statusError{doctorUsage, err}
		},
	}
	wrongFlags(c, doctorUsage)
	s.host.flags(c)
	f := c.Flags()
	f.StringVar(&s.peer, "peer", "", "the other end: a `recording` of it, or a host that runs verbena snapshot --listen, HOST[:PORT]")
	f.IntVar(&s.prio, "prio", -1, "the lossless priority; default: inferred from PFC and DSCP")
	f.StringArrayVar(&s.rules, "rules", nil, "a `file` of rules to add or put in place of others")
	f.StringSliceVar(&s.only, "only", nil, "only these `rules`, by id")
	f.StringSliceVar(&s.skip, "skip", nil, "not these `rules`")
	f.BoolVarP(&s.detail, "verbose", "v", false, "list what passed and what was skipped, and why")
	f.BoolVar(&s.asJSON, "json", false, "print JSON")
	c.AddCommand(a.doctorRulesCommand(&s), a.doctorFactsCommand())
	return c
}

func (a app) doctorFactsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "facts",
		Short: "List the vocabulary of the rules' conditions",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			facts := doctor.Facts()
			if asJSON {
				return writeJSON(a.out, facts)
			}
			for _, f := range facts {
				if _, err := fmt.Fprintf(a.out, "%-24s %s\n", f.Name, f.Doc); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a app) doctorRulesCommand(s *doctorFlags) *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use:   "rules",
		Short: "List the rules with their conditions",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rules, err := s.load()
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(a.out, rules)
			case markdown:
				_, err = fmt.Fprint(a.out, doctor.Markdown(rules))
				return err
			}
			for _, r := range rules {
				if _, err := fmt.Fprintf(a.out, "%s  %-12s %s\n", r.ID, r.Each, r.Title); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&s.rules, "rules", nil, "a `file` of rules to add or put in place of others")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&markdown, "markdown", false, "print them whole, with the vocabulary of conditions, as Markdown")
	return c
}

// maxRules is the bytes of a file of rules; all of ours have a twentieth of it.
const maxRules = 1 << 20

// readRules reads a file of rules: nothing that could block, or has no end.
func readRules(name string) ([]byte, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tooLong := fmt.Errorf("%s is longer than the limit of %d bytes", name, maxRules)
	if size > maxRules {
		return nil, tooLong
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err == nil && len(b) > maxRules {
		err = tooLong
	}
	return b, err
}

// load reads the rules, those that come with the doctor and the user's.
func (s *doctorFlags) load() ([]*doctor.Rule, error) {
	rules, err := doctor.Builtin()
	if err != nil {
		return nil, err
	}
	for _, name := range s.rules {
		text, err := readRules(name)
		if err != nil {
			return nil, fmt.Errorf("--rules: %w", err)
		}
		more, err := doctor.Parse(name, text)
		if err != nil {
			return nil, err
		}
		if rules, err = doctor.Merge(rules, more, true); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Concat(s.only, s.skip) {
		if !slices.ContainsFunc(rules, func(r *doctor.Rule) bool { return r.ID == id }) {
			return nil, fmt.Errorf("no rule %q; verbena doctor rules lists them", id)
		}
	}
	return slices.DeleteFunc(rules, func(r *doctor.Rule) bool {
		return slices.Contains(s.skip, r.ID) || len(s.only) > 0 && !slices.Contains(s.only, r.ID)
	}), nil
}

func (a app) doctor(ctx context.Context, s *doctorFlags) error {
	if s.prio < -1 || s.prio > 7 {
		return fmt.Errorf("--prio is %d, must be 0 to 7", s.prio)
	}
	if s.host.interval < 0 || s.host.interval > maxInterval {
		return fmt.Errorf("--interval is %v, must be 0 to %v", s.host.interval, maxInterval)
	}
	rules, err := s.load()
	if err != nil {
		return err
	}
	in := doctor.Input{Prio: s.prio}
	if in.Host, in.Peer, err = s.ends(ctx, a); err != nil {
		return err
	}
	r := doctor.Examine(in, rules)
	if s.asJSON {
		err = writeJSON(a.out, r)
	} else {
		err = a.report(r, s.detail)
	}
	if err != nil {
		return err
	}
	if status := r.Exit(); status != 0 {
		return &quietError{status}
	}
	return nil
}

// report prints a report, with its lines broken for the terminal if it goes to one.
func (a app) report(r *doctor.Report, detail bool) error {
	f, ok := a.out.(*os.File)
	if !ok {
		return r.Text(a.out, detail)
	}
	width, _, ok := terminalSize(f)
	if !ok {
		return r.Text(a.out, detail)
	}
	var b strings.Builder
	if err := r.Text(&b, detail); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, doctor.Wrap(b.String(), width))
	return err
}
