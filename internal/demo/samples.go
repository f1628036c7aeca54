package demo

import (
	"context"
	"slices"
	"time"
)

// samples are round-trip times.
type samples struct{ d []time.Duration }

func newSamples() *samples { return &samples{d: make([]time.Duration, 0, 1<<16)} }

// run repeats one for the duration and notes each; it returns the bytes and
// messages of pings of pingSize.
func (s *samples) run(ctx context.Context, dur time.Duration, one func(i uint64) error) (uint64, uint64, error) {
	end := time.Now().Add(dur)
	last := time.Now()
	var i uint64
	for last.Before(end) && ctx.Err() == nil {
		if err := one(i); err != nil {
			return 0, 0, err
		}
		now := time.Now()
		s.d = append(s.d, now.Sub(last))
		last = now
		i++
	}
	return i * pingSize, i, ctx.Err()
}

func (s *samples) percentile(p int) time.Duration {
	if len(s.d) == 0 {
		return 0
	}
	slices.Sort(s.d)
	return s.d[(len(s.d)-1)*p/100]
}
