package judge

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Outcome is what became of one test's need for one judge.
type Outcome string

// The outcomes.
const (
	Ran     Outcome = "ran"
	Skipped Outcome = "skipped"
	Failed  Outcome = "failed"
)

// entry is one line of the account: outcome, judge, test, reason, separated by tabs.
type entry struct {
	outcome Outcome
	judge   string
	test    string
	reason  string
}

// record appends e to the account, where the run keeps one. The line is one write to a file opened for appending, so
// lines of several processes do not mix.
func record(e entry) {
	path := os.Getenv("VERBENA_JUDGE_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		return
	}
	defer f.Close()
	reason := strings.Join(strings.Fields(e.reason), " ")
	if _, err := fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", e.outcome, e.judge, e.test, reason); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
	}
}

// Report reads an account and writes its summary: one line for each judge that was not heard, with the reason, and
// the count as the last line. A judge counts as run when at least one test that needed it came to a verdict, good or bad.
func Report(account io.Reader, w io.Writer) error {
	heard, reason := map[string]bool{}, map[string]string{}
	in := bufio.NewScanner(account)
	for in.Scan() {
		f := strings.SplitN(in.Text(), "\t", 4)
		if len(f) != 4 {
			return fmt.Errorf("judge account: line %q has %d fields, not 4", in.Text(), len(f))
		}
		if o := Outcome(f[0]); o == Ran || o == Failed && f[3] == "the test failed" {
			heard[f[1]] = true
		} else if reason[f[1]] == "" {
			reason[f[1]] = f[3]
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	all := All()
	run := 0
	for _, j := range all {
		switch {
		case heard[j.Name]:
			run++
		case reason[j.Name] != "":
			fmt.Fprintf(w, "judge %s did not run: %s\n", j.Name, reason[j.Name])
		default:
			fmt.Fprintf(w, "judge %s did not run: no test of this run asked for it\n", j.Name)
		}
	}
	for name := range heard {
		if !slices.ContainsFunc(all, func(j Judge) bool { return j.Name == name }) {
			return fmt.Errorf("judge account: no judge is called %q", name)
		}
	}
	_, err := fmt.Fprintf(w, "judges run %d of %d\n", run, len(all))
	return err
}
