package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// AllToAll is every endpoint sending to every other, each in the order of the
// list from its own place on, so that receivers are spread.
type AllToAll struct {
	Endpoints []int32
	Bytes     int64 // of each flow
	// Window is how many flows an endpoint has under way: the next one waits for
	// the one so many before it. 0: all at once.
	Window int
	// Rounds, 0: 1. A flow of a round waits for its like in the round before.
	Rounds int
	Start  sim.Time
	Gap    sim.Time // of flows that wait: from the end of the other one on
	Jitter sim.Time // added to each start, uniform in [0, Jitter)
	// Apart returns what partners must differ in, see [Permutation].
	Apart func(endpoint int32) int32
	As    Flow // other properties
}

// Validate implements [Workload].
func (w AllToAll) Validate() error {
	c := checks{workload: "all-to-all"}
	c.endpoints("Endpoints", w.Endpoints, 2)
	c.number("Bytes", w.Bytes, 1, MaxBytes)
	c.number("Window", int64(w.Window), 0, MaxRanks)
	c.number("Rounds", int64(w.Rounds), 0, MaxFlows)
	c.time("Start", w.Start)
	c.time("Gap", w.Gap)
	c.time("Jitter", w.Jitter)
	n := float64(len(w.Endpoints))
	c.flows(float64(max(1, w.Rounds)) * n * (n - 1))
	return c.err
}

// Stream implements [Workload].
func (w AllToAll) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	n := len(w.Endpoints)
	var flows []Flow
	sent := make([][]int32, n) // by source: its flows
	for range max(1, w.Rounds) {
		for d := 1; d < n; d++ {
			for i, src := range w.Endpoints {
				dst := w.Endpoints[(i+d)%n]
				if w.Apart == nil || w.Apart(src) != w.Apart(dst) {
					flows = append(flows, flow(&w.As, src, dst, w.Bytes, 0))
					sent[i] = append(sent[i], int32(len(flows)-1))
				}
			}
		}
	}
	for _, s := range sent {
		// Without a window, a round is one: the flow so many before is the
		// same pair's of the round before.
		window := len(s) / max(1, w.Rounds)
		if w.Window > 0 {
			window = min(w.Window, window)
		}
		for k, id := range s {
			f := &flows[id]
			f.Start = jittered(r, w.Start, w.Jitter)
			if k >= window {
				f.After = s[k-window : k-window+1 : k-window+1]
				f.Start = jittered(r, w.Gap, w.Jitter)
			}
		}
	}
	return ordered(flows)
}
