package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build events
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// tally counts the results of any number of commands.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	open                    map[string]*pkg   // packages that have not ended
	builds                  map[string]string // output of builds, by import path
	skips                   []string          // "package.Test: reason"
	failures                []string          // names
}

// pkg is what is known of one package's run.
type pkg struct {
	output  map[string]*strings.Builder // by test; "" is the package's own
	running []string
	tests   int
	failed  int
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, open: map[string]*pkg{}, builds: map[string]string{}}
}

// read counts the events of one command, to the end of its output. Lines that are no events are passed on.
func (t *tally) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if line[0] != '{' || json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(t.out, "%s", line)
			} else {
				t.add(e)
			}
		}
		if err == io.EOF {
			t.finish()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	if e.Action == "build-output" {
		t.builds[e.ImportPath] += e.Output
		return
	}
	if e.Package == "" {
		return
	}
	p := t.open[e.Package]
	if p == nil {
		p = &pkg{output: map[string]*strings.Builder{}}
		t.open[e.Package] = p
	}
	switch e.Action {
	case "run":
		p.running = append(p.running, e.Test)
	case "output":
		if p.output[e.Test] == nil {
			p.output[e.Test] = &strings.Builder{}
		}
		p.output[e.Test].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e, p)
			return
		}
		t.endTest(e, p)
	}
}

func (t *tally) endTest(e event, p *pkg) {
	p.running = slices.DeleteFunc(p.running, func(name string) bool { return name == e.Test })
	p.tests++
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		t.skips = append(t.skips, shortName(e.Package)+"."+e.Test+": "+p.reason(e.Test))
	case "fail":
		t.failTest(e.Package, e.Test, p)
	}
	delete(p.output, e.Test)
}

func (t *tally) failTest(path, test string, p *pkg) {
	t.failed++
	p.failed++
	t.failures = append(t.failures, shortName(path)+"."+test)
	fmt.Fprintf(t.out, "\n=== FAILED %s.%s\n%s", shortName(path), test, p.text(test))
}

func (t *tally) endPackage(e event, p *pkg) {
	delete(t.open, e.Package)
	switch {
	case e.Action == "fail":
		t.failPackage(e, p)
	case p.tests > 0:
		fmt.Fprintf(t.out, "  ok  %s: %d tests, %.1f s\n", shortName(e.Package), p.tests, e.Elapsed)
	}
}

// failPackage accounts for a package that failed: tests that never ended are failed, and if no test is to blame the
// package itself is (it does not build, TestMain failed, the process died).
func (t *tally) failPackage(e event, p *pkg) {
	// A parent that waits for its subtest is not to blame besides it.
	for _, test := range p.running {
		if !slices.ContainsFunc(p.running, func(other string) bool { return strings.HasPrefix(other, test+"/") }) {
			p.tests++
			t.failTest(e.Package, test, p)
		}
	}
	// Where a test is to blame and went its way, the package's own words say no more than FAIL.
	if p.failed == 0 || len(p.running) > 0 {
		fmt.Fprintf(t.out, "\n=== FAILED %s\n%s%s", shortName(e.Package), t.builds[e.FailedBuild], p.text(""))
	}
	if p.failed == 0 {
		t.failed++
		t.failures = append(t.failures, shortName(e.Package))
	}
	fmt.Fprintf(t.out, "FAIL  %s: %d tests, %.1f s\n", shortName(e.Package), p.tests, e.Elapsed)
}

// finish fails the packages whose end was never told: the go command itself died.
func (t *tally) finish() {
	for _, path := range slices.Sorted(keys(t.open)) {
		t.endPackage(event{Action: "fail", Package: path}, t.open[path])
	}
}

func keys(m map[string]*pkg) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (p *pkg) text(test string) string {
	b := p.output[test]
	if b == nil {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "=== ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// reason is the last thing that a skipped test said.
func (p *pkg) reason(test string) string {
	said := "no reason given"
	for line := range strings.Lines(p.text(test)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- ") {
			said = line
		}
	}
	return said
}

// summary prints what was skipped and what failed, and the closing line.
func (t *tally) summary() {
	if len(t.skips) > 0 {
		fmt.Fprintf(t.out, "\nskipped:\n  %s\n", strings.Join(t.skips, "\n  "))
	}
	if len(t.failures) > 0 {
		fmt.Fprintf(t.out, "\nfailed:\n  %s\n", strings.Join(t.failures, "\n  "))
	}
	fmt.Fprintf(t.out, "\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}

func shortName(path string) string {
	const module = "github.com/verbena-rdma/verbena"
	if path == module {
		return "verbena"
	}
	return strings.TrimPrefix(path, module+"/")
}
