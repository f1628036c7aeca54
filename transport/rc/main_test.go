package rc_test

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// runs is how many random runs each property test makes. The nightly target
// sets it to 10,000 in the environment.
var runs = flag.Int("rc.runs", envRuns(), "random runs of each property test (VERBENA_RUNS)")

func envRuns() int {
	if n, err := strconv.Atoi(os.Getenv("VERBENA_RUNS")); err == nil && n > 0 {
		return n
	}
	return 500
}

func TestMain(m *testing.M) {
	flag.Parse()
	n := *runs
	if testing.Short() {
		n = min(n, 50)
	}
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
