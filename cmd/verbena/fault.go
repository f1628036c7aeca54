package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// faultCommand is about fault plans, as files.
func (a app) faultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Check fault plans: what is to go wrong on purpose",
		Long: "Fault plans say what is to go wrong on purpose: packets lost, late or corrupted, calls that fail, queue pairs\n" +
			"that die. Programs follow the plan that VERBENA_FAULTS names; perf has --fault.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("name a command: check or schema") },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "check FILE...",
			Short: "Say what is wrong with plans, or how many rules they have",
			Args:  cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				var errs []error
				for _, path := range args {
					p, err := faultplan.Load(path)
					if err != nil {
						errs = append(errs, err)
						continue
					}
					seed := "by chance"
					if p.Seed != 0 {
						seed = fmt.Sprint(p.Seed)
					}
					fmt.Fprintf(a.out, "%s: %d rules, seed %s\n", path, len(p.Rules), seed)
				}
				return errors.Join(errs...)
			},
		},
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON schema of a plan, for editors",
			Args:  cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := a.out.Write(faultplan.Schema())
				return err
			},
		},
	)
	return cmd
}
