package work

import (
	"math/big"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Poisson is flows that arrive at every source as a Poisson process: sizes from
// a distribution, receivers uniform among the others. The mean time between two
// arrivals at a source is
//
//	mean size · 8 / (Rate · Load)
//
// as in HPCC's traffic generator.
type Poisson struct {
	Sources []int32
	Dests   []int32 // nil: Sources
	CDF     *CDF
	Rate    sim.Rate // of a source's link
	LoadPPM int64    // load in parts of a million of Rate: 300,000 is 30 %
	Start   sim.Time
	// Until the last arrival, Count of flows in all; 0: not limited so. With
	// neither, flows arrive for ever and nobody waits for them.
	Until sim.Time
	Count int64
	// Apart returns what source and receiver must differ in, see [Permutation].
	Apart func(endpoint int32) int32
	As    Flow // other properties
}

// Validate implements [Workload].
func (w Poisson) Validate() error {
	c := checks{workload: "poisson"}
	c.endpoints("Sources", w.Sources, 1)
	dests := w.Dests
	if dests == nil {
		dests = w.Sources
	} else {
		c.endpoints("Dests", dests, 1)
	}
	if w.CDF == nil {
		c.fail("CDF", "is missing")
	}
	if w.Rate <= 0 {
		c.fail("Rate", "%s is not positive", w.Rate)
	}
	c.number("LoadPPM", w.LoadPPM, 1, 1_000_000_000)
	c.time("Start", w.Start)
	c.time("Until", w.Until)
	c.number("Count", w.Count, 0, 1<<31-1)
	if c.err != nil {
		return c.err
	}
	one, several := w.apart(dests[0]), false
	for _, d := range dests {
		several = several || w.apart(d) != one
	}
	for _, s := range w.Sources { // with two kinds, everybody finds somebody
		if !several && w.apart(s) == one {
			c.fail("Dests", "have nobody to whom endpoint %d could send", s)
		}
	}
	if w.meanGap() == sim.Never {
		c.fail("LoadPPM", "%d of %s makes less than a flow in %s", w.LoadPPM, w.Rate, MaxTime)
	}
	return c.err
}

func (w *Poisson) apart(e int32) int32 {
	if w.Apart == nil {
		return e
	}
	return w.Apart(e)
}

// meanGap returns the mean time between arrivals at a source.
func (w *Poisson) meanGap() sim.Time {
	// ps = mean/(2·whole) · 8 · 10^12 · 10^6 / (Rate · ppm)
	num := w.CDF.mean()
	num.Mul(num, big.NewInt(4_000_000))
	den := new(big.Int).Mul(big.NewInt(int64(w.Rate)), big.NewInt(w.LoadPPM))
	num.Add(num, new(big.Int).Rsh(den, 1)).Div(num, den)
	if !num.IsInt64() || num.Int64() > int64(MaxTime) {
		return sim.Never
	}
	return max(1, sim.Time(num.Int64()))
}

// Stream implements [Workload].
func (w Poisson) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if w.Dests == nil {
		w.Dests = w.Sources
	}
	if w.Until == 0 {
		w.Until = MaxTime
		if w.Count == 0 {
			w.As.Endless = true
		}
	}
	s := &arrivals{w: w, r: r, gap: w.meanGap(), left: w.Count}
	if w.Count == 0 {
		s.left = 1<<63 - 1
	}
	for i := range w.Sources {
		s.next.push(w.Start.Add(spread(s.gap, exponential(r))), int32(i))
	}
	return s, nil
}

type arrivals struct {
	w    Poisson
	r    *sim.Rand
	gap  sim.Time
	next timeline // sources
	left int64
	id   int32
}

// Next implements [Stream].
func (s *arrivals) Next() (Flow, bool) {
	if !s.more() {
		return Flow{}, false
	}
	at, src := s.next.at[0], s.w.Sources[s.next.who[0]]
	s.left--
	s.next.move(at.Add(spread(s.gap, exponential(s.r))))
	f := flow(&s.w.As, src, s.dst(src), s.w.CDF.Draw(s.r), at)
	f.ID = s.id
	s.id++
	return f, true
}

// dst draws a receiver. Validate has seen that there is one; where they are
// rare, the search ends with the next one in the list.
func (s *arrivals) dst(src int32) int32 {
	const draws = 64
	n := len(s.w.Dests)
	mine := s.w.apart(src)
	i := 0
	for range draws {
		i = int(s.r.N(uint64(n)))
		if s.w.apart(s.w.Dests[i]) != mine {
			return s.w.Dests[i]
		}
	}
	for s.w.apart(s.w.Dests[i]) == mine {
		i = (i + 1) % n
	}
	return s.w.Dests[i]
}

func (s *arrivals) more() bool { return s.left > 0 && s.next.at[0] <= s.w.Until }

// Finite implements [Stream].
func (s *arrivals) Finite() bool { return s.more() && !s.w.As.Endless }

// Err implements [Stream].
func (s *arrivals) Err() error { return nil }

// Chained reports that no flow waits for another.
func (s *arrivals) Chained() bool { return false }
