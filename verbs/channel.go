package verbs

import (
	"context"
	"slices"
	"sync"
)

// CompChannel delivers the events of armed completion queues. Each arming gives
// at most one event.
type CompChannel struct {
	dev  *Device
	gone chan struct{}

	patience patience

	mu     sync.Mutex
	closed bool
	events []*CQ
	ready  chan struct{} // capacity 1: full while there are events
}

// CreateCompChannel makes a completion channel.
func (d *Device) CreateCompChannel() *CompChannel {
	ch := &CompChannel{dev: d, gone: make(chan struct{}), ready: make(chan struct{}, 1)}
	if !d.adopt(ch) {
		ch.kill()
	}
	return ch
}

// add queues an event. It is called under the driver's lock.
func (ch *CompChannel) add(c *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return
	}
	ch.events = append(ch.events, c)
	ch.signal()
}

func (ch *CompChannel) signal() {
	select {
	case ch.ready <- struct{}{}:
	default:
	}
}

// remove forgets the events of a closed queue.
func (ch *CompChannel) remove(c *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.events = slices.DeleteFunc(ch.events, func(e *CQ) bool { return e == c })
}

// TryNext returns the queue of the oldest event, if there is one. A program
// that receives from C calls it afterwards, until it returns false.
func (ch *CompChannel) TryNext() (*CQ, bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.events) == 0 {
		return nil, false
	}
	c := ch.events[0]
	ch.events = slices.Delete(ch.events, 0, 1)
	if len(ch.events) > 0 {
		ch.signal()
	}
	return c, true
}

// C returns a channel from which a value can be received when there may be an
// event, for select statements.
func (ch *CompChannel) C() <-chan struct{} { return ch.ready }

// Wait returns the queue of the oldest event, and waits until there is one. Like
// [CQ.Wait] it spins before it parks. The error is the context's, or matches
// ErrClosed.
func (ch *CompChannel) Wait(ctx context.Context) (*CQ, error) {
	for spin := ch.dev.newSpin(&ch.patience); spin.more(); {
		if c, ok := ch.TryNext(); ok {
			return c, nil
		}
		ch.dev.Progress()
	}
	since := ch.dev.clock.Now()
	for {
		ch.dev.park(ch.dev.everyShard())
		if c, ok := ch.TryNext(); ok {
			ch.patience.learn(ch.dev.clock.Now().Sub(since))
			return c, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		select {
		case <-ch.ready:
		case <-ctx.Done():
		case <-ch.gone:
			return nil, errorf(ErrClosed, "wait for completion channel: it is closed")
		}
	}
}

// Close frees the channel. Its queues stay, but raise no events any more.
func (ch *CompChannel) Close() error {
	ch.dev.disown(ch)
	ch.kill()
	return nil
}

func (ch *CompChannel) kill() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !ch.closed {
		ch.closed = true
		ch.events = nil
		close(ch.gone)
	}
}
