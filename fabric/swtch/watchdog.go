package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// watch is what the watchdog, and the counter of waiting, know of a class.
type watch struct {
	since    sim.Time // stuck since: stopped, with packets; meaningful if stuck
	rest     sim.Time // in a storm: not stopped since, or Never
	from     sim.Time // the storm found began then
	waiting  sim.Time // stuck in all
	stuck    bool
	storm    bool // found
	timer    bool // evWatch is scheduled
	detected uint64
	restored uint64
	dropped  uint64
	before   uint64 // dropped before this storm
}

// stopped is called when a class may have become stuck.
func (w *Switch) stopped(now sim.Time, out int, c uint8) {
	e := &w.out[out]
	if e.q[c] == nil {
		return // never had a packet
	}
	x := &e.q[c].watch
	x.rest = sim.Never
	if x.stuck || e.ready&^e.ignore&(1<<c) == 0 {
		return
	}
	x.stuck = true
	x.since = now
	if x.storm {
		return // found already
	}
	w.armWatch(now+w.cfg.Watchdog.Detect, out, c)
}

// resumed is called when a class may leave again.
func (w *Switch) resumed(now sim.Time, out int, c uint8) {
	if w.out[out].q[c] == nil {
		return
	}
	x := &w.out[out].q[c].watch
	x.unstick(now)
	x.rest = now
	if x.storm {
		w.armWatch(now+w.cfg.Watchdog.Restore, out, c)
	}
}

func (x *watch) unstick(now sim.Time) {
	if x.stuck {
		x.stuck = false
		x.waiting += now - x.since
	}
}

func (w *Switch) armWatch(at sim.Time, out int, c uint8) {
	x := &w.out[out].q[c].watch
	if w.cfg.Watchdog.Detect > 0 && !x.timer {
		x.timer = true
		w.s.At(at, w, uint64(out<<3|int(c))<<evShift|evWatch)
	}
}

// watch looks at a class when it might be stuck for too long, or free for long
// enough. There is one timer for a class; it finds out what has become of it.
func (w *Switch) watch(now sim.Time, out int, c uint8) {
	x := &w.out[out].q[c].watch
	x.timer = false
	d := &w.cfg.Watchdog
	switch {
	case x.storm && x.rest != sim.Never:
		if now-x.rest < d.Restore {
			w.armWatch(x.rest+d.Restore, out, c)
			return
		}
		w.restore(now, out, c)
	case !x.storm && x.stuck:
		if now-x.since < d.Detect {
			w.armWatch(x.since+d.Detect, out, c)
			return
		}
		w.detect(now, out, c)
	}
}

func (w *Switch) detect(now sim.Time, out int, c uint8) {
	e := &w.out[out]
	x := &e.q[c].watch
	x.storm, x.from, x.rest, x.before = true, x.since, sim.Never, x.dropped
	x.detected++
	if w.log != nil {
		w.log.Storm(w.stormOf(out, c))
	}
	switch w.cfg.Watchdog.Action {
	case Alert:
	case DropAll:
		e.shut |= 1 << c
		w.drain(now, out, c, result.DropWatchdog)
	case Forward:
		e.ignore |= 1 << c
		x.unstick(now)
		e.port.Kick(now)
	}
}

func (w *Switch) restore(now sim.Time, out int, c uint8) {
	e := &w.out[out]
	x := &e.q[c].watch
	e.shut &^= 1 << c
	e.ignore &^= 1 << c
	x.storm = false
	x.restored++
	if w.log != nil {
		r := w.stormOf(out, c)
		r.To, r.Restored = x.rest, now
		w.log.Storm(r)
	}
}

func (w *Switch) stormOf(out int, c uint8) result.Storm {
	x := &w.out[out].q[c].watch
	return result.Storm{
		From: x.from, To: sim.Never, Node: w.cfg.ID, Port: int32(out), Prio: c,
		Watchdog: w.cfg.Watchdog.Action != Alert, Dropped: x.dropped - x.before, Restored: sim.Never,
	}
}

// drain drops what waits in a class.
func (w *Switch) drain(now sim.Time, out int, c uint8, why result.DropReason) {
	e := &w.out[out]
	q := e.q[c]
	q.watch.unstick(now)
	for e.ready&(1<<c) != 0 {
		p := e.dequeue(now, c)
		if why == result.DropWatchdog {
			q.watch.dropped++
		}
		w.release(now, p, out, q)
		w.drop(now, out, p, why)
	}
}
