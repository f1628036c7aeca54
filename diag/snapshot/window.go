package snapshot

import (
	"math"
	"time"
)

// Window is a host at two instants, or at one: then Before is nil and there are no
// differences.
type Window struct {
	Before *Snapshot `json:"before,omitempty"`
	After  *Snapshot `json:"after"`
}

// Length is the time between the two, 0 for one snapshot or clocks that stood. Where the
// host's clock was set in between, it is what the host's uptime says.
func (w Window) Length() time.Duration {
	if w.Before == nil {
		return 0
	}
	d := w.After.Taken.Sub(w.Before.Taken)
	from, ok := w.Before.Uptime.Get()
	to, ok2 := w.After.Uptime.Get()
	up := to - from
	if ok && ok2 && up > 0 && up < maxUptime && math.Abs(up-d.Seconds()) > clockSlack {
		return time.Duration(up * float64(time.Second))
	}
	return max(d, 0)
}

const (
	// maxUptime bounds what is believed of an uptime, in seconds: a century.
	maxUptime = 100 * 365 * 86400
	// clockSlack is by how many seconds clock and uptime may differ: an uptime has
	// hundredths, and is read a moment later.
	clockSlack = 0.2
)

// Restarted reports whether the host was started anew between the two: its counters
// began again, and say nothing of what rose.
func (w Window) Restarted() bool {
	if w.Before == nil {
		return false
	}
	from, ok := w.Before.Uptime.Get()
	to, ok2 := w.After.Uptime.Get()
	return ok && ok2 && to < from
}

// Delta is how much a counter rose. A counter that fell wrapped at 32 bits if it was
// in the upper half of them and the new value is in the lower half; else it was reset
// and the difference is not known.
func Delta(before, after Value[uint64]) Value[uint64] {
	b, ok := before.Get()
	if !ok {
		return Unreadable[uint64]("no earlier value: " + before.Why())
	}
	a, ok := after.Get()
	if !ok {
		return Unreadable[uint64](after.Why())
	}
	switch {
	case a >= b:
		return Known(a - b)
	case b < 1<<32 && b >= 1<<31 && a < 1<<31:
		return Known(a + 1<<32 - b)
	}
	return Unreadable[uint64]("the counter fell: it was reset, or the device is another one")
}
