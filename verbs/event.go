package verbs

import (
	"context"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
)

// NextEvent returns the oldest asynchronous event, and waits until there is
// one. Up to 4,096 wait to be read; further ones are lost. The error is the
// context's, or matches ErrClosed.
func (d *Device) NextEvent(ctx context.Context) (ib.Event, error) {
	for {
		if ev, ok := d.tryEvent(); ok {
			return ev, nil
		}
		if err := ctx.Err(); err != nil {
			return ib.Event{}, err
		}
		d.park(d.everyShard())
		select {
		case <-d.eventReady:
		case <-ctx.Done():
		case <-d.gone:
			return ib.Event{}, errorf(ErrClosed, "wait for an event of device %s: it is closed", d.name)
		}
	}
}

// tryEvent takes the oldest event, if there is one.
func (d *Device) tryEvent() (ev ib.Event, ok bool) {
	d.eventMu.Lock()
	if len(d.linkEvents) > 0 {
		ev, ok = d.linkEvents[0], true
		d.linkEvents = d.linkEvents[1:]
	}
	d.eventMu.Unlock()
	for i := 0; i < len(d.shards) && !ok; i++ {
		_ = d.shards[i].drv.Do(func(clock.Time) { ev, ok = d.shards[i].adapter.Event() })
	}
	if ok {
		d.signalEvent() // there may be more
	}
	return ev, ok
}

// onEvent is told of each event of the adapter. Driver's lock held.
func (d *Device) onEvent(ev ib.Event) (taken bool) {
	if ev.Type == ib.EventCommEst && d.firsts.take(ib.QPN(ev.Element)) {
		return true
	}
	d.signalEvent()
	return false
}

// signalEvent wakes one NextEvent. It is called under the driver's lock too.
func (d *Device) signalEvent() {
	select {
	case d.eventReady <- struct{}{}:
	default:
	}
}

// maxLinkEvents bounds what waits to be read.
const maxLinkEvents = 1024

// onLink turns what the link found out into an event of the port. Driver's
// lock held.
func (d *Device) onLink(e link.Event) {
	switch e.Kind {
	case link.EventRouteMTU:
		d.pushEvent(ib.Event{Type: ib.EventPathMTU, Element: 1, Detail: e.String()})
	case link.EventNoNeighbour:
		d.pushEvent(ib.Event{Type: ib.EventNoNeighbour, Element: 1, Detail: e.String()})
	case link.EventNoSegmentation, link.EventRefused: // the link's counters tell
	}
}

// onBroken reports that the link is no more. Driver's lock held.
func (d *Device) onBroken(err error) {
	d.pushEvent(ib.Event{Type: ib.EventDeviceFatal, Element: 1, Detail: err.Error()})
}

func (d *Device) pushEvent(ev ib.Event) {
	d.eventMu.Lock()
	if len(d.linkEvents) < maxLinkEvents {
		d.linkEvents = append(d.linkEvents, ev)
	}
	d.eventMu.Unlock()
	d.signalEvent()
}
