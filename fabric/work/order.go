package work

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// MaxFlows is how many flows are held in memory at most: some 600 MB. More can
// only be streamed.
const MaxFlows = 1 << 22

// Collect takes all flows of a stream, at most so many.
func Collect(s Stream, most int) ([]Flow, error) {
	var flows []Flow
	for {
		f, ok := s.Next()
		if !ok {
			return flows, s.Err()
		}
		if len(flows) == most {
			return nil, fmt.Errorf("more than %d flows", most)
		}
		f.ID = int32(len(flows))
		flows = append(flows, f)
	}
}

// Order sorts flows, given in any order, into that of a Stream: by start, and
// none before those that it waits for. After refers to places in the list given;
// the result's refers to places in the result. Flows that wait for each other
// in a circle are an error.
func Order(flows []Flow) ([]Flow, error) {
	waits := make([]int32, len(flows))
	next := make([][]int32, len(flows))
	due := make([]sim.Time, len(flows))
	var ready timeline
	for i := range flows {
		f := &flows[i]
		for _, a := range f.After {
			if a < 0 || int(a) >= len(flows) {
				return nil, fmt.Errorf("flow %d waits for flow %d, which does not exist", i, a)
			}
			if flows[a].never() {
				return nil, fmt.Errorf("flow %d waits for flow %d, which is endless", i, a)
			}
			next[a] = append(next[a], int32(i))
		}
		if waits[i] = int32(len(f.After)); waits[i] == 0 {
			due[i] = f.Start
			ready.push(due[i], int32(i))
		}
	}
	place := make([]int32, len(flows))
	out := make([]Flow, 0, len(flows))
	for {
		i, ok := ready.pop()
		if !ok {
			break
		}
		f := flows[i]
		if len(f.After) > 0 {
			after := make([]int32, len(f.After))
			for k, a := range f.After {
				after[k] = place[a]
			}
			f.After = after
		}
		place[i] = int32(len(out))
		f.ID = place[i]
		out = append(out, f)
		for _, n := range next[i] {
			due[n] = max(due[n], due[i])
			if waits[n]--; waits[n] == 0 {
				ready.push(due[n], n)
			}
		}
	}
	if len(out) < len(flows) {
		for i := range flows {
			if waits[i] > 0 {
				return nil, fmt.Errorf("flow %d waits for itself, over flow %d", i, stuck(flows, waits, i))
			}
		}
	}
	return out, nil
}

// never reports whether a flow will not finish.
func (f *Flow) never() bool { return f.Endless && f.Bytes == 0 }

// stuck returns a flow that i waits for in vain.
func stuck(flows []Flow, waits []int32, i int) int32 {
	for _, a := range flows[i].After {
		if waits[a] > 0 {
			return a
		}
	}
	return int32(i)
}

// Then returns first, and then the flows of second, each of which waits for all
// of first that can finish; its Start is a delay after that. Both are in
// order and count their IDs from 0.
func Then(first, second []Flow) []Flow {
	out := append(make([]Flow, 0, len(first)+len(second)), first...)
	var all []int32
	for i := range first {
		if !first[i].never() {
			all = append(all, int32(i))
		}
	}
	n := int32(len(first))
	for _, f := range second {
		if len(f.After) == 0 {
			f.After = all
		} else {
			after := make([]int32, len(f.After))
			for k, a := range f.After {
				after[k] = a + n
			}
			f.After = after
		}
		f.ID += n
		out = append(out, f)
	}
	return out
}
