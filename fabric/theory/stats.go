package theory

import "math"

// StudentT returns the t for which a Student variable with df degrees of freedom
// lies in -t..t with the given confidence (0..1, exclusive): the two-sided
// critical value. NaN for what is no such question.
func StudentT(df int, confidence float64) float64 {
	if df < 1 || !(confidence > 0 && confidence < 1) {
		return math.NaN()
	}
	n := float64(df)
	// P(|T| > t) = I_x(n/2, 1/2) with x = n/(n+t^2).
	return invert(func(t float64) float64 { return 1 - betaInc(n/2, 0.5, n/(n+t*t)) }, confidence)
}

// ChiSquareCritical returns the value that a chi-square variable with df degrees
// of freedom stays below with the given confidence (0..1, exclusive).
func ChiSquareCritical(df int, confidence float64) float64 {
	if df < 1 || !(confidence > 0 && confidence < 1) {
		return math.NaN()
	}
	return invert(func(x float64) float64 { return gammaInc(float64(df)/2, x/2) }, confidence)
}

// ChiSquare returns Pearson's statistic of counts against equal expectation, and
// its degrees of freedom.
func ChiSquare(counts []int64) (stat float64, df int) {
	var sum int64
	for _, c := range counts {
		sum += c
	}
	if sum == 0 || len(counts) < 2 {
		return 0, 0
	}
	want := float64(sum) / float64(len(counts))
	for _, c := range counts {
		d := float64(c) - want
		stat += d * d / want
	}
	return stat, len(counts) - 1
}

// invert returns the x ≥ 0 with f(x) = y for a rising f from 0 to 1.
func invert(f func(float64) float64, y float64) float64 {
	lo, hi := 0.0, 1.0
	for f(hi) < y && hi < 1e15 {
		lo, hi = hi, 2*hi
	}
	return bisect(lo, hi, func(x float64) bool { return f(x) >= y })
}

// bisect returns where above turns from false to true between lo and hi.
func bisect(lo, hi float64, above func(float64) bool) float64 {
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if above(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo + (hi-lo)/2
}

// gammaInc is the regularised lower incomplete gamma function P(a, x), a > 0,
// x ≥ 0: the series below a+1, one minus Lentz's continued fraction above (DLMF
// 8.7.1 and 8.9.2).
func gammaInc(a, x float64) float64 {
	if x <= 0 {
		return 0
	}
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		sum, term := 1/a, 1/a
		for n := 1.0; n < 10000; n++ {
			term *= x / (a + n)
			sum += term
			if term < sum*1e-16 {
				break
			}
		}
		return min(1, sum*front)
	}
	b := x + 1 - a
	num := func(n int) float64 { f := float64(n); return -f * (f - a) }
	den := func(n int) float64 { return b + 2*float64(n) }
	return max(0, 1-front/lentz(b, num, den))
}

// betaInc is the regularised incomplete beta function I_x(a, b) (DLMF 8.17.22).
func betaInc(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - betaInc(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(a*math.Log(x)+b*math.Log1p(-x)+lab-la-lb) / a
	num := func(n int) float64 {
		m := float64(n / 2)
		if n%2 == 0 {
			return m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		}
		return -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
	}
	return front / lentz(1, num, func(int) float64 { return 1 })
}

// lentz evaluates b0 + a1/(b1 + a2/(b2 + …)) for b0 ≠ 0 by Lentz's method.
func lentz(b0 float64, a, b func(n int) float64) float64 {
	const tiny = 1e-300
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	f := nonzero(b0)
	c, d := f, 0.0
	for n := 1; n < 10000; n++ {
		d = 1 / nonzero(b(n)+a(n)*d)
		c = nonzero(b(n) + a(n)/c)
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}
