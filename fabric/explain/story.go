package explain

import (
	"github.com/verbena-rdma/verbena/fabric/result"
)

// ruleLossless is the invariant of which a breach is a finding about the
// network that was simulated. Any other breach means that the simulator is wrong.
const ruleLossless = "no drop in a lossless class"

// Story is why a run went as it did: findings with their numbers, from which
// Sections and Text make sentences. It borrows nothing from the run.
type Story struct {
	Verdict   Verdict
	Trees     []Tree // the one with most stopped time first; all of them
	PausesCut uint64 // not recorded: the trees are of the part before
	Spreading Spreading
	Deadlocks []Locked
	Storms    []Storm
	// Turns are nodes at which flows in a lossless class go up again after they
	// have come down: what deadlocks are made of, whether there was one or not.
	Turns    []Turn
	Rates    *Rates // nil: DCQCN is off
	Fairness Fairness
	Tiers    []Tier  // uplinks from the lowest tier on, then parallel links down
	Hosts    []Limit // the one that did most harm first
	Loss     *Loss   // nil: nothing was lost
	Lossless Losslessness
	Outages  []Outage // links that went down, in order of time
	Readings []Reading
	Advice   []Advice // what to change first; at most maxAdvice
	Breaches []string // rules of the simulator that did not hold
	Warnings []string // of the scenario
}

// Explain looks through a run. It believes nothing that it reads and never
// panics; what a run does not contain is left out. It takes time in proportion
// to flows, pauses and drops, and a bounded time for the max-min shares.
func Explain(r *result.Run) *Story {
	if r == nil {
		r = &result.Run{}
	}
	n := index(r)
	f := newFluid(n, fluidWork)
	st := readStops(n)
	s := &Story{PausesCut: r.PausesCut}
	s.Trees = st.trees()
	s.Spreading = st.victims(f)
	s.Deadlocks = st.deadlocks(s.Trees)
	s.Storms = st.storms()
	s.Turns = n.allTurns()
	s.Rates = st.rates(f, s.Trees)
	s.Fairness = st.fairness()
	s.Tiers = n.ecmp(f)
	s.Hosts = st.hostLimits(f)
	s.Loss = st.loss()
	s.Lossless = n.lossless()
	s.Outages = n.outages()
	for _, b := range r.Breaches {
		if b.Rule == ruleLossless {
			continue // a fault of the network, not of the simulator: see Loss
		}
		s.Breaches = append(s.Breaches, when(b.At)+": "+clean(b.Rule)+": "+clean(b.Detail))
	}
	for _, w := range r.Warnings {
		s.Warnings = append(s.Warnings, clean(w))
	}
	s.Verdict = s.verdict(n, f)
	s.Readings = s.readings(n)
	s.Advice = s.advice(n)
	return s
}
