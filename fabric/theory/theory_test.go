package theory_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// printed compares a number with a published one, to the digits that were
// printed. A last digit that is off by one more than rounding is an error.
func printed(t *testing.T, what string, got float64, want string) {
	t.Helper()
	w, err := strconv.ParseFloat(want, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, frac, _ := strings.Cut(want, ".")
	unit := math.Pow(10, -float64(len(frac)))
	if !(math.Abs(got-w) <= 0.5*unit*(1+1e-9)) {
		t.Errorf("%s = %.*f, printed %s", what, len(frac)+2, got, want)
	}
}

// near compares to a relative tolerance.
func near(t *testing.T, what string, got, want, rel float64) {
	t.Helper()
	if !(math.Abs(got-want) <= rel*math.Abs(want)) {
		t.Errorf("%s = %g, want %g within %g", what, got, want, rel)
	}
}

func equal(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %d, want %d", what, got, want)
	}
}
