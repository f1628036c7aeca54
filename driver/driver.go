package driver

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/rnic"
)

// Takeover is how long nobody must have polled before the engine goroutine
// drives. As it looks once in Takeover, it takes over after one to two of them.
const Takeover = time.Millisecond

// ErrClosed is returned after Close.
var ErrClosed = errors.New("driver closed")

// adapter is the owner's side of [rnic.Adapter]; Rung is for any goroutine.
type adapter interface {
	Ingress(now clock.Time, f *frame.Rx)
	Egress(now clock.Time, r *frame.Run) bool
	Advance(now clock.Time)
	Deadline() clock.Time
	Pending() bool
	Rung() bool
}

// Driver runs one adapter over one link. All methods may be called from any
// goroutine.
type Driver struct {
	a     adapter
	l     link.Link
	c     clock.Clock
	procs int // GOMAXPROCS at the start

	onLink   func(link.Event)
	onBroken func(error)

	mu     sync.Mutex  // whoever holds it owns everything down to the blank line
	rx     []frame.Rx  // for one Recv
	tx     []frame.Run // for one Reserve
	polls  uint64      // slices that pollers drove
	empty  uint32      // slices of pollers, one after the other, that moved nothing
	until  clock.Time  // the engine sleeps in the link until then; 0: it does not
	full   bool        // the last Reserve lent nothing
	broken error       // first error of the link
	closed bool

	wanted  atomic.Int32  // control calls that wait for the lock
	passive atomic.Bool   // the engine sleeps on summons and a timer
	parks   atomic.Uint64 // how often somebody parked
	summons chan struct{} // wakes the passive engine
	done    chan struct{} // closed when the engine goroutine is gone
}

// Config is what a driver joins. The adapter and the link belong to the driver
// from New on.
type Config struct {
	Adapter *rnic.Adapter
	Link    link.Link
	Clock   clock.Clock
	// OnLink gets what the link finds out while it sends, within Takeover. OnBroken
	// gets the first error of the link as a whole. Both may be nil; they are
	// called with the lock held and must not call the driver.
	OnLink   func(link.Event)
	OnBroken func(error)
}

// New starts the engine goroutine.
func New(cfg Config) *Driver { return start(cfg.Adapter, cfg) }

func start(a adapter, cfg Config) *Driver {
	l := cfg.Link
	d := &Driver{
		a: a, l: l, c: cfg.Clock, onLink: cfg.OnLink, onBroken: cfg.OnBroken,
		procs:   runtime.GOMAXPROCS(0),
		rx:      make([]frame.Rx, rxBatch),
		tx:      make([]frame.Run, txRuns(l.Caps())),
		summons: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go d.engine()
	return d
}

// Do calls f, which may use the adapter and the link as their owner, with the
// present time, and then sends what has become ready. After Close it returns
// ErrClosed without calling f.
func (d *Driver) Do(f func(now clock.Time)) error {
	d.wanted.Add(1)
	d.mu.Lock()
	d.wanted.Add(-1)
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	now := d.c.Now()
	f(now)
	d.send(now)
	d.leave(false)
	return nil
}

// Poll runs one slice if nobody else is driving, and reports whether it
// received or sent anything. Empty Polls give way to other goroutines now and
// then, so a program may call Poll in a loop.
func (d *Driver) Poll() bool {
	if d.wanted.Load() != 0 || !d.mu.TryLock() {
		runtime.Gosched()
		return false
	}
	if d.closed {
		d.mu.Unlock()
		return false
	}
	d.polls++
	now := d.c.Now()
	sent := d.send(now)
	moved := d.receive(now) || sent
	if moved {
		d.empty = 0
	} else {
		d.empty++
	}
	empty := d.empty
	d.leave(false)
	if empty != 0 {
		d.yield(empty)
	}
	return moved
}

// yield gives way after the n-th empty slice in a row. With one processor
// anybody else is who has the answer. With more, giving way each time would do
// harm: the runtime wakes another thread for it, on the core where the peer may
// spin. A spinning thread that shares its core with another process's gives way
// to that.
func (d *Driver) yield(n uint32) {
	const every, everyThread = 32, 32
	if d.procs == 1 || n%every == 0 {
		runtime.Gosched()
	}
	if n%everyThread == 0 {
		yieldThread()
	}
}

// Kick is called after a post: it sends what may be sent if nobody is driving.
// Otherwise whoever drives finds the doorbell before it leaves.
func (d *Driver) Kick() {
	if !d.mu.TryLock() {
		return
	}
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.send(d.c.Now())
	d.leave(false)
}

// Park says that the caller is about to block, so that the engine goroutine
// takes over at once. The caller registers what it waits for first, then calls
// Park, looks once more, and blocks.
func (d *Driver) Park() {
	d.parks.Add(1)
	if d.passive.Load() {
		d.summon()
	}
}

// Wake makes the engine goroutine look if it sleeps in the link; whoever polls
// looks anyway. It takes no lock: the holder of another driver's may call it.
func (d *Driver) Wake() { d.l.Wake() }

func (d *Driver) summon() {
	select {
	case d.summons <- struct{}{}:
	default:
	}
}

// Broken returns the first error of the link, or nil.
func (d *Driver) Broken() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// Close sends what is ready, stops the engine goroutine, waits for it, and
// closes the link. Later calls return nil.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.done
		return nil
	}
	d.send(d.c.Now())
	d.closed = true
	d.mu.Unlock()
	d.summon()
	d.l.Wake()
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.l.Close()
}
