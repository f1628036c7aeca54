package ring

import (
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// Gate blocks one goroutine until another opens it, or until an instant. An
// Open that nobody waits for lets the next Wait pass.
type Gate struct {
	ch    chan struct{}
	timer *time.Timer // of the goroutine in Wait
}

// NewGate returns a closed gate.
func NewGate() Gate { return Gate{ch: make(chan struct{}, 1)} }

// Open lets the present or the next Wait pass. Any goroutine.
func (g *Gate) Open() {
	select {
	case g.ch <- struct{}{}:
	default:
	}
}

// Wait blocks until Open, or from now to until.
func (g *Gate) Wait(now, until clock.Time) {
	if until <= now {
		return
	}
	if until == clock.Never {
		<-g.ch
		return
	}
	if g.timer == nil {
		g.timer = time.NewTimer(until.Sub(now))
	} else {
		g.timer.Reset(until.Sub(now))
	}
	select {
	case <-g.ch:
		g.timer.Stop()
	case <-g.timer.C:
	}
}
