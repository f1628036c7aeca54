package sweep

import "math"

// The bounds of a knee.
const (
	kneePoints = 4    // points that a curve must have
	kneeBend   = 0.15 // how far it must be from a straight line, of its height
	kneeChange = 0.05 // how much it must change at all, of its largest value
	logSpan    = 10   // from this ratio on values are looked at on a logarithmic axis
)

// Knee returns the point at which a curve bends: the one that is farthest from
// the straight line through its ends, when both axes are scaled to 0 … 1
// (Kneedle, ICDCSW'11 §III, without its smoothing: the points are few). x
// ascends; where its greatest is ten times its least or more it is taken
// logarithmic. ok is false where a curve is short, flat or straight.
func Knee(x, y []float64) (i int, ok bool) {
	n := len(x)
	if n < kneePoints || n != len(y) {
		return 0, false
	}
	x = scaled(x)
	low, high := y[0], y[0]
	for k := range y {
		if math.IsNaN(y[k]) || math.IsInf(y[k], 0) || k > 0 && x[k] <= x[k-1] {
			return 0, false
		}
		low, high = math.Min(low, y[k]), math.Max(high, y[k])
	}
	height := high - low
	if height <= kneeChange*math.Max(math.Abs(low), math.Abs(high)) || height == 0 {
		return 0, false
	}
	far := 0.0
	for k := range y {
		line := y[0] + (y[n-1]-y[0])*(x[k]-x[0])/(x[n-1]-x[0])
		if d := math.Abs(y[k]-line) / height; d > far {
			i, far = k, d
		}
	}
	return i, far >= kneeBend
}

// scaled returns the logarithms of values that span much.
func scaled(x []float64) []float64 {
	if !logarithmic(x) {
		return x
	}
	out := make([]float64, len(x))
	for i := range x {
		out[i] = math.Log(x[i])
	}
	return out
}

// logarithmic reports whether ascending values are looked at on such an axis.
func logarithmic(x []float64) bool {
	return len(x) > 1 && x[0] > 0 && x[len(x)-1] >= logSpan*x[0]
}
