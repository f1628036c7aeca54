package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// DefaultCQDepth is the depth of a completion queue whose configuration says 0.
const DefaultCQDepth = 128

// CQConfig describes a completion queue.
type CQConfig struct {
	Depth   int          // entries; 0 means DefaultCQDepth
	Channel *CompChannel // gets an event when the armed queue gets a completion; may be nil
	// Vector is the shard of a device with several: that of the queue pairs that
	// receive to this queue. A queue that queue pairs of several shards complete to,
	// be it as their send queue's, takes a lock for each completion.
	Vector Vector
}

// CQ is a completion queue. Any number of goroutines may poll it and wait for
// it; each completion goes to one of them.
type CQ struct {
	dev  *Device
	cq   *rnic.CQ
	ch   *CompChannel
	mu   sync.Mutex // the consumer's side of cq
	dead atomic.Bool
	gone chan struct{} // closed with the queue

	home *shard        // of its vector; nil: all
	used atomic.Uint64 // the shards that complete here: bits
	turn atomic.Uint32 // which of them was driven first last
	some func() bool   // there are completions; made once

	patience patience

	wmu     sync.Mutex
	waiting int           // goroutines that are parked in Wait, or about to
	notify  chan struct{} // capacity 1: look again
}

// CreateCQ makes a completion queue. The error matches ErrInvalid for a depth
// out of range, ErrLimit when there are too many.
func (d *Device) CreateCQ(cfg CQConfig) (*CQ, error) {
	depth := cfg.Depth
	if depth == 0 {
		depth = DefaultCQDepth
	}
	if err := d.faults.control(faultplan.CreateCQ); err != nil {
		return nil, fmt.Errorf("create CQ: %w", err)
	}
	if cfg.Channel != nil && cfg.Channel.dev != d {
		return nil, errorf(ErrInvalid, "create CQ: the completion channel belongs to device %v, not to %v", cfg.Channel.dev, d)
	}
	home, err := d.shardOf(cfg.Vector)
	if err != nil {
		return nil, fmt.Errorf("create CQ: %w", err)
	}
	c := &CQ{dev: d, ch: cfg.Channel, home: home, gone: make(chan struct{}), notify: make(chan struct{}, 1)}
	err = d.do("create CQ", func(clock.Time) error {
		cq, err := d.adapter.CreateCQ(depth)
		if err != nil {
			return err
		}
		c.cq = cq
		cq.OnWatch(c.nudge)
		if c.ch != nil {
			cq.OnEvent(func() { c.ch.add(c) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.some = func() bool { return c.cq.Len() > 0 }
	if home != nil {
		c.use(home)
	}
	d.adopt(c)
	return c, nil
}

// place returns the shard of a queue pair that receives to the queue.
func (c *CQ) place() *shard {
	if c.home != nil {
		return c.home
	}
	return c.dev.nextShard()
}

// use notes that a shard completes here. The bit stays.
func (c *CQ) use(s *shard) { c.used.Or(1 << s.index) }

// drive runs one slice of each shard that completes here, until there is a
// completion.
func (c *CQ) drive() {
	if len(c.dev.shards) == 1 {
		c.dev.drv.Poll()
		return
	}
	c.dev.pollSet(c.used.Load(), int(c.turn.Add(1)%uint32(len(c.dev.shards))), c.some)
}

func (c *CQ) park() {
	if len(c.dev.shards) == 1 {
		c.dev.drv.Park()
		return
	}
	c.dev.park(c.used.Load())
}

// Number returns the number by which asynchronous events name the queue.
func (c *CQ) Number() uint32 { return c.cq.Number() }

// Depth returns the number of completions that the queue can hold.
func (c *CQ) Depth() int { return c.cq.Depth() }

// Resize changes how many completions the queue can hold. Nothing is lost and no
// event is raised or forgotten, whoever polls or completes meanwhile. A refused
// call changes nothing: it matches ErrInvalid for a depth beyond the device's
// limit or below the number of completions that wait, ErrState if the queue has
// overflowed.
func (c *CQ) Resize(depth int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead.Load() {
		return errorf(ErrClosed, "resize CQ %d: it is closed", c.cq.Number())
	}
	return c.dev.do("resize CQ", func(clock.Time) error { return c.dev.adapter.ResizeCQ(c.cq, depth) })
}

// Overrun reports whether completions were lost because the queue was full. Its
// queue pairs are in Error then.
func (c *CQ) Overrun() bool { return c.cq.Overrun() }

// Poll moves up to len(wcs) completions into wcs, oldest first, and returns how
// many. If there is none, it drives the device for one bounded slice, unless
// somebody else does, and looks again; so a program that calls Poll in a loop
// needs nothing else. It never blocks and does not allocate. A closed queue has
// no completions.
func (c *CQ) Poll(wcs []ib.WC) int {
	if n := c.take(wcs); n > 0 || c.dead.Load() {
		return n
	}
	c.drive()
	return c.take(wcs)
}

// take moves what is there.
func (c *CQ) take(wcs []ib.WC) int {
	if c.cq.Len() == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead.Load() {
		return 0
	}
	n := c.cq.Poll(wcs)
	if f := c.dev.faults; f != nil && f.Asks(faultplan.Poll) {
		f.polled(wcs[:n])
	}
	return n
}

// Wait is Poll that waits until there is a completion. It spins for [SpinTime],
// or somewhat longer while completions are that near, then hands the device to its engine goroutine and parks.
//
// The error is the context's, matches ErrClosed when the queue or the device is
// closed meanwhile, or ErrOverrun when nothing will come any more.
func (c *CQ) Wait(ctx context.Context, wcs []ib.WC) (int, error) {
	if len(wcs) == 0 {
		return 0, errorf(ErrInvalid, "wait for CQ %d: no room for a completion: wcs has length 0", c.cq.Number())
	}
	for spin := c.dev.newSpin(&c.patience); spin.more(); {
		if n := c.Poll(wcs); n > 0 {
			return n, nil
		}
	}
	c.enter()
	defer c.exit()
	since := c.dev.clock.Now()
	for {
		// Watched, parked, looked at, in this order: what completes from here
		// on finds the watch, and the engine is there to complete it.
		c.park()
		if n := c.take(wcs); n > 0 {
			c.patience.learn(c.dev.clock.Now().Sub(since))
			return n, nil
		}
		if err := c.over(ctx); err != nil {
			return 0, err
		}
		select {
		case <-c.notify:
		case <-ctx.Done():
		case <-c.gone:
		}
	}
}

// over returns why there is nothing to wait for.
func (c *CQ) over(ctx context.Context) error {
	switch {
	case c.dead.Load():
		return errorf(ErrClosed, "wait for CQ %d: it is closed", c.cq.Number())
	case c.cq.Overrun():
		return errorf(ErrOverrun, "wait for CQ %d: its %d entries were full and completions were lost; make it deeper or poll more often",
			c.cq.Number(), c.cq.Depth())
	}
	return ctx.Err()
}

func (c *CQ) enter() {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.waiting++; c.waiting == 1 {
		c.cq.Watch(true)
	}
}

// exit leaves the waiters; the one who leaves passes on what it left in the
// queue.
func (c *CQ) exit() {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.cq.Watch(false)
	} else if c.cq.Len() > 0 || c.cq.Overrun() {
		c.nudge()
	}
}

// nudge wakes one waiter. It is called under the driver's lock too.
func (c *CQ) nudge() {
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

// Arm asks for one event on the queue's channel: at the next completion or,
// with solicitedOnly, at the next that is solicited or in error. Completions
// that are there already raise none: poll again after arming. Arm says that the
// program is about to block, so the engine goroutine takes over.
//
// The error matches ErrInvalid if the queue has no channel, ErrClosed if the
// queue is closed.
func (c *CQ) Arm(solicitedOnly bool) error {
	if c.ch == nil {
		return errorf(ErrInvalid, "arm CQ %d: it was made without a completion channel", c.cq.Number())
	}
	c.mu.Lock()
	dead := c.dead.Load()
	if !dead {
		c.cq.Arm(solicitedOnly)
	}
	c.mu.Unlock()
	if dead {
		return errorf(ErrClosed, "arm CQ %d: it is closed", c.cq.Number())
	}
	c.park()
	return nil
}

// Close frees the queue and the completions in it. It matches ErrBusy while a
// queue pair completes there.
func (c *CQ) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	did, err := c.dev.release(c, &c.dead, func(clock.Time) error { return c.dev.adapter.DestroyCQ(c.cq) })
	if did {
		c.end()
	}
	return err
}

func (c *CQ) kill() {
	if !c.dead.Swap(true) {
		c.end()
	}
}

func (c *CQ) end() {
	close(c.gone)
	if c.ch != nil {
		c.ch.remove(c)
	}
}
