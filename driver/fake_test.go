package driver

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAdapter counts what its owner does with it. It fails the test if two
// goroutines own it at a time.
type fakeAdapter struct {
	t     *testing.T
	owner atomic.Bool

	bell     atomic.Int64 // doorbells rung and not answered
	answered atomic.Int64 // doorbells answered
	frames   atomic.Int64 // frames received
	fired    atomic.Int64 // deadlines met
	slices   atomic.Int64 // calls of Advance
	toSend   atomic.Int64 // runs that Egress has to give

	deadline clock.Time // owner's
	lastFire clock.Time
	onFire   func()
}

func newFakeAdapter(t *testing.T) *fakeAdapter { return &fakeAdapter{t: t, deadline: clock.Never} }

func (a *fakeAdapter) enter() {
	if a.owner.Swap(true) {
		a.t.Error("two owners at a time")
	}
}

func (a *fakeAdapter) exit() { a.owner.Store(false) }

func (a *fakeAdapter) Ingress(clock.Time, *frame.Rx) {
	a.enter()
	defer a.exit()
	a.frames.Add(1)
}

func (a *fakeAdapter) Egress(_ clock.Time, r *frame.Run) bool {
	a.enter()
	defer a.exit()
	if a.toSend.Load() == 0 {
		return false
	}
	a.toSend.Add(-1)
	r.N, r.Seg, r.Segs = 100, 100, 1
	r.Src, r.Dst = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	return true
}

func (a *fakeAdapter) Advance(now clock.Time) {
	a.enter()
	defer a.exit()
	a.slices.Add(1)
	if n := a.bell.Swap(0); n > 0 {
		a.answered.Add(n)
	}
	if now >= a.deadline {
		a.deadline = clock.Never
		a.lastFire = now
		a.fired.Add(1)
		if a.onFire != nil {
			a.onFire()
		}
	}
}

func (a *fakeAdapter) Deadline() clock.Time { return a.deadline }
func (a *fakeAdapter) Pending() bool        { return a.Rung() || a.toSend.Load() > 0 }
func (a *fakeAdapter) Rung() bool           { return a.bell.Load() > 0 }

// fakeLink receives what a test puts in. Wait blocks until there is something,
// until its deadline, or until Wake; so a lost wake-up hangs the test.
type fakeLink struct {
	mu     sync.Mutex
	in     int
	closed bool
	notify chan struct{}
	waits  atomic.Int64
	wakes  atomic.Int64
	sent   atomic.Int64
	full   atomic.Bool // Reserve lends nothing
	bad    atomic.Bool // Wait fails
	buf    [4][256]byte
}

type badWait struct{}

func (badWait) Error() string { return "bad wait" }

func newFakeLink() *fakeLink { return &fakeLink{notify: make(chan struct{}, 1)} }

func (l *fakeLink) put(n int) {
	l.mu.Lock()
	l.in += n
	l.mu.Unlock()
	l.signal()
}

func (l *fakeLink) signal() {
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

func (l *fakeLink) Caps() link.Caps { return link.Caps{MTU: 256, Segments: 1, RunBytes: 256} }

func (l *fakeLink) Path(_, _ netip.Addr, p uint16) (link.Path, error) {
	return link.Path{SrcPort: p, MTU: 256}, nil
}

func (l *fakeLink) Recv(_ clock.Time, rx []frame.Rx) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	n := min(l.in, len(rx))
	l.in -= n
	return n, nil
}

func (l *fakeLink) Release([]frame.Rx) {}

func (l *fakeLink) Reserve(tx []frame.Run) int {
	if l.full.Load() {
		return 0
	}
	n := min(len(tx), len(l.buf))
	for i := range tx[:n] {
		tx[i] = frame.Run{Buf: l.buf[i][:]}
	}
	return n
}

func (l *fakeLink) Commit(_ clock.Time, tx []frame.Run) error {
	for i := range tx {
		if tx[i].N > 0 {
			l.sent.Add(1)
		}
	}
	return nil
}

func (l *fakeLink) Counters() link.Counters   { return link.Counters{} }
func (l *fakeLink) Event() (link.Event, bool) { return link.Event{}, false }

func (l *fakeLink) Wait(now, until clock.Time) error {
	l.waits.Add(1)
	if l.bad.Load() {
		return badWait{}
	}
	l.mu.Lock()
	in, closed := l.in, l.closed
	l.mu.Unlock()
	if closed {
		return link.ErrClosed
	}
	if in > 0 {
		return nil
	}
	var due <-chan time.Time
	if until != clock.Never {
		t := time.NewTimer(until.Sub(now))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-l.notify:
	}
	return nil
}

func (l *fakeLink) Wake() {
	l.wakes.Add(1)
	l.signal()
}

func (l *fakeLink) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
	return nil
}
