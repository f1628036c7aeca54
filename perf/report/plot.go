package report

import (
	"fmt"
	"strings"
	"time"
)

// AppendPlot appends the distribution of a latency test as text: one bar for
// each bucket of a logarithmic scale with eight steps to the octave, and the
// percentiles that people ask for. Nothing without samples.
func (r Latency) AppendPlot(b []byte) []byte {
	if len(r.Sorted) == 0 {
		return b
	}
	const steps, width = 8, 50
	bucket := func(d time.Duration) int {
		n := uint64(max(d, 1))
		oct := 0
		for v := n; v > 1; v >>= 1 {
			oct++
		}
		return oct*steps + int(n*steps>>oct) - steps
	}
	lower := func(i int) time.Duration {
		return time.Duration((uint64(steps+i%steps) << (i / steps)) / steps)
	}
	counts := map[int]int{}
	most := 0
	first, last := bucket(r.Sorted[0]), bucket(r.Sorted[len(r.Sorted)-1])
	for _, d := range r.Sorted {
		k := bucket(d)
		counts[k]++
		most = max(most, counts[k])
	}
	b = fmt.Appendf(b, " %d bytes, %d samples\n", r.Bytes, len(r.Sorted))
	gap := false
	for k := first; k <= last; k++ {
		n := counts[k]
		if n == 0 {
			if !gap {
				b = append(b, "              …\n"...)
			}
			gap = true
			continue
		}
		gap = false
		bar := strings.Repeat("█", max(1, n*width/most))
		b = fmt.Appendf(b, " %9.2f us  %-*s %d\n", Usec(lower(k)), width, bar, n)
	}
	b = append(b, ' ')
	for i, p := range []float64{50, 90, 99, 99.9, 99.99, 100} {
		idx := min(int(p/100*float64(len(r.Sorted))), len(r.Sorted)-1)
		if i > 0 {
			b = append(b, "  "...)
		}
		b = fmt.Appendf(b, "p%g %.2f", p, Usec(r.Sorted[idx]))
	}
	return append(b, " us\n"...)
}
