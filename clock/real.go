package clock

import "time"

// Real is the operating system's monotonic clock, counted from the moment it
// was made. Its zero value is not usable; call [NewReal].
type Real struct{ start time.Time }

// NewReal returns a clock that reads zero now.
func NewReal() Real { return Real{start: time.Now()} }

// Now returns the nanoseconds since the clock was made. Safe for concurrent use.
func (r Real) Now() Time { return Time(time.Since(r.start)) }

// At converts an instant of this clock into wall time with Go's monotonic
// reading, for timers of the standard library. Never gives the zero time.
func (r Real) At(t Time) time.Time {
	if t == Never {
		return time.Time{}
	}
	return r.start.Add(time.Duration(t))
}

// Wait waits for as long as somebody has asked a thing to be delayed; not at all for
// 0 or less. Nothing here waits for another reason.
func Wait(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
