package explain

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Verdict is the story in one line.
type Verdict struct {
	Name        string // of the scenario
	End         sim.Time
	Why         string // the run ended
	Interrupted bool
	Flows       int
	Finished    int
	Running     int
	Failed      int
	Waiting     int
	// Silent says why unfinished flows were silent at the end, by how many.
	Silent []Silence
	Last   sim.Time // the last flow finished; 0: none did

	Worst     float64 // largest slowdown over Base of a finished flow; 0: none
	WorstFlow FlowRef
	Median    float64
	Lossless  Proof
	Main      Main
	At        Place // where
	// Crowd is what met at At if Main is MainContention.
	Crowd Root
}

// Silence is a reason that flows were silent for at the end, and their number.
type Silence struct {
	Why   string
	Flows int
}

// Main is the main cause of what went wrong, in order of precedence: what comes
// first makes what comes later, or hides it.
type Main uint8

// The causes.
const (
	AllWell        Main = iota
	BrokenRule          // the simulator's own invariants: believe nothing
	MainDeadlock        // a cycle of stops
	MainStorm           // an endless stop
	MainMisfit          // RDMA in a class without PFC
	MainDeaf            // PFC is off on one hop
	MainUnroutable      // MTU, RoCEv1, TTL, no route
	MainOverflow        // headroom too small
	MainLoss            // link errors, links down, watchdog
	MainLinkDown        // ... without loss
	MainReceiver        // a host that takes too little
	MainFalseMarks      // Kmin below the largest benign burst
	MainSpread          // congestion that slows flows elsewhere
	MainHeld            // marks that cost more than they should
	MainPause           // PFC at a root, no victims elsewhere
	MainECMP            // collisions of flows on links
	MainSender          // engine or packet rate of a NIC
	MainUnfair          // equal flows, unequal shares
	MainContention      // flows share a link, as they must
	Unexplained
)

func (s *Story) verdict(n *net, f *fluid) Verdict {
	v := Verdict{
		Name: clean(n.r.Name), End: n.r.End, Why: clean(n.r.Why), Interrupted: n.r.Interrupted, Flows: len(n.flows), Lossless: s.Lossless.Verdict,
	}
	var slow []float64
	worst := none
	starved := false // an unfinished flow far below its share
	for i := range n.flows {
		d := &n.flows[i]
		switch d.f.State {
		case result.Finished:
			v.Finished++
			v.Last = max(v.Last, d.end)
			if x := d.f.Slowdown(); x > 0 {
				slow = append(slow, x)
				if worst == none || x > v.Worst {
					worst, v.Worst = int32(i), x
				}
			}
			continue
		case result.Failed:
			v.Failed++
		case result.Waiting:
			v.Waiting++
		case result.Running:
			v.Running++
			v.silent(clean(d.f.Silent))
			starved = starved || n.isSlow(f, int32(i))
		}
	}
	slices.SortStableFunc(v.Silent, func(a, b Silence) int { return b.Flows - a.Flows })
	if worst != none {
		v.WorstFlow = n.ref(worst)
		slices.Sort(slow)
		v.Median = slow[(len(slow)-1)/2]
	}
	s.main(&v, n, v.Worst >= slowSlowdown || v.Failed > 0 || starved)
	return v
}

// isSlow reports whether an unfinished flow is far below its share, or has a
// share far below what it could send.
func (n *net) isSlow(f *fluid, i int32) bool {
	d := &n.flows[i]
	if len(d.path) == 0 {
		return false
	}
	line := min(n.port(d.path[0]).Rate, n.qpLimit(d))
	return f.excess(i) >= slowSlowdown || float64(line) >= slowSlowdown*float64(sim.RateOf(d.sent, d.life()))
}

func (v *Verdict) silent(why string) {
	why, _, _ = strings.Cut(why, " until ") // instants differ
	if why == "" {
		return
	}
	for i := range v.Silent {
		if v.Silent[i].Why == why {
			v.Silent[i].Flows++
			return
		}
	}
	v.Silent = append(v.Silent, Silence{why, 1})
}

// main picks the main cause. Faults come first whether or not a flow was slow;
// what merely costs time only if one was.
func (s *Story) main(v *Verdict, n *net, slow bool) {
	v.At = Place{-1, -1, ""}
	if s.fault(v) {
		return
	}
	if !slow {
		v.Main = AllWell
		return
	}
	s.cost(v, n)
}

func (s *Story) fault(v *Verdict) bool {
	switch {
	case len(s.Breaches) > 0:
		v.Main = BrokenRule
	case len(s.Deadlocks) > 0:
		v.Main, v.At = MainDeadlock, s.Deadlocks[0].Cycle[0]
	case s.stormRoot() != nil:
		v.Main, v.At = MainStorm, s.stormRoot().By
	case s.Loss != nil && s.lossFault(v):
	case s.stormTree() != nil:
		v.Main, v.At = MainStorm, s.stormTree().Root
	default:
		return false
	}
	return true
}

// stormRoot returns the storm that a host made, else the first; nil if none.
func (s *Story) stormRoot() *Storm {
	for i := range s.Storms {
		if s.Storms[i].Host {
			return &s.Storms[i]
		}
	}
	if len(s.Storms) > 0 {
		return &s.Storms[0]
	}
	return nil
}

// stormTree returns the tree of a storm that is most of all stopped time; nil if
// there is none.
func (s *Story) stormTree() *Tree {
	if len(s.Trees) > 0 && s.Trees[0].Cause.Kind == StormHost {
		return &s.Trees[0]
	}
	return nil
}

func (s *Story) lossFault(v *Verdict) bool {
	l := s.Loss
	deaf := slices.IndexFunc(l.Deaf, func(d Deaf) bool { return d.Drops > 0 })
	never := slices.IndexFunc(l.Places, func(p LossPlace) bool {
		return p.Reason == result.DropV1 || p.Reason == result.DropMTU || p.Reason == result.DropNoRoute || p.Reason == result.DropTTL
	})
	other := slices.IndexFunc(l.Places, func(p LossPlace) bool { return p.Count > p.TCP })
	switch {
	case len(l.Misfits) > 0:
		v.Main, v.At = MainMisfit, l.Misfits[0].At
	case deaf >= 0:
		v.Main, v.At = MainDeaf, l.Deaf[deaf].Peer
	case len(l.Mute) > 0:
		v.Main, v.At = MainDeaf, l.Mute[0].At
	case never >= 0 && l.Places[never].Reason == result.DropNoRoute && len(s.Outages) > 0:
		v.Main, v.At = MainLinkDown, s.Outages[0].Port
	case never >= 0:
		v.Main, v.At = MainUnroutable, l.Places[never].At
	case s.Lossless.Verdict == Violated:
		v.Main = MainOverflow
		if t := s.Lossless.Tightest; t != nil {
			v.At = t.At
		}
	case other >= 0 && l.costs() && l.Places[other].Reason == result.DropDown && len(s.Outages) > 0:
		v.Main, v.At = MainLinkDown, s.Outages[0].Port
	case other >= 0 && l.costs():
		v.Main, v.At = MainLoss, l.Places[other].At
	case l.Cut > 0 && l.costs():
		v.Main = MainLoss
	default:
		return false
	}
	return true
}

func (s *Story) cost(v *Verdict, n *net) {
	var top *Tree
	if len(s.Trees) > 0 {
		top = &s.Trees[0]
		v.At = top.Root
	}
	slowest := func(k func(LimitKind) bool) int {
		return slices.IndexFunc(s.Hosts, func(l Limit) bool { return k(l.Kind) })
	}
	receiver := slowest(func(k LimitKind) bool { return k == OneRxQueue || k == RxQueues || k == Drain })
	sender := slowest(func(k LimitKind) bool { return k == QPEngine || k == PacketRate })
	tier := s.costlyTier()
	switch {
	case top != nil && top.Cause.Kind == LinkDown:
		v.Main = MainLinkDown
	case top != nil && top.Cause.Kind == SlowReceiver:
		v.Main = MainReceiver
	case receiver >= 0:
		v.Main, v.At = MainReceiver, s.Hosts[receiver].Host
	case s.falseMarks() != nil:
		v.Main, v.At = MainFalseMarks, s.falseMarks().At.Port
	case s.Spreading.Count > 0:
		v.Main, v.At = MainSpread, s.Spreading.Victims[0].Root
	case s.Rates != nil && s.Rates.HeldCount > 0 && (tier < 0 || s.Rates.HeldCount >= s.Tiers[tier].Crowded):
		v.Main, v.At = MainHeld, s.Rates.Held[0].At.Port
	case sender >= 0:
		v.Main, v.At = MainSender, s.Hosts[sender].Host
	case top != nil:
		v.Main = MainPause
	case tier >= 0:
		v.Main, v.At = MainECMP, s.Tiers[tier].SlowestAt
		if s.Tiers[tier].Polarised {
			v.At = s.Tiers[tier].Narrow
		}
	case len(s.Fairness.Groups) > 0:
		v.Main, v.At = MainUnfair, s.Fairness.Groups[0].At
	default:
		v.Main = Unexplained
		if e := n.tightest(); e != none {
			v.Main, v.At = MainContention, n.place(e)
			v.Crowd = n.load(e, n.flows[n.through(e)[0]].f.Prio, 0, n.r.End)
		}
	}
}

// costlyTier returns the tier at which ECMP costs something: a polarised one
// before others, since it is why they are crowded; -1 if there is none.
func (s *Story) costlyTier() int {
	i := slices.IndexFunc(s.Tiers, func(t Tier) bool { return t.Costs() })
	if i < 0 {
		return -1
	}
	if p := slices.IndexFunc(s.Tiers, func(t Tier) bool { return t.Polarised }); p >= 0 {
		return p
	}
	return i
}

// falseMarks returns the worst flow that benign bursts above Kmin hold.
func (s *Story) falseMarks() *Held {
	if s.Rates == nil {
		return nil
	}
	for i := range s.Rates.Held {
		if b := s.Rates.Held[i].Burst; b != nil && b.Benign && b.Above {
			return &s.Rates.Held[i]
		}
	}
	return nil
}

// tightest returns the egress that needs longest for all its flows, of those
// that two or more share.
func (n *net) tightest() int32 {
	best := none
	demand := n.demand()
	for e := range demand {
		if len(n.through(int32(e))) > 1 && demand[e] > 0 && (best == none || demand[e] > demand[best]) {
			best = int32(e)
		}
	}
	return best
}
