package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
)

// CQ is a completion queue. Poll, Arm, Len and OnEvent belong to one goroutine
// at a time, which need not be the adapter's owner.
type CQ struct {
	num   uint32
	ring  cqRing
	of    *common
	lock  mem.Locker // where queue pairs of several shards complete here; else nil
	by    uint64     // the shards of its queue pairs so far: bits
	users int        // queues of queue pairs that complete here
	slot  int        // in the list of all; -1 after destruction
}

// CreateCQ makes a completion queue that holds depth completions. It matches
// ErrInvalid for a depth out of range, ErrLimit when there are too many. Owner.
func (a *Adapter) CreateCQ(depth int) (*CQ, error) {
	if depth < 1 || depth > a.limits.MaxCQE {
		return nil, fmt.Errorf("create CQ: depth is %d, can be 1 to %d: %w", depth, a.limits.MaxCQE, ErrInvalid)
	}
	if len(a.cqs) >= a.limits.MaxCQ {
		return nil, fmt.Errorf("create CQ: there are %d of %d: %w", len(a.cqs), a.limits.MaxCQ, ErrLimit)
	}
	a.cqNum++
	c := &CQ{num: a.cqNum, of: a.common, slot: len(a.cqs)}
	c.ring.init(depth)
	a.cqs = append(a.cqs, c)
	return c, nil
}

// ResizeCQ changes how many completions a queue holds. Those that wait stay, in
// order, and so does what has been armed. A refused call changes nothing: it
// matches ErrInvalid for a depth out of range or below what waits, ErrState when
// the queue has overflowed. Owner, and no consumer at the same time.
func (a *Adapter) ResizeCQ(c *CQ, depth int) error {
	if c == nil || c.of != a.common || c.slot < 0 {
		return fmt.Errorf("resize CQ: it does not exist: %w", ErrInvalid)
	}
	if depth < 1 || depth > a.limits.MaxCQE {
		return fmt.Errorf("resize CQ %d: depth is %d, can be 1 to %d: %w", c.num, depth, a.limits.MaxCQE, ErrInvalid)
	}
	if c.Overrun() {
		return fmt.Errorf("resize CQ %d: it has overflowed: %w", c.num, ErrState)
	}
	if n := c.Len(); depth < n {
		return fmt.Errorf("resize CQ %d: depth is %d and %d completions wait; poll them first: %w", c.num, depth, n, ErrInvalid)
	}
	c.ring.resize(depth)
	return nil
}

// DestroyCQ removes a completion queue. While queue pairs use it, it is refused
// with ErrBusy. Owner.
func (a *Adapter) DestroyCQ(c *CQ) error {
	if c == nil || c.of != a.common || c.slot < 0 {
		return fmt.Errorf("destroy CQ: it does not exist: %w", ErrInvalid)
	}
	if c.users > 0 {
		return fmt.Errorf("destroy CQ %d: %d queues of queue pairs complete to it, for one of QP %v; destroy those first: %w",
			c.num, c.users, a.someUser(c), ErrBusy)
	}
	last := len(a.cqs) - 1
	a.cqs[c.slot] = a.cqs[last]
	a.cqs[c.slot].slot = c.slot
	a.cqs[last] = nil
	a.cqs = a.cqs[:last]
	c.slot = -1
	return nil
}

// Number returns the number by which events name the queue.
func (c *CQ) Number() uint32 { return c.num }

// Poll moves up to len(wcs) completions into wcs, oldest first, and returns how
// many. Completions queued before an overflow stay readable after it. Consumer.
func (c *CQ) Poll(wcs []ib.WC) int { return c.ring.pop(wcs) }

// Arm asks for one event: at the next completion or, with solicitedOnly, at the
// next that is solicited or in error. A completion that is there already is
// never reported: poll again after arming. Consumer. (IBA vol.1 11.4.2.2)
func (c *CQ) Arm(solicitedOnly bool) { c.ring.arm(solicitedOnly) }

// OnEvent sets the function that the owner calls when an armed queue gets a
// completion, or overflows; nil for none. It must not block or call the
// adapter. Consumer.
func (c *CQ) OnEvent(f func()) {
	if f == nil {
		c.ring.hook.Store(nil)
		return
	}
	c.ring.hook.Store(&f)
}

// OnWatch sets the function that the owner calls after every completion, and
// after an overflow, while the queue is watched. It must not block or call the
// adapter. Unlike an event it does not go through Arm, so a blocking wait does
// not disturb what an application has armed. Any goroutine.
func (c *CQ) OnWatch(f func()) { c.ring.onWatch.Store(&f) }

// Watch begins or ends the calls of OnWatch's function. What was completed
// before is not reported: look at the queue after Watch(true). Any goroutine.
func (c *CQ) Watch(on bool) { c.ring.watched.Store(on) }

// Len returns the number of completions waiting. Consumer.
func (c *CQ) Len() int { return c.ring.len() }

// Depth returns the number of completions that the queue can hold.
func (c *CQ) Depth() int { return int(c.ring.depth.Load()) }

// Overrun reports whether the queue has overflowed. Nothing is added to it any
// more; its queue pairs are in Error.
func (c *CQ) Overrun() bool { return c.ring.bad.Load() }

// someUser returns the number of a queue pair that completes to c.
func (a *Adapter) someUser(c *CQ) ib.QPN {
	for _, s := range a.shards {
		if users := s.qps.using(c); len(users) > 0 {
			return users[0].qpn
		}
	}
	return 0
}

// add queues a completion of a queue pair of a. An overflow is noted and dealt
// with when the engine that reports it has returned. Owner.
func (c *CQ) add(a *Adapter, wc *ib.WC, solicited bool) {
	if c.lock != nil {
		c.addShared(a, wc, solicited)
		return
	}
	if c.Overrun() {
		a.count.cqeLost++
		return
	}
	if !c.ring.push(wc, solicited) {
		a.count.cqeLost++
		c.ring.overflow()
		a.overrun = append(a.overrun, c)
	}
}

// addShared is add where owners of other shards may do the same.
func (c *CQ) addShared(a *Adapter, wc *ib.WC, solicited bool) {
	c.lock.Lock()
	lost, first := c.Overrun(), false
	if !lost && !c.ring.push(wc, solicited) {
		lost, first = true, true
		c.ring.overflow()
	}
	c.lock.Unlock()
	if lost {
		a.count.cqeLost++
	}
	if first {
		a.overrun = append(a.overrun, c)
		a.sound(c)
	}
}
