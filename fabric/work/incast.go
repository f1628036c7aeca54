package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// Incast is many senders to one receiver.
type Incast struct {
	Senders  []int32
	Receiver int32
	Bytes    int64 // from each
	Start    sim.Time
	Every    sim.Time // between the starts of one sender and the next
	Jitter   sim.Time // added to each start, uniform in [0, Jitter)
	As       Flow     // other properties
}

// Validate implements [Workload].
func (w Incast) Validate() error {
	c := checks{workload: "incast"}
	c.endpoints("Senders", w.Senders, 1)
	c.endpoint("Receiver", w.Receiver)
	for _, s := range w.Senders {
		if s == w.Receiver {
			c.fail("Receiver", "%d is a sender too", s)
		}
	}
	c.number("Bytes", w.Bytes, 1, MaxBytes)
	c.time("Start", w.Start)
	c.time("Every", w.Every)
	c.time("Jitter", w.Jitter)
	if c.err == nil && w.Every > MaxTime/sim.Time(len(w.Senders)) {
		c.fail("Every", "%s times %d senders is over the limit of %s", w.Every, len(w.Senders), MaxTime)
	}
	return c.err
}

// Stream implements [Workload].
func (w Incast) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	flows := make([]Flow, len(w.Senders))
	for i, s := range w.Senders {
		flows[i] = flow(&w.As, s, w.Receiver, w.Bytes, jittered(r, w.Start+w.Every*sim.Time(i), w.Jitter))
	}
	return ordered(flows)
}
