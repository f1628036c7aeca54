package verbs

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// SpinTime is how long a blocking wait polls before it parks: somewhat more
// than the round trip of a small message, so that a request and its answer
// rarely pay for waking a goroutine. Where waits have lately been parked for
// less than SpinTimeMost, the next ones poll for up to that: waking alone may
// take longer than SpinTime, and two ends that each park because the other has
// would go on so for ever.
const (
	SpinTime     = 50 * time.Microsecond
	SpinTimeMost = 200 * time.Microsecond
)

// The bounds of a spin in polls, for clocks that stand still (a synctest
// bubble), and for single processors, where the answer needs ours.
const (
	spinPolls    = 256 // in SpinTime
	spinPollsOne = 4
	spinClock    = 8 // polls between two looks at the clock
)

// patience is how long the waits of one queue or channel spin.
type patience struct {
	ns atomic.Int64 // 0: SpinTime
}

func (p *patience) get() time.Duration { return max(time.Duration(p.ns.Load()), SpinTime) }

// learn takes in how long a wait that found something was parked.
func (p *patience) learn(parked time.Duration) {
	next := SpinTime
	if parked < SpinTimeMost {
		next = min(2*p.get(), SpinTimeMost)
	}
	if time.Duration(p.ns.Load()) != next {
		p.ns.Store(int64(next))
	}
}

// spin counts the polls of one blocking wait.
type spin struct {
	dev   *Device
	until clock.Time
	n     int
	most  int
}

func (d *Device) newSpin(p *patience) spin {
	t := p.get()
	s := spin{dev: d, until: d.clock.Now().Add(t), most: int(t * spinPolls / SpinTime)}
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
