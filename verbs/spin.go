package verbs

import (
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// SpinTime is how long a blocking wait polls before it parks: somewhat more
// than the round trip of a small message, so that a request and its answer
// rarely pay for waking a goroutine.
const SpinTime = 50 * time.Microsecond

// The bounds of a spin in polls, for clocks that stand still (a synctest
// bubble), and for single processors, where the answer needs ours.
const (
	spinPolls    = 256
	spinPollsOne = 4
	spinClock    = 8 // polls between two looks at the clock
)

// spin counts the polls of one blocking wait.
type spin struct {
	dev   *Device
	until clock.Time
	n     int
	most  int
}

func (d *Device) newSpin() spin {
	s := spin{dev: d, until: d.clock.Now().Add(SpinTime), most: spinPolls}
	if runtime.NumCPU() == 1 {
		s.most = spinPollsOne
	}
	return s
}

// more reports whether another poll is due before parking.
func (s *spin) more() bool {
	s.n++
	if s.n > s.most {
		return false
	}
	return s.n%spinClock != 0 || s.dev.clock.Now() < s.until
}
