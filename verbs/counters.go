package verbs

import (
	"iter"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/rnic"
)

// CounterInfo says what a counter is, and what it is called elsewhere; the fields
// are in [rnic.CounterInfo].
type CounterInfo = rnic.CounterInfo

// Counters is a snapshot of the counters of a device or of a queue pair: a plain
// value of less than a kilobyte.
type Counters struct {
	adapter rnic.Counters
	link    link.Counters
	device  bool
}

// linkRows are the counters of what is beneath the adapter. It is never written.
var linkRows = []struct {
	CounterInfo
	get func(c link.Counters) uint64
}{
	{CounterInfo{Name: "link_rx_dropped", Unit: "packets", What: "link: the receive buffer was full (Linux counts merged packets as one)"}, func(c link.Counters) uint64 { return c.RxDropped }},
	{CounterInfo{Name: "link_rx_foreign", Unit: "packets", What: "link: not usable at all"}, func(c link.Counters) uint64 { return c.RxForeign }},
	{CounterInfo{Name: "link_tx_dropped", Unit: "packets", What: "link: the system's send queue was full for too long"}, func(c link.Counters) uint64 { return c.TxDropped }},
	{CounterInfo{Name: "link_tx_too_long", Unit: "packets", What: "link: longer than the route's MTU"}, func(c link.Counters) uint64 { return c.TxTooLong }},
	{CounterInfo{Name: "link_tx_refused", Unit: "packets", What: "link: no route, a firewall, or the interface is down"}, func(c link.Counters) uint64 { return c.TxRefused }},
	{CounterInfo{Name: "link_tx_no_port", Unit: "packets", What: "link: a source port that was not asked for"}, func(c link.Counters) uint64 { return c.TxNoPort }},
	{CounterInfo{Name: "link_tx_split", Unit: "runs", What: "link: sent packet by packet because the system would not cut them"}, func(c link.Counters) uint64 { return c.TxSplit }},
}

// All goes through the counters, always in the same order: by name, with what it
// is called elsewhere, its unit and its meaning.
func (c *Counters) All() iter.Seq2[CounterInfo, uint64] {
	return func(yield func(CounterInfo, uint64) bool) {
		for info, v := range c.adapter.All() {
			if !yield(info, v) {
				return
			}
		}
		for i := range linkRows {
			if c.device && !yield(linkRows[i].CounterInfo, linkRows[i].get(c.link)) {
				return
			}
		}
	}
}

// Get returns one counter, by its canonical name or by that of mlx5, rxe or
// [Stats]. ok is false where there is none of that name: queue pairs do not have
// all, and those of PFC exist on Ethernet devices only.
func (c *Counters) Get(name string) (v uint64, ok bool) {
	if v, ok := c.adapter.Get(name); ok {
		return v, true
	}
	for i := range linkRows {
		if c.device && linkRows[i].Name == name {
			return linkRows[i].get(c.link), true
		}
	}
	return 0, false
}

// Sub returns what has been counted since an earlier snapshot of the same device
// or queue pair. Gauges stay as they are.
func (c *Counters) Sub(before *Counters) Counters {
	d := *c
	d.adapter = c.adapter.Sub(&before.adapter)
	l, b := &d.link, &before.link
	l.RxDropped -= b.RxDropped
	l.RxForeign -= b.RxForeign
	l.RxSocket -= b.RxSocket
	l.RxMisdirected -= b.RxMisdirected
	l.TxDropped -= b.TxDropped
	l.TxTooLong -= b.TxTooLong
	l.TxRefused -= b.TxRefused
	l.TxNoPort -= b.TxNoPort
	l.TxSplit -= b.TxSplit
	l.SendCalls -= b.SendCalls
	l.RecvCalls -= b.RecvCalls
	l.WaitCalls -= b.WaitCalls
	return d
}

// CounterList returns what each counter is, in the order of [Counters.All].
func CounterList() []CounterInfo {
	list := rnic.CounterList()
	for i := range linkRows {
		list = append(list, linkRows[i].CounterInfo)
	}
	return list
}

// Counters takes a snapshot of the device's counters, all zeros after Close. It
// holds the device for the time of a copy, however many queue pairs there are,
// and does not allocate: reading a thousand times a second does not slow traffic
// down.
func (d *Device) Counters() Counters {
	c := Counters{device: true}
	for i, s := range d.shards {
		_ = s.drv.Do(func(clock.Time) {
			if i == 0 {
				s.adapter.ReadCounters(&c.adapter)
			} else {
				var more rnic.Counters
				s.adapter.ReadCounters(&more)
				c.adapter.Add(&more)
			}
			c.link.Add(s.link.Counters())
		})
	}
	return c
}

// Counters takes a snapshot of the queue pair's counters; those of a closed one
// are all zeros. They begin with the queue pair and go on through Reset.
func (q *QP) Counters() Counters {
	var c Counters
	_ = q.shard.drv.Do(func(clock.Time) {
		if !q.dead.Load() {
			q.shard.adapter.ReadQPCounters(q.qp, &c.adapter)
		}
	})
	return c
}
