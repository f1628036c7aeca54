package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// AllReduceRing is the ring all-reduce: N ranks, 2(N-1) steps. A rank's buffer
// is cut into N segments; in the first N-1 steps (reduce-scatter) rank r sends
// segment r-s to rank r+1, in the others (all-gather) segment r+1-s. A step
// waits for what the rank before has sent in the step before. Each rank sends
// 2(N-1)/N of its buffer, over one queue pair.
type AllReduceRing struct {
	Ranks  []int32 // endpoints in the order of the ring
	Bytes  int64   // of a rank's buffer
	Chunks int     // into which a segment is cut, each with its own chain; 0: 1
	Rounds int     // one all-reduce behind the other; 0: 1
	Start  sim.Time
	Gap    sim.Time // of a rank between two rounds
	Jitter sim.Time // added to the start of each rank, uniform in [0, Jitter)
	As     Flow     // other properties; QP is not used
}

// Validate implements [Workload].
func (w AllReduceRing) Validate() error {
	c := checks{workload: "all-reduce-ring"}
	n := len(w.Ranks)
	checkAllReduce(&c, w.Ranks, w.Bytes, w.Chunks, w.Rounds, int64(n)*int64(max(1, w.Chunks)), w.Start, w.Gap, w.Jitter)
	c.flows(2 * float64(n-1) * float64(n) * float64(max(1, w.Chunks)) * float64(max(1, w.Rounds)))
	return c.err
}

func checkAllReduce(c *checks, ranks []int32, bytes int64, chunks, rounds int, least int64, start, gap, jitter sim.Time) {
	c.endpoints("Ranks", ranks, 2)
	c.number("Chunks", int64(chunks), 0, 1<<16)
	c.number("Rounds", int64(rounds), 0, MaxFlows)
	c.number("Bytes", bytes, least, MaxBytes)
	c.time("Start", start)
	c.time("Gap", gap)
	c.time("Jitter", jitter)
}

// part returns the length of part i of n of a length.
func part(bytes, n, i int64) int64 {
	if i < bytes%n {
		return bytes/n + 1
	}
	return bytes / n
}

// Stream implements [Workload]. Flow ((round·2(N-1)+step)·Chunks+chunk)·N+rank.
func (w AllReduceRing) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	n, chunks := int32(len(w.Ranks)), int32(max(1, w.Chunks))
	steps, rounds := 2*(n-1), int32(max(1, w.Rounds))
	first := starts(r, len(w.Ranks), w.Start, w.Jitter)
	return first.stream(rounds*steps*chunks*n, w.As.Endless, func(i int32) Flow {
		rank, chunk, step := i%n, i/n%chunks, i/n/chunks%steps
		segment := rank - step // of the reduce-scatter
		if step >= n-1 {
			segment = rank + 1 - (step - (n - 1))
		}
		segment = (segment%n + n) % n
		bytes := part(part(w.Bytes, int64(n), int64(segment)), int64(chunks), int64(chunk))
		f := flow(&w.As, w.Ranks[rank], w.Ranks[(rank+1)%n], bytes, first.at(rank))
		f.QP = rank + 1
		round := i / n / chunks / steps
		from := (rank + n - 1) % n
		switch {
		case step > 0:
			f.Start = 0
			f.After = []int32{((round*steps+step-1)*chunks+chunk)*n + from}
		case round > 0: // the rank has everything
			f.Start = w.Gap
			f.After = []int32{(round*steps*chunks-1)*n + from}
		}
		return f
	})
}

// AllReduceTree is an all-reduce over one binary tree: rank i has the children
// 2i+1 and 2i+2, sends to its parent when both have sent to it, and the sum goes
// down the same way.
type AllReduceTree struct {
	Ranks  []int32 // endpoints, the root first
	Bytes  int64   // of a rank's buffer
	Chunks int     // into which it is cut, each with its own chain; 0: 1
	Rounds int     // one all-reduce behind the other; 0: 1
	Start  sim.Time
	Gap    sim.Time // of a rank between two rounds
	Jitter sim.Time // added to the start of each rank, uniform in [0, Jitter)
	As     Flow     // other properties; QP is not used
}

// Validate implements [Workload].
func (w AllReduceTree) Validate() error {
	c := checks{workload: "all-reduce-tree"}
	checkAllReduce(&c, w.Ranks, w.Bytes, w.Chunks, w.Rounds, int64(max(1, w.Chunks)), w.Start, w.Gap, w.Jitter)
	c.flows(2 * float64(len(w.Ranks)-1) * float64(max(1, w.Chunks)) * float64(max(1, w.Rounds)))
	return c.err
}

// Stream implements [Workload]. In a chunk come the flows upwards from the last
// rank to the first, then those downwards from the first to the last.
func (w AllReduceTree) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	n, chunks := int32(len(w.Ranks)), int32(max(1, w.Chunks))
	per, rounds := 2*(n-1), int32(max(1, w.Rounds))
	first := starts(r, len(w.Ranks), w.Start, w.Jitter)
	return first.stream(rounds*chunks*per, w.As.Endless, func(i int32) Flow {
		base := i / per * per // of the chunk
		up := func(rank int32) int32 { return base + n - 1 - rank }
		down := func(rank int32) int32 { return base + n - 2 + rank }
		// children appends the flows from a rank's children.
		children := func(rank int32) (ids []int32) {
			for c := 2*rank + 1; c <= 2*rank+2 && c < n; c++ {
				ids = append(ids, up(c))
			}
			return ids
		}
		bytes := part(w.Bytes, int64(chunks), int64(i/per%chunks))
		if k := i - base; k >= n-1 {
			rank := k - (n - 1) + 1
			parent := (rank - 1) / 2
			f := flow(&w.As, w.Ranks[parent], w.Ranks[rank], bytes, 0)
			f.QP = 2 * rank
			f.After = []int32{down(parent)}
			if parent == 0 {
				f.After = children(0)
			}
			return f
		}
		rank := n - 1 - (i - base)
		f := flow(&w.As, w.Ranks[rank], w.Ranks[(rank-1)/2], bytes, first.at(rank))
		f.QP = 2*rank - 1
		if f.After = children(rank); f.After != nil {
			f.Start = 0
		} else if round := i / per / chunks; round > 0 { // behind the last chunk that it received
			f.Start = w.Gap
			f.After = []int32{round*chunks*per - per + n - 2 + rank}
		}
		return f
	})
}

// rankStarts are the starts of ranks.
type rankStarts struct {
	start  sim.Time
	jitter []sim.Time // nil: none
}

func starts(r *sim.Rand, n int, start, jitter sim.Time) rankStarts {
	s := rankStarts{start: start}
	if jitter > 0 {
		s.jitter = make([]sim.Time, n)
		for i := range s.jitter {
			s.jitter[i] = jittered(r, 0, jitter)
		}
	}
	return s
}

func (s rankStarts) at(rank int32) sim.Time {
	if s.jitter == nil {
		return s.start
	}
	return s.start + s.jitter[rank]
}

// stream returns n flows by number, in order of their starts.
func (s rankStarts) stream(n int32, endless bool, at func(i int32) Flow) (Stream, error) {
	if s.jitter == nil {
		return &indexed{n: n, endless: endless, chain: true, at: at}, nil
	}
	flows := make([]Flow, n)
	for i := range n {
		flows[i] = at(i)
	}
	return ordered(flows)
}
