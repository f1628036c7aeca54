package clock

import (
	"math"
	"time"
)

// Time is an instant in nanoseconds on a monotonic scale. The zero value is a
// valid instant: what it means is the owner's business (process start for the
// real clock, the first event for a simulation).
type Time int64

// Never is later than every instant. A deadline of Never is not armed.
const Never Time = math.MaxInt64

// Add returns t moved by d, saturating at Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	s := t + Time(d)
	if d > 0 && s < t {
		return Never
	}
	return s
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }

// Min returns the earlier of two instants.
func Min(a, b Time) Time {
	if a < b {
		return a
	}
	return b
}

// Clock tells the time. Protocol engines never hold one: they are told.
type Clock interface{ Now() Time }
