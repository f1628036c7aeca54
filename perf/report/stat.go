package report

import (
	"math"
	"slices"
	"time"
)

// Bandwidth is the outcome of one size of a bandwidth test.
type Bandwidth struct {
	Bytes uint64 // of a message
	Iters uint64 // messages, over all queue pairs
	// BytesPerSec is the average, PeakBytesPerSec the best stretch; a peak of 0
	// was not measured.
	BytesPerSec     float64
	PeakBytesPerSec float64
	MsgPerSec       float64
}

// Gbps returns a rate in bytes a second in units of 10^9 bits a second.
func Gbps(bytesPerSec float64) float64 { return bytesPerSec * 8 / 1e9 }

// MiBps returns a rate in bytes a second in units of 2^20 bytes a second, which
// perftest calls MB/sec.
func MiBps(bytesPerSec float64) float64 { return bytesPerSec / (1 << 20) }

// Add returns the sum of the two directions of a bidirectional test.
func (r Bandwidth) Add(o Bandwidth) Bandwidth {
	r.BytesPerSec += o.BytesPerSec
	r.PeakBytesPerSec += o.PeakBytesPerSec
	r.MsgPerSec += o.MsgPerSec
	return r
}

// NewBandwidth returns the averages of iters messages of size bytes in elapsed.
// An elapsed time of zero or less counts as one nanosecond, so that no rate is
// infinite or negative.
func NewBandwidth(size, iters uint64, elapsed time.Duration) Bandwidth {
	s := max(elapsed, 1).Seconds()
	return Bandwidth{
		Bytes: size, Iters: iters,
		BytesPerSec: float64(size) * float64(iters) / s,
		MsgPerSec:   float64(iters) / s,
	}
}

// Peak returns the highest rate, in messages a second, that any stretch of a
// run had: the largest (j-i+1) ÷ (completed[j]-posted[i]) over i ≤ j, as perftest
// defines it. posted and completed are instants in nanoseconds, message by
// message in the order of posting and of completing; an entry of completed
// that is 0 marks a message whose completion was not reported by itself. It
// returns 0 if there is no such stretch.
//
// It takes a few passes over the samples (Dinkelbach's method), where trying
// all pairs would take the square of their number.
func Peak(posted, completed []int64) float64 {
	n := min(len(posted), len(completed))
	var best float64 // messages a nanosecond
	for range 64 {
		// Find the pair with the largest surplus (j-i+1) - best·(completed[j]-posted[i]).
		var (
			surplus  float64
			bi, bj   = -1, -1
			start    = math.Inf(-1)
			startIdx = -1
		)
		for k := range n {
			if v := best*float64(posted[k]) - float64(k); v > start || startIdx < 0 {
				start, startIdx = v, k
			}
			if completed[k] == 0 || completed[k] <= posted[startIdx] {
				continue
			}
			s := float64(k+1) - best*float64(completed[k]) + start
			if s > surplus {
				surplus, bi, bj = s, startIdx, k
			}
		}
		if bi < 0 {
			break
		}
		r := float64(bj-bi+1) / float64(completed[bj]-posted[bi])
		if r <= best*(1+1e-12) {
			break
		}
		best = r
	}
	return best * 1e9
}

// PeakWindow keeps the best rate of any stretch of at least Width, for runs that
// are too long to keep every sample. The zero value with a Width is ready.
type PeakWindow struct {
	Width time.Duration
	start int64
	count uint64
	best  float64
	on    bool
}

// Add counts n messages that completed at the instant now, in nanoseconds.
func (w *PeakWindow) Add(now int64, n uint64) {
	if !w.on {
		w.start, w.on = now, true
		return
	}
	w.count += n
	if d := now - w.start; d >= int64(w.Width) && d > 0 {
		w.best = max(w.best, float64(w.count)/float64(d))
		w.start, w.count = now, 0
	}
}

// PerSec returns the best rate in messages a second; 0 if no stretch was long
// enough.
func (w *PeakWindow) PerSec() float64 { return w.best * 1e9 }

// Latency is the outcome of one size of a latency test. All times are halves of
// a round trip where the peer answers with a message of its own, and whole
// operations where it does not.
type Latency struct {
	Bytes                                        uint64
	Iters                                        uint64
	Min, Max, Typical, Average, Stdev, P99, P999 time.Duration
	// PerSec is the number of operations a second, in tests over a time.
	PerSec float64
	// Sorted holds the samples in ascending order, nil in tests over a time.
	Sorted []time.Duration
	// Raw holds the samples in the order of measuring.
	Raw []time.Duration
}

// tail is how many of the slowest samples perftest leaves out.
const tail = 2

// NewLatency computes the numbers of perftest from the instants at which the
// operations were posted, in nanoseconds; at least two. factor is 2 where one
// sample is a round trip of two messages, else 1.
//
// Deviation: perftest rounds each difference to whole microseconds before it
// computes the standard deviation, which makes it 0 for most machines; here it
// is not rounded.
func NewLatency(size uint64, posted []int64, factor int) Latency {
	l := Latency{Bytes: size, Iters: uint64(len(posted))}
	if len(posted) < 2 {
		return l
	}
	l.Raw = make([]time.Duration, len(posted)-1)
	for i := range l.Raw {
		l.Raw[i] = max(time.Duration(posted[i+1]-posted[i])/time.Duration(factor), 0)
	}
	l.Sorted = slices.Clone(l.Raw)
	slices.Sort(l.Sorted)
	s := l.Sorted
	n := max(len(s)-tail, 1)
	at := func(i int) time.Duration { return s[min(i, len(s)-1)] }
	l.Min, l.Max = s[0], at(n)
	l.Typical = s[n/2]
	if n%2 == 0 {
		l.Typical = (s[n/2] + s[n/2-1]) / 2
	}
	var sum float64
	for _, d := range s[:n] {
		sum += float64(d)
	}
	mean := sum / float64(n)
	var sq float64
	for _, d := range s[:n] {
		sq += (float64(d) - mean) * (float64(d) - mean)
	}
	l.Average, l.Stdev = time.Duration(mean), time.Duration(math.Sqrt(sq/float64(n)))
	l.P99 = at(int(math.Ceil(float64(n) * 0.99)))
	l.P999 = at(int(math.Ceil(float64(n) * 0.999)))
	return l
}

// NewLatencyOver returns the average of iters operations in elapsed.
func NewLatencyOver(size, iters uint64, elapsed time.Duration, factor int) Latency {
	l := Latency{Bytes: size, Iters: iters}
	if iters == 0 {
		return l
	}
	elapsed = max(elapsed, 1)
	l.Average = elapsed / time.Duration(factor) / time.Duration(iters)
	l.PerSec = float64(iters) / elapsed.Seconds()
	return l
}

// Usec returns d in microseconds.
func Usec(d time.Duration) float64 { return float64(d) / 1e3 }
