package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/internal/play"
)

// Exit statuses of the sim commands beside 0, and 1 of a wrong command line.
const (
	simFailed      = 1   // an expectation was not met, with --expect
	simWrong       = 2   // a scenario, or a file, is wrong
	simInterrupted = 130 // as shells have it: 128 + SIGINT
	simBroken      = 141 // nobody reads the output any more: 128 + SIGPIPE
)

func (a app) simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a lossless fabric: PFC, ECN, DCQCN, and why it does what it does",
		Long: "sim runs scenarios: a topology, switches, hosts whose NICs are the adapters of this program,\n" +
			"traffic and faults, packet by packet in virtual time. A scenario is a name of the library\n" +
			"(verbena sim list) or a YAML file; config.txt of HPCC's simulator is read too.\n\n" +
			"Begin with: verbena sim run cross-subnet-ecn",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.simListCommand(), a.simShowCommand(), a.simCheckCommand(), a.simRunCommand(), a.simCompareCommand(), a.simSweepCommand())
	return c
}

// simRunE makes a RunE of a sim command: what is wrong is one line and status
// 2, a pipe that nobody reads is no fault, and a second Ctrl-C ends the program
// at once.
func (a app) simRunE(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		defer context.AfterFunc(cmd.Context(), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
		err := run(cmd, args)
		var quiet *quietError
		switch {
		case err == nil, errors.As(err, &quiet):
			return err
		case errors.Is(err, syscall.EPIPE):
			return &quietError{simBroken}
		case errors.Is(err, context.Canceled):
			return err
		}
		a.note(cmd.CommandPath() + ": " + err.Error())
		asJSON, flagErr := cmd.Flags().GetBool("json")
		if out, ok := a.out.(*counter); flagErr == nil && asJSON && (!ok || out.n == 0) {
			_ = writeJSON(a.out, map[string]string{"program": cmd.CommandPath(), "error": oneLine(err.Error())})
		}
		return &quietError{simWrong}
	}
}

// simChange is the flags by which commands change a scenario.
type simChange struct {
	sets             []string
	tables           string
	seed, duration   string
	setHelp, setName string
}

func (s *simChange) flags(c *cobra.Command) {
	f := c.Flags()
	if s.setName == "" {
		s.setName, s.setHelp = "set", "change a key of the scenario by `key=value`, as in switch.ecn.kmin=8KB; short where it is clear: ecn.kmin; may be repeated"
	}
	f.StringArrayVar(&s.sets, s.setName, nil, s.setHelp)
	f.StringVar(&s.tables, "tables", "", "put the tables of a SONiC switch, a config_db.json, over the scenario's switches (a `file`)")
	f.StringVar(&s.seed, "seed", "", "`seed` of every random choice")
	f.StringVar(&s.duration, "duration", "", "virtual `time` after which the run ends in any case, as in 10ms")
}

// change reads what the flags name.
func (s *simChange) change() (play.Change, error) {
	c := play.Change{Sets: s.sets}
	if s.seed != "" {
		c.Sets = append(c.Sets[:len(c.Sets):len(c.Sets)], "seed="+s.seed)
	}
	if s.duration != "" {
		c.Sets = append(c.Sets[:len(c.Sets):len(c.Sets)], "duration="+s.duration)
	}
	if s.tables != "" {
		src, err := play.Open(s.tables)
		if err != nil {
			return c, fmt.Errorf("--tables: %w", err)
		}
		c.Tables = src
	}
	return c, nil
}

// words returns the flags as they would be typed.
func (s *simChange) words() []string {
	var w []string
	for _, set := range s.sets {
		w = append(w, "--"+s.setName, set)
	}
	for _, f := range []struct{ name, val string }{{"--tables", s.tables}, {"--seed", s.seed}, {"--duration", s.duration}} {
		if f.val != "" {
			w = append(w, f.name, f.val)
		}
	}
	return w
}

// commandLine writes words as a shell takes them.
func commandLine(words ...string) string {
	for i, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+") != "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// note tells something beside the output. It may be about a file that somebody
// else has written.
func (a app) note(text string) {
	fmt.Fprintln(a.err, strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, oneLine(text)))
}

// notes tells several things.
func (a app) notes(list []string) {
	for _, n := range list {
		a.note(n)
	}
}
