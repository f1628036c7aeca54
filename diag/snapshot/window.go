package snapshot

import "time"

// Window is a host at two instants, or at one: then Before is nil and there are no
// differences.
type Window struct {
	Before *Snapshot `json:"before,omitempty"`
	After  *Snapshot `json:"after"`
}

// Length is the time between the two, 0 for one snapshot or clocks that stood.
func (w Window) Length() time.Duration {
	if w.Before == nil {
		return 0
	}
	return max(w.After.Taken.Sub(w.Before.Taken), 0)
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
