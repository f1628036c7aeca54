package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// Time is an instant, or a span, in picoseconds of virtual time. 64 B at
// 400 Gb/s last 1,280; an int64 holds 106 days.
type Time int64

// The units.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Never is later than every instant.
const Never Time = math.MaxInt64

// Clock returns t in the unit of adapters, rounded down: an adapter is never
// told an instant that has not come.
func (t Time) Clock() clock.Time {
	if t == Never {
		return clock.Never
	}
	return clock.Time(t / Nanosecond)
}

// FromClock returns the first instant at which Clock gives c: what an adapter
// waits for has come then.
func FromClock(c clock.Time) Time {
	if c >= clock.Time(Never/Nanosecond) {
		return Never
	}
	return Time(c) * Nanosecond
}

// Of returns a duration of the standard library as a span.
func Of(d time.Duration) Time {
	if d > time.Duration(Never/Nanosecond) {
		return Never
	}
	return Time(d) * Nanosecond
}

// Duration returns a span in nanoseconds, rounded down.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// Seconds returns a span in seconds; for output only.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Micros returns a span in microseconds; for output only.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// Add returns t moved by d ≥ 0, saturating at Never.
func (t Time) Add(d Time) Time {
	if t > Never-d {
		return Never
	}
	return t + d
}

// String returns the span with the unit that fits: "1.28ns", "3.5us".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	for _, u := range [...]struct {
		unit Time
		name string
	}{{Second, "s"}, {Millisecond, "ms"}, {Microsecond, "us"}, {Nanosecond, "ns"}} {
		if t >= u.unit || t <= -u.unit {
			return fmt.Sprintf("%.4g%s", float64(t)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%dps", int64(t))
}
