// Command benchsim measures the simulator; see package internal/benchsim and
// docs/perf.md. "make bench-sim" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"

	"github.com/verbena-rdma/verbena/internal/benchsim"
)

func main() {
	if benchsim.IsChild() {
		exitOn(benchsim.Child(os.Stdout))
		return
	}
	var cfg benchsim.Config
	only := flag.String("only", "", "measure the cases whose names match this regular expression")
	file := flag.String("json", "", "write the figures to this file")
	gate := flag.Bool("gate", false, "exit with status 1 when a figure is under 0.8 × its floor, or a case failed")
	list := flag.Bool("list", false, "list the cases and stop")
	flag.IntVar(&cfg.Rounds, "rounds", 0, "runs of each case (default: each case's own number)")
	flag.Parse()
	if *only != "" {
		var err error
		cfg.Only, err = regexp.Compile(*only)
		exitOn(err)
	}
	if *list {
		for _, c := range benchsim.Cases() {
			fmt.Printf("%-20s %s\n", c.Name, c.Title)
		}
		return
	}
	cfg.Out = os.Stdout
	if fi, err := os.Stderr.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 {
		cfg.Status = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rep, err := benchsim.Run(ctx, cfg)
	exitOn(err)
	if *file != "" {
		b, err := rep.JSON()
		exitOn(err)
		exitOn(os.WriteFile(*file, b, 0o644))
	}
	if *gate && !rep.Passes() {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchsim:", err)
		os.Exit(1)
	}
}
