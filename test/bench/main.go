// Command bench measures Verbena beside what a program would use otherwise; see
// package internal/bench and docs/perf.md. "make bench" runs it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/verbena-rdma/verbena/internal/bench"
)

func main() {
	if bench.IsChild() {
		exitOn(bench.Child(os.Stdin, os.Stdout))
		return
	}
	var cfg bench.Config
	only := flag.String("only", "", "measure the rows whose names match this regular expression")
	file := flag.String("json", "", "write the figures to this file")
	gate := flag.Bool("gate", false, "exit with status 1 when a median is under 0.8 × its floor, or a row failed")
	list := flag.Bool("list", false, "list the rows and stop")
	flag.IntVar(&cfg.Rounds, "rounds", 0, "rounds (default 7)")
	flag.DurationVar(&cfg.Slot, "slot", 0, "time of each subject in each round (default 600ms)")
	flag.BoolVar(&cfg.NoPin, "nopin", false, "do not keep the two processes on different processors")
	flag.Uint64Var(&cfg.Seed, "seed", 0, "seed of the order of slots (default by the time)")
	flag.Parse()
	if *only != "" {
		var err error
		cfg.Only, err = regexp.Compile(*only)
		exitOn(err)
	}
	if *list {
		for _, g := range bench.Select(bench.Plan(), cfg.Only) {
			for _, r := range g.Rows {
				fmt.Println(r.Name)
			}
		}
		return
	}
	cfg.Out = os.Stdout
	if fi, err := os.Stderr.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 {
		cfg.Status = os.Stderr
	}
	rep, err := bench.Run(cfg)
	if rep != nil && *file != "" {
		exitOn(write(*file, rep))
	}
	exitOn(err)
	if *gate && !rep.Passes() {
		os.Exit(1)
	}
}

func write(name string, rep *bench.Report) error {
	b, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
