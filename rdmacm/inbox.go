package rdmacm

import "context"

// inbox keeps the events of a connection or group until its program takes them.
// The manager's lock guards it.
type inbox struct {
	events []Event
	ready  chan struct{} // capacity 1: full while there are events
}

func newInbox() inbox { return inbox{ready: make(chan struct{}, 1)} }

// push queues an event. Lock held.
func (b *inbox) push(e Event) {
	b.events = append(b.events, e)
	b.signal()
}

// signal wakes one who waits.
func (b *inbox) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// next returns the oldest event, and waits until there is one; nil if there is
// none and over says, under the lock, that no more will come.
func (b *inbox) next(ctx context.Context, m *Manager, over func() bool) (Event, error) {
	for {
		m.mu.Lock()
		if len(b.events) > 0 {
			e := b.events[0]
			b.events = b.events[1:]
			m.mu.Unlock()
			return e, nil
		}
		end := over()
		m.mu.Unlock()
		if end {
			b.signal() // for others who wait
			return nil, nil
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
