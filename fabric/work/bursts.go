package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// Bursts is a message every so often from one endpoint to another.
type Bursts struct {
	Src, Dst int32
	Bytes    int64 // of each
	Start    sim.Time
	Every    sim.Time // greater than 0
	Jitter   sim.Time // added to each start, uniform in [0, Jitter); at most Every
	// Count of them, or Until the last start; 0: not limited so. With neither,
	// they go on for ever and nobody waits for them.
	Count int64
	Until sim.Time
	As    Flow // other properties. With QP, one queue pair carries them all
}

// Validate implements [Workload].
func (w Bursts) Validate() error {
	c := checks{workload: "bursts"}
	c.endpoint("Src", w.Src)
	c.endpoint("Dst", w.Dst)
	if w.Src == w.Dst {
		c.fail("Dst", "%d is the source too", w.Dst)
	}
	c.number("Bytes", w.Bytes, 1, MaxBytes)
	c.time("Start", w.Start)
	c.time("Every", w.Every)
	if w.Every == 0 {
		c.fail("Every", "is missing")
	}
	c.time("Jitter", w.Jitter)
	if w.Jitter > w.Every {
		c.fail("Jitter", "%s is more than every %s", w.Jitter, w.Every)
	}
	c.number("Count", w.Count, 0, 1<<31-1)
	c.time("Until", w.Until)
	return c.err
}

// Stream implements [Workload].
func (w Bursts) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	n := w.Count
	if w.Until > 0 {
		fit := int64(0)
		if w.Until >= w.Start {
			fit = int64((w.Until-w.Start)/w.Every) + 1
		}
		if n == 0 || fit < n {
			n = fit
		}
	} else if n == 0 {
		n = int64((MaxTime-w.Start)/w.Every) + 1
		w.As.Endless = true
	}
	return &indexed{n: clampID(n), endless: w.As.Endless, at: func(i int32) Flow {
		return flow(&w.As, w.Src, w.Dst, w.Bytes, jittered(r, w.Start+w.Every*sim.Time(i), w.Jitter))
	}}, nil
}

// Long is one flow.
type Long struct {
	Src, Dst int32
	Bytes    int64 // 0: endless
	Start    sim.Time
	As       Flow // other properties
}

// Validate implements [Workload].
func (w Long) Validate() error {
	c := checks{workload: "long"}
	c.endpoint("Src", w.Src)
	c.endpoint("Dst", w.Dst)
	if w.Src == w.Dst {
		c.fail("Dst", "%d is the source too", w.Dst)
	}
	c.number("Bytes", w.Bytes, 0, MaxBytes)
	c.time("Start", w.Start)
	return c.err
}

// Stream implements [Workload].
func (w Long) Stream(*sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	f := flow(&w.As, w.Src, w.Dst, w.Bytes, w.Start)
	if f.Bytes == 0 {
		f.Endless = true
	}
	return &List{Flows: []Flow{f}}, nil
}

// Explicit is a list of flows in any order; After refers to places in it.
type Explicit struct {
	Flows []Flow
	Start sim.Time // added to those of flows without After
}

// Validate implements [Workload].
func (w Explicit) Validate() error {
	_, err := w.Stream(nil)
	return err
}

// Stream implements [Workload].
func (w Explicit) Stream(*sim.Rand) (Stream, error) {
	c := checks{workload: "flows"}
	c.time("Start", w.Start)
	c.flows(float64(len(w.Flows)))
	flows := make([]Flow, len(w.Flows))
	for i, f := range w.Flows {
		switch {
		case f.Src < 0 || f.Dst < 0:
			c.fail("", "flow %d goes from %d to %d, which are no endpoints", i, f.Src, f.Dst)
		case f.Src == f.Dst:
			c.fail("", "flow %d goes from endpoint %d to itself", i, f.Src)
		case f.Bytes < 0 || f.Bytes > MaxBytes:
			c.fail("", "flow %d has %d bytes: 0 to %d are possible", i, f.Bytes, int64(MaxBytes))
		case f.Bytes == 0 && !f.Endless:
			c.fail("", "flow %d has no bytes and is not endless", i)
		case f.Start < 0 || f.Start > MaxTime:
			c.fail("", "flow %d starts at %s: 0 to %s are possible", i, f.Start, MaxTime)
		}
		if len(f.After) == 0 {
			f.Start += w.Start
		}
		flows[i] = f
	}
	if c.err != nil {
		return nil, c.err
	}
	flows, err := Order(flows)
	if err != nil {
		return nil, &Invalid{Workload: "flows", What: err.Error()}
	}
	return &List{Flows: flows}, nil
}
