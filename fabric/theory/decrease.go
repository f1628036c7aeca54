package theory

import "math"

// Cut returns a rate after n cuts with an alpha that does not change: each takes
// alpha/2 of it (SIGCOMM'15 DCQCN §3.2).
func Cut(rate, alpha float64, n int) float64 { return rate * math.Pow(1-alpha/2, float64(n)) }

// AlphaAfter returns alpha after n intervals without a CNP: (1-g)^n of it.
func AlphaAfter(alpha, g float64, n int) float64 { return alpha * math.Pow(1-g, float64(n)) }

// AlphaIntervals returns how many intervals without a CNP bring alpha from one
// value to another or below: ln(to/from)/ln(1-g), rounded up.
func AlphaIntervals(from, to, g float64) int {
	if !(from > 0 && to > 0 && g > 0 && g < 1) || to >= from {
		return 0
	}
	return int(math.Ceil(math.Log(to/from)/math.Log1p(-g) - 1e-9))
}

// Recovery is the increase of a reaction point that hears no CNP.
type Recovery struct {
	Timer float64 // s from increase to increase
	// FastRecovery is how many increases only halve the way to the target:
	// F where the code compares before it counts (HPCC), F-1 where after (the
	// paper's, "stage < F after increment").
	FastRecovery int
	// Additive is how many increases by AI follow before those by HAI; -1 for
	// ever (hyper needs the byte stage too, and a slow flow never has it).
	Additive int
	AI, HAI  float64 // bit/s
	// Growing makes the i-th hyper increase i*HAI (the paper); otherwise each is HAI.
	Growing bool
	Line    float64 // bit/s, which neither rate exceeds
}

// TargetSteps returns the increases by step that bring a target rate from one
// value to another: (to-from)/step, rounded up.
func TargetSteps(from, to, step float64) int {
	if to <= from {
		return 0
	}
	return int(math.Ceil((to-from)/step - 1e-9))
}

// After returns the current and the target rate after n increases.
func (r Recovery) After(rc, rt float64, n int) (float64, float64) {
	for k := 1; k <= n; k++ {
		rc, rt = r.step(rc, rt, k)
	}
	return rc, rt
}

// step is increase k, from 1.
func (r Recovery) step(rc, rt float64, k int) (float64, float64) {
	switch {
	case k <= r.FastRecovery:
	case r.Additive < 0 || k <= r.FastRecovery+r.Additive:
		rt += r.AI
	case r.Growing:
		rt += float64(r.HAI * float64(k-r.FastRecovery-r.Additive))
	default:
		rt += r.HAI
	}
	rt = min(rt, r.Line)
	return min((rc+rt)/2, r.Line), rt
}

// maxIncreases bounds a recovery: 10 million of 55 us are nine minutes.
const maxIncreases = 10_000_000

// Steps returns the increases after which the current rate has come within 1 bit/s
// of a rate, from a current and a target rate; ok is false if it never does
// (beyond the line, or no increase at all).
func (r Recovery) Steps(rc, rt, to float64) (n int, ok bool) {
	if to > r.Line {
		return 0, false
	}
	for n = 0; rc < to-1; n++ {
		if n == maxIncreases {
			return n, false
		}
		before := rc
		rc, rt = r.step(rc, rt, n+1)
		if rc == before && n > r.FastRecovery+max(0, r.Additive) {
			return n, false // it rests
		}
	}
	return n, true
}

// Seconds returns the time of Steps.
func (r Recovery) Seconds(rc, rt, to float64) (s float64, ok bool) {
	n, ok := r.Steps(rc, rt, to)
	return float64(n) * r.Timer, ok
}
