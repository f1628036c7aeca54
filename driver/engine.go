package driver

import (
	"errors"
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/link"
)

// linger is how many empty slices the engine runs after the last full one
// before it sleeps: the next frame of a conversation is often near.
const linger = 16

// engine drives while nobody else does.
func (d *Driver) engine() {
	defer close(d.done)
	timer := time.NewTimer(Takeover)
	defer timer.Stop()
	var polls, parks uint64 // as they were when last looked at
	idle := 0
	for {
		parked := d.parks.Load()
		d.mu.Lock()
		d.until = 0
		if d.closed {
			d.mu.Unlock()
			return
		}
		d.report()
		if d.polls != polls && parked == parks {
			polls = d.polls
			d.leave(false)
			d.rest(timer, parked)
			idle = linger
			continue
		}
		polls, parks = d.polls, parked

		now := d.c.Now()
		if d.slice(now) {
			idle = 0
		} else {
			idle++
		}
		if errors.Is(d.broken, link.ErrClosed) {
			d.leave(false)
			return // the link was closed under us: there is nothing left to drive
		}
		if idle <= linger {
			d.leave(false)
			runtime.Gosched()
			continue
		}
		until := d.a.Deadline()
		if until <= now {
			d.leave(false)
			continue
		}
		d.until = until
		d.leave(true)
		if err := d.l.Wait(now, until); err != nil && !errors.Is(err, link.ErrClosed) {
			d.mu.Lock()
			d.fail(err)
			d.mu.Unlock()
			d.rest(timer, parked) // a link that cannot wait must not be spun on
		}
	}
}

// rest sleeps for Takeover, or until somebody parks after parked was read.
func (d *Driver) rest(timer *time.Timer, parked uint64) {
	d.passive.Store(true)
	if d.parks.Load() == parked {
		timer.Reset(Takeover)
		select {
		case <-d.summons:
		case <-timer.C:
		}
	}
	d.passive.Store(false)
}
