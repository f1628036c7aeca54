package enginetest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// propertyRuns is how many random runs a property test makes for each operation
// of an engine; VERBENA_RUNS in the environment overrides it.
const propertyRuns = 500

// Main is TestMain of an engine's tests: it sets the number of runs of property
// tests, which mix ops operations, unless the command line does.
func Main(m *testing.M, ops int) {
	flag.Parse()
	runs := propertyRuns
	if n, err := strconv.Atoi(os.Getenv("VERBENA_RUNS")); err == nil && n > 0 {
		runs = n
	}
	if testing.Short() {
		runs = min(runs, 50)
	}
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		if err := flag.Set("rapid.checks", strconv.Itoa(runs*ops)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
