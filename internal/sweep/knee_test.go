package sweep

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Curves measured by others in HPCC's simulator: a long flow beside bursts of 32
// KB, over the threshold in KB. Goodput bends where the threshold crosses the
// burst.
func TestKneeOfThePublishedSweep(t *testing.T) {
	k := []float64{8, 16, 32, 64, 128, 256, 512}
	goodput := []float64{28.3, 46.6, 82.3, 79.5, 81.0, 81.2, 83.3}
	if i, ok := Knee(k, goodput); !ok || k[i] != 32 {
		t.Errorf("knee %v %v", k[i], ok)
	}
}

// Two straight lines that meet have their knee there, whichever way they turn
// and on either scale.
func TestKneeIsTheCorner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 30).Draw(t, "n")
		at := rapid.IntRange(1, n-2).Draw(t, "at")
		log := rapid.Bool().Draw(t, "log")
		s1, s2 := rapid.Float64Range(-10, 10).Draw(t, "s1"), rapid.Float64Range(-10, 10).Draw(t, "s2")
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			u := float64(i)
			if x[i] = 100 + u; log {
				x[i] = math.Pow(3, u)
			}
			y[i] = float64(s1*u) + 500
			if i > at {
				y[i] = float64(s1*float64(at)) + float64(s2*(u-float64(at))) + 500
			}
		}
		if log && !logarithmic(x) {
			t.Skip("too short for a logarithmic axis")
		}
		low, high := y[0], y[0]
		for _, v := range y {
			low, high = math.Min(low, v), math.Max(high, v)
		}
		// How far the corner is from the line through the ends.
		line := y[0] + (y[n-1]-y[0])*float64(at)/float64(n-1)
		bend := math.Abs(y[at]-line) / math.Max(high-low, 1e-9)
		i, ok := Knee(x, y)
		flat := high-low <= kneeChange*math.Max(math.Abs(low), math.Abs(high))
		switch {
		case ok && i != at:
			t.Fatalf("knee at %d, the corner is at %d", i, at)
		case !ok && bend > kneeBend+0.01 && high-low > 1.01*kneeChange*math.Max(math.Abs(low), math.Abs(high)):
			t.Fatalf("no knee at %d, bend %v", at, bend)
		case ok && (bend < kneeBend-0.01 || flat):
			t.Fatalf("a knee at %d, bend %v", i, bend)
		}
	})
}

func TestNoKnee(t *testing.T) {
	for name, c := range map[string][2][]float64{
		"straight":     {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}},
		"flat":         {{1, 2, 3, 4, 5}, {100, 101, 104, 100, 101}},
		"short":        {{1, 2, 3}, {1, 9, 10}},
		"zero":         {{1, 2, 3, 4}, {0, 0, 0, 0}},
		"not a number": {{1, 2, 3, 4}, {0, math.NaN(), 3, 3}},
		"twice":        {{1, 2, 2, 4}, {0, 3, 3, 3}},
		"uneven":       {{1, 2, 3, 4}, {0, 3}},
		"none":         {nil, nil},
	} {
		if i, ok := Knee(c[0], c[1]); ok {
			t.Errorf("%s: knee at %d", name, i)
		}
	}
}
