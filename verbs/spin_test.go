package verbs

import (
	"testing"
	"time"
)

// Waits that were parked for less than a long spin make the next ones spin
// longer, up to the most; one that was parked for longer takes that back.
func TestPatience(t *testing.T) {
	var p patience
	for i, c := range []struct{ parked, want time.Duration }{
		{SpinTimeMost, SpinTime},
		{time.Hour, SpinTime},
		{0, 2 * SpinTime},
		{SpinTimeMost - 1, SpinTimeMost},
		{1, SpinTimeMost},
		{SpinTimeMost, SpinTime},
		{1, 2 * SpinTime},
	} {
		if p.learn(c.parked); p.get() != c.want {
			t.Errorf("step %d: parked for %v, then spins for %v, want %v", i, c.parked, p.get(), c.want)
		}
	}
}
