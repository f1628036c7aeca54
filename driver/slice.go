package driver

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
)

// The bounds of a slice.
const (
	rxBatch = 16        // frames of one Recv, each a packet or what the kernel merged
	txBytes = 256 << 10 // sent in one slice, about
	txMax   = 64        // runs of one slice at most
)

// txRuns returns how many runs of a link make up about txBytes.
func txRuns(c link.Caps) int {
	n := txBytes / max(c.RunBytes, 1)
	return min(max(n, 4), txMax)
}

// slice receives a batch, fires timers and sends. It reports whether anything
// was received or sent. Owner.
func (d *Driver) slice(now clock.Time) bool {
	got := d.receive(now)
	sent := d.send(now)
	return got || sent
}

// receive lets the adapter have one batch of what has arrived, and reports
// whether there was any. Owner.
func (d *Driver) receive(now clock.Time) bool {
	n, err := d.l.Recv(now, d.rx)
	if err != nil {
		d.fail(err)
	}
	if n > 0 {
		raceReceive()
	}
	for i := range d.rx[:n] {
		d.a.Ingress(now, &d.rx[i])
	}
	if n > 0 {
		d.l.Release(d.rx[:n])
	}
	return n > 0
}

// catchUpRounds bounds what is received before late timers fire, in batches.
const catchUpRounds = 8

// catchUp receives what waits in the link before timers that are due fire: this
// process may not have run for a while, and an answer that came in meanwhile
// must not count as missing. Owner.
func (d *Driver) catchUp(now clock.Time) {
	for range catchUpRounds {
		if !d.receive(now) {
			return
		}
	}
}

// send answers doorbells, fires timers and sends what the adapter has until it
// has no more, the way out is full, or the slice has had its share. It reports
// whether anything was sent. Owner.
func (d *Driver) send(now clock.Time) bool {
	if d.a.Deadline() <= now {
		d.catchUp(now)
	}
	d.a.Advance(now)
	if !d.a.Pending() {
		return false
	}
	room := d.l.Reserve(d.tx)
	if d.full = room == 0; d.full {
		return false
	}
	n := 0
	for n < room && d.a.Egress(now, &d.tx[n]) {
		n++
	}
	if n > 0 {
		raceSend()
	}
	if err := d.l.Commit(now, d.tx[:room]); err != nil {
		d.fail(err)
	}
	return n > 0
}

func (d *Driver) fail(err error) {
	if d.broken == nil {
		d.broken = err
		if d.onBroken != nil {
			d.onBroken(err)
		}
	}
}

// report passes on what the link has found out. Owner.
func (d *Driver) report() {
	for {
		e, ok := d.l.Event()
		if !ok {
			return
		}
		if d.onLink != nil {
			d.onLink(e)
		}
	}
}

// leaveRounds bounds how often a leaving owner answers doorbells that others
// rang meanwhile.
const leaveRounds = 8

// leave gives the lock up. It wakes the engine out of the link if the adapter
// now wants attention earlier than the engine expects, and answers the
// doorbells of those who found the lock taken.
//
// Something still to send wakes the engine too, unless the way out is full: then
// the link ends the Wait when there is room. idle says that the caller is the
// engine and has just found that nothing can be done.
func (d *Driver) leave(idle bool) {
	for round := 0; ; round++ {
		next := d.a.Deadline()
		if !d.full && !idle && d.a.Pending() {
			next = 0
		}
		idle = false
		wake := next < d.until
		if wake {
			d.until = 0
		}
		d.mu.Unlock()
		if wake {
			d.l.Wake()
		}
		// A poster rings and then tries the lock; here the lock is released and
		// then the doorbell looked at. One of the two sees the other.
		if !d.a.Rung() {
			return
		}
		if round == leaveRounds {
			d.summon()
			d.l.Wake()
			return
		}
		if !d.mu.TryLock() {
			return // the new holder will look
		}
		if d.closed {
			d.mu.Unlock()
			return
		}
		d.send(d.c.Now())
	}
}
