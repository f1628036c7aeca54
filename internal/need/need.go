// Package need says what tests do where the host lacks something: a namespace
// that may not be made, a program, a right. On anybody's machine the test is
// skipped with the reason; in CI (the environment variable CI is set) it fails,
// so that nothing is left out without somebody noticing.
//
// It is for what a machine should have been given. What a platform does not
// have, and a judge (test/interop/judge), is not its business.
package need

import (
	"fmt"
	"os"
	"testing"
)

// Missing ends the test: skipped, or failed in CI. The arguments are those of
// t.Skipf.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	missing(t, os.Getenv("CI") != "", fmt.Sprintf(format, args...))
}

// skipper is the part of testing.TB that ends a test.
type skipper interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

func missing(t skipper, ci bool, why string) {
	t.Helper()
	if ci {
		t.Fatal("nothing may be skipped in CI: " + why)
	}
	t.Skip(why)
}
