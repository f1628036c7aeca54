package theory

import "math"

// NoCollision returns the probability that m flows hashed onto s equal paths are
// all alone: s! / ((s-m)! s^m); 0 if there are more flows than paths.
func NoCollision(flows, paths int) float64 {
	if flows > paths {
		return 0
	}
	p := 1.0
	for i := range flows {
		p *= float64(paths-i) / float64(paths)
	}
	return p
}

// MaxLoad returns the distribution of the flows on the busiest of equal paths:
// element j is the probability that it carries exactly j. A uniform hash is balls
// in bins; the paths are filled one after the other, each with a binomial part of
// what is left. Empty without a path. It takes about flows * paths * (busiest)^2
// steps: a second for 1,000 flows on 100 paths.
func MaxLoad(flows, paths int) []float64 {
	if paths < 1 || flows < 0 {
		return nil
	}
	dist := make([]float64, flows+1)
	lf := logFactorials(flows)
	before := 0.0
	for j := range dist {
		p := allWithin(flows, paths, j, lf)
		dist[j] = max(0, p-before)
		before = p
		if p > 1-1e-14 {
			break // the rest is rounding
		}
	}
	return dist
}

// logFactorials returns ln(0!) … ln(n!).
func logFactorials(n int) []float64 {
	lf := make([]float64, n+1)
	for i := 1; i <= n; i++ {
		lf[i] = lf[i-1] + math.Log(float64(i))
	}
	return lf
}

// allWithin returns the probability that no path has more than most flows.
func allWithin(flows, paths, most int, lf []float64) float64 {
	// at[r] is the probability that r flows are left for the paths to come and
	// none before has too many.
	at := make([]float64, flows+1)
	at[flows] = 1
	for left := paths; left > 1; left-- {
		next := make([]float64, flows+1)
		q := 1 / float64(left)
		for r, p := range at {
			if p == 0 {
				continue
			}
			for j := 0; j <= min(most, r); j++ {
				next[r-j] += p * binomial(r, j, q, lf)
			}
		}
		at = next
	}
	sum := 0.0
	for r := 0; r <= min(most, flows); r++ {
		sum += at[r] // the last path takes what is left
	}
	return sum
}

// binomial returns the probability of j successes of probability q in n.
func binomial(n, j int, q float64, lf []float64) float64 {
	return math.Exp(lf[n] - lf[j] - lf[n-j] + float64(j)*math.Log(q) + float64(n-j)*math.Log1p(-q))
}

// ExpectedMaxLoad returns the mean of the flows on the busiest path: 2.6 for 8
// flows on 8 paths.
func ExpectedMaxLoad(flows, paths int) float64 {
	sum := 0.0
	for j, p := range MaxLoad(flows, paths) {
		sum += float64(j) * p
	}
	return sum
}

// SlowestShare returns the distribution of what the slowest flow gets of a path,
// as ExpectedSlowest averages it: share[j] with probability p[j], falling.
func SlowestShare(flows, paths int) (share, p []float64) {
	for j, q := range MaxLoad(flows, paths) {
		if j > 0 && q > 0 {
			share, p = append(share, 1/float64(j)), append(p, q)
		}
	}
	return share, p
}

// ExpectedSlowest returns the mean share of a path that the slowest of the flows
// gets, when those on one path share it equally. It is a little more than one by
// ExpectedMaxLoad (Jensen).
func ExpectedSlowest(flows, paths int) float64 {
	share, p := SlowestShare(flows, paths)
	sum := 0.0
	for i := range share {
		sum += share[i] * p[i]
	}
	return sum
}
