package theory

import (
	"fmt"
	"math"
)

// MD1Wait returns the mean time in queue of M/D/1 in service times, at load rho of
// 0..1: rho / (2 (1 - rho)). It is infinite from 1 on.
func MD1Wait(rho float64) float64 { return MM1Wait(rho) / 2 }

// MM1Wait returns the mean time in queue of M/M/1 in mean service times:
// rho / (1 - rho).
func MM1Wait(rho float64) float64 {
	if rho >= 1 {
		return math.Inf(1)
	}
	return max(0, rho) / (1 - rho)
}

// MG1Wait returns the mean time in queue of M/G/1 by Pollaczek and Khinchine:
// lambda E[S^2] / (2 (1 - lambda E[S])). rate is arrivals a second, mean and
// second are the moments of the service time.
func MG1Wait(rate, mean, second float64) float64 {
	rho := rate * mean
	if rho >= 1 {
		return math.Inf(1)
	}
	return rate * second / (2 * (1 - rho))
}

// NDD1Bound returns the most packets that wait when n periodic sources of equal
// packets and equal period share a link that carries them all: the other n-1.
func NDD1Bound(n int) int { return max(0, n-1) }

// Interval is a mean and the half width of its confidence interval.
type Interval struct {
	Mean, Half float64
}

// Contains reports whether a value lies in the interval.
func (i Interval) Contains(v float64) bool { return math.Abs(v-i.Mean) <= i.Half }

// String returns "12.3 ± 0.4".
func (i Interval) String() string { return fmt.Sprintf("%.4g ± %.2g", i.Mean, i.Half) }

// BatchMeans returns the confidence interval of the mean of a stationary, but
// correlated, series: it is cut into batches of equal length (what is left over
// at the start is warm-up and ignored), whose means count as independent, with
// Student's t of batches-1 degrees. A batch must be much longer than the
// correlation: for a queue many times 1/(1-rho)^2 service times. confidence is
// 0..1 (0.99).
func BatchMeans(series []float64, batches int, confidence float64) (Interval, error) {
	if batches < 2 || len(series) < batches {
		return Interval{}, fmt.Errorf("batch means: %d values cannot make %d batches; at least 2 batches of 1 value", len(series), batches)
	}
	t := StudentT(batches-1, confidence)
	if math.IsNaN(t) {
		return Interval{}, fmt.Errorf("batch means: confidence %g is not between 0 and 1", confidence)
	}
	size := len(series) / batches
	series = series[len(series)-size*batches:]
	means := make([]float64, batches)
	for b := range means {
		for _, v := range series[b*size : (b+1)*size] {
			means[b] += v
		}
		means[b] /= float64(size)
	}
	mean, sd := meanSD(means)
	return Interval{Mean: mean, Half: t * sd / math.Sqrt(float64(batches))}, nil
}

// meanSD returns the mean and the sample standard deviation of two or more values.
func meanSD(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(len(v)-1))
}
