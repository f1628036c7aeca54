package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	commands := split(os.Args[1:])
	if len(commands) == 0 {
		fmt.Fprintln(os.Stderr, "usage: testsum -- go test -json … [-- go test -json …]")
		os.Exit(2)
	}
	t := newTally(os.Stdout)
	for _, args := range commands {
		if err := runOne(t, args); err != nil {
			fmt.Fprintln(os.Stdout, "testsum:", err)
			t.failed++
			t.failures = append(t.failures, err.Error())
		}
	}
	t.summary()
	if t.failed > 0 || t.passed == 0 {
		os.Exit(1)
	}
}

// runOne runs one command to its end. A command that fails although no failed test was counted is an error.
func runOne(t *tally, args []string) error {
	failedBefore := t.failed
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stdout
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := t.read(out)
	err = cmd.Wait()
	if readErr != nil || err != nil && t.failed == failedBefore {
		return fmt.Errorf("%v: %w", args, errors.Join(readErr, err))
	}
	return nil
}

// split cuts the arguments at each "--".
func split(args []string) [][]string {
	var out [][]string
	for _, a := range args {
		switch {
		case a == "--":
			out = append(out, nil)
		case len(out) == 0:
			out = append(out, []string{a})
		default:
			out[len(out)-1] = append(out[len(out)-1], a)
		}
	}
	return out
}
