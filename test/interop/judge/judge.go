// Package judge names the programs and kernels that we did not write and that say whether Verbena is right, and
// keeps account of which of them were heard. A test that needs some calls Need first: where one is not to be had,
// the test is skipped by the judge's name and reason, or fails where the run demands all judges.
//
//	func TestWriteToLinux(t *testing.T) {
//		judge.Need(t, "rxe", "perftest")
//		…
//	}
//
// Every answer is appended to the file that $VERBENA_JUDGE_LOG names, one line each, so that the test processes of
// many packages share one account; the program in report prints it at the end of "make test".
//
// $VERBENA_JUDGES: "require" makes a missing judge a failure (the default where CI=true), "optional" a skip (the
// default elsewhere), "none" skips all tests that need a judge, as -short does.
//
// The package judges nothing itself. Read judge.go, then list.go, then log.go.
package judge

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Judge is one of them.
type Judge struct {
	Name string
	What string       // what it is and what it proves, in a few words
	Find func() error // nil, or why it is not to be had here; changes nothing
}

var (
	mu    sync.Mutex
	found = map[string]error{} // the answers of Find, by name: a machine does not change during a test
)

// Need returns when every one of the named judges is to be had; otherwise it skips or fails the test.
func Need(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		err := available(t, name)
		if err == nil {
			continue
		}
		if required() {
			record(entry{Failed, name, t.Name(), err.Error()})
			t.Fatalf("judge %s is required (VERBENA_JUDGES, CI) and not to be had: %v", name, err)
		}
		record(entry{Skipped, name, t.Name(), err.Error()})
		t.Skipf("judge %s: %v", name, err)
	}
	t.Cleanup(func() {
		for _, name := range names {
			switch {
			case t.Failed():
				record(entry{Failed, name, t.Name(), "the test failed"})
			case t.Skipped():
				record(entry{Skipped, name, t.Name(), "the test was skipped"})
			default:
				record(entry{Ran, name, t.Name(), ""})
			}
		}
	})
}

func available(t testing.TB, name string) error {
	t.Helper()
	j, ok := Lookup(name)
	if !ok {
		t.Fatalf("no judge is called %q: see test/interop/judge/list.go", name)
	}
	if testing.Short() {
		return fmt.Errorf("left out by -short")
	}
	if os.Getenv("VERBENA_JUDGES") == "none" {
		return fmt.Errorf("left out by VERBENA_JUDGES=none")
	}
	mu.Lock()
	defer mu.Unlock()
	err, ok := found[name]
	if !ok {
		err = j.Find()
		found[name] = err
	}
	return err
}

// required reports whether a missing judge is a failure.
func required() bool {
	if testing.Short() {
		return false
	}
	switch os.Getenv("VERBENA_JUDGES") {
	case "require":
		return true
	case "":
		return os.Getenv("CI") == "true"
	default:
		return false
	}
}
