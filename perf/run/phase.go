package run

import "time"

// Phases divides a test over a time as perftest does: a margin to warm up, the
// time that counts, and a margin in which the other end may still count.
type Phases struct {
	Duration time.Duration // all of it
	Margin   time.Duration // of each end; less than half of Duration

	from, to, end int64
	on            bool
}

// start begins at the instant now, once.
func (p *Phases) start(now int64) {
	if p.on {
		return
	}
	p.on = true
	p.from = now + int64(p.Margin)
	p.end = now + int64(p.Duration)
	p.to = p.end - int64(p.Margin)
}

// counts reports whether what completes at now is part of the sample.
func (p *Phases) counts(now int64) bool { return p.on && now >= p.from && now < p.to }

// over reports whether the test has ended.
func (p *Phases) over(now int64) bool { return p.on && now >= p.end }

// sample returns the length of the time that counts.
func (p *Phases) sample() time.Duration { return time.Duration(p.to - p.from) }

// reset prepares for another run.
func (p *Phases) reset() { p.on = false }
