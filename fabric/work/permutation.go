package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// Permutation is rounds in each of which every endpoint sends to one other and
// receives from one, drawn at random.
type Permutation struct {
	Endpoints []int32
	Bytes     int64
	Rounds    int // 0: 1
	Start     sim.Time
	Every     sim.Time // between rounds; 0: all at Start
	Jitter    sim.Time // added to each start, uniform in [0, Jitter)
	// Apart returns what partners must differ in: the leaf, for cross-leaf
	// traffic, or the host, where hosts have several NICs. nil: the endpoint.
	Apart func(endpoint int32) int32
	As    Flow // other properties
}

// Validate implements [Workload].
func (w Permutation) Validate() error {
	c := checks{workload: "permutation"}
	c.endpoints("Endpoints", w.Endpoints, 2)
	c.number("Bytes", w.Bytes, 1, MaxBytes)
	c.number("Rounds", int64(w.Rounds), 0, MaxFlows)
	c.time("Start", w.Start)
	c.time("Every", w.Every)
	c.time("Jitter", w.Jitter)
	c.flows(float64(max(1, w.Rounds)) * float64(len(w.Endpoints)))
	if c.err == nil && w.Every > MaxTime/sim.Time(max(1, w.Rounds)) {
		c.fail("Every", "%s times %d rounds is over the limit of %s", w.Every, w.Rounds, MaxTime)
	}
	if c.err == nil && w.Apart != nil {
		together := make(map[int32]int)
		for _, e := range w.Endpoints {
			together[w.Apart(e)]++
		}
		for _, e := range w.Endpoints { // in their order, for the message
			if n := together[w.Apart(e)]; 2*n > len(w.Endpoints) {
				c.fail("Endpoints", "are impossible to pair: %d of %d stand together with endpoint %d, more than half", n, len(w.Endpoints), e)
				break
			}
		}
	}
	return c.err
}

// Stream implements [Workload].
func (w Permutation) Stream(r *sim.Rand) (Stream, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	rounds, n := max(1, w.Rounds), len(w.Endpoints)
	flows := make([]Flow, 0, rounds*n)
	group := make([]int32, n)
	for i, e := range w.Endpoints {
		group[i] = e
		if w.Apart != nil {
			group[i] = w.Apart(e)
		}
	}
	to := make([]int32, n)
	for round := range rounds {
		derange(r, to, group)
		for i, e := range w.Endpoints {
			start := jittered(r, w.Start+w.Every*sim.Time(round), w.Jitter)
			flows = append(flows, flow(&w.As, e, w.Endpoints[to[i]], w.Bytes, start))
		}
	}
	return ordered(flows)
}

// derange fills to with a random permutation that maps nothing into its own
// group. No group has more than half of all, so whenever i's partner is in i's
// group A, some j outside A has a partner outside A: of n, at most |A| are in A,
// |A| have their partner there, and i is counted twice. Swapping partners mends
// i and breaks nothing.
func derange(r *sim.Rand, to, group []int32) {
	for i := range to {
		to[i] = int32(i)
	}
	r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	for i := range to {
		if group[to[i]] != group[i] {
			continue
		}
		a := group[i]
		j := int(r.N(uint64(len(to))))
		for group[j] == a || group[to[j]] == a {
			if j++; j == len(to) {
				j = 0
			}
		}
		to[i], to[j] = to[j], to[i]
	}
}
