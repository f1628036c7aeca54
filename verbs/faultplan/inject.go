package faultplan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
)

// Injector is a plan at work on one device. All methods may be called from any
// goroutine.
type Injector struct {
	plan  *Plan
	seed  uint64
	clock clock.Real // begins with the plan

	calls   [NumCalls]bool // that some rule is about
	timed   bool
	packets bool

	qps atomic.Pointer[[]ib.QPN] // in the order in which they were made

	mu    sync.Mutex
	rules []*live
	links []*fault.Link
}

// live is a rule at work.
type live struct {
	*Rule
	index     int // in the plan
	packet    int // index among the packet rules; -1: about calls
	rng       *rand.PCG
	threshold uint64
	count     fault.RuleCount
}

// Attach begins to follow a plan on a device of a name and an address, which may
// be invalid. The time of the rules begins now.
func Attach(plan *Plan, name string, addr netip.Addr) (*Injector, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	in := &Injector{plan: plan, seed: plan.Seed, clock: clock.NewReal()}
	for in.seed == 0 {
		in.seed = rand.Uint64()
	}
	packets := 0
	for i := range plan.Rules {
		r := &plan.Rules[i]
		if !sameDevice(r.Device, name, addr) {
			continue
		}
		l := &live{Rule: r, index: i, packet: -1, rng: rand.NewPCG(in.seed, uint64(i)), threshold: uint64(float64(r.Probability * (1 << 32)))}
		in.rules = append(in.rules, l)
		switch {
		case !r.aboutCalls():
			l.packet = packets
			packets++
		case r.Call != 0:
			in.calls[r.Call] = true
		default:
			in.timed = true
		}
	}
	in.packets = packets > 0
	return in, nil
}

// Seed returns the seed in use.
func (in *Injector) Seed() uint64 { return in.seed }

// Wrap puts the plan's rules about packets around a link, which is returned as
// it is where there are none.
func (in *Injector) Wrap(l link.Link) (link.Link, error) {
	if !in.packets {
		return l, nil
	}
	var rules []fault.Rule
	for _, r := range in.rules {
		if r.packet < 0 {
			continue
		}
		p := r.Rule.packet()
		if n := r.QP; n != 0 {
			p.Local = func(q ib.QPN) bool { return in.isQP(n, q) }
		}
		rules = append(rules, p)
	}
	f, err := fault.New(l, fault.Config{Rules: rules, Seed: in.seed})
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.links = append(in.links, f)
	return f, nil
}

// Created notes a queue pair that the program has made.
func (in *Injector) Created(q ib.QPN) {
	in.mu.Lock()
	defer in.mu.Unlock()
	var list []ib.QPN
	if old := in.qps.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, q)
	in.qps.Store(&list)
}

// isQP reports whether q is the n-th queue pair.
func (in *Injector) isQP(n int, q ib.QPN) bool {
	list := in.qps.Load()
	return list != nil && n <= len(*list) && (*list)[n-1] == q
}

// Op is what a work request or completion does, for rules that choose by it.
type Op struct {
	Kind fault.Kind // of the packets that it makes
	Recv bool
}

// Hit is what is to happen to one call. The zero Hit is nothing.
type Hit struct {
	Err    error         // return this and do nothing else
	Status ib.WCStatus   // Poll: the completion says so
	Kill   bool          // move the queue pair to Error, after the call
	Delay  time.Duration // wait so long first
}

// Asks reports whether some rule is about a call: else it need not be asked.
func (in *Injector) Asks(c Call) bool { return in.calls[c] }

// Call counts a call, of a queue pair where it is about one, and says what is to
// happen to it.
func (in *Injector) Call(c Call, q ib.QPN, op Op) (h Hit) {
	if !in.calls[c] {
		return h
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	at := in.clock.Now().Sub(0)
	for _, r := range in.rules {
		if r.Call != c || r.packet >= 0 || !in.meets(r, q, op, at) || !r.fires() {
			continue
		}
		r.acted(at)
		switch r.Action {
		case Kill:
			h.Kill = true
		case Delay:
			h.Delay += r.Delay
		case Fail:
			if c == Poll {
				h.Status, h.Kill = r.Status, h.Kill || !r.KeepQP
			} else {
				h.Err = &CallError{Plan: in.plan.Name, Rule: r.index + 1, Name: r.Name, Call: c, Errno: r.Errno}
			}
			return h // the rules that follow do not see what has failed
		case Lose, Duplicate, Reorder, Corrupt, Mark, Partition, numActions: // about packets
		}
	}
	return h
}

func (in *Injector) meets(r *live, q ib.QPN, op Op, at time.Duration) bool {
	switch {
	case at < r.AfterTime, r.ForTime != 0 && at-r.AfterTime >= r.ForTime:
		return false
	case r.QP != 0 && !in.isQP(r.QP, q):
		return false
	case len(r.QPNs) != 0 && !slices.Contains(r.QPNs, q):
		return false
	case (r.Kinds != 0 || r.Recv) && r.Kinds&op.Kind == 0 && (!r.Recv || !op.Recv):
		return false
	}
	return true
}

// fires counts a call that the selectors choose.
func (r *live) fires() bool {
	r.count.Met++
	if r.count.Met <= r.AfterCount {
		return false
	}
	n := r.count.Met - r.AfterCount
	switch {
	case r.ForCount != 0 && n > r.ForCount,
		r.Count != 0 && r.count.Hits >= r.Count,
		r.Nth != 0 && n != r.Nth,
		r.Every != 0 && n%r.Every != 0,
		r.Probability != 0 && r.rng.Uint64()>>32 >= r.threshold:
		return false
	}
	return true
}

func (r *live) acted(at time.Duration) {
	if r.count.Hits == 0 {
		r.count.First = at
	}
	r.count.Last = at
	r.count.Hits++
}

// Timers returns when queue pairs are to be killed: after each time, Strike says
// which.
func (in *Injector) Timers() []Timer {
	if !in.timed {
		return nil
	}
	var list []Timer
	for _, r := range in.rules {
		if r.Action == Kill && r.Call == 0 {
			list = append(list, Timer{After: r.AfterTime, in: in, rule: r})
		}
	}
	return list
}

// Timer is a kill at an instant.
type Timer struct {
	After time.Duration // since Attach
	in    *Injector
	rule  *live
}

// Strike reports whether the kill is for a queue pair, and counts it.
func (t *Timer) Strike(q ib.QPN) bool {
	in := t.in
	in.mu.Lock()
	defer in.mu.Unlock()
	at := in.clock.Now().Sub(0)
	if !in.meets(t.rule, q, Op{}, at) {
		return false
	}
	t.rule.count.Met++
	t.rule.acted(at)
	return true
}

// CallError is what a call returns because the plan says so. It matches
// ErrInjected and the errno.
type CallError struct {
	Plan  string
	Rule  int // from 1
	Name  string
	Call  Call
	Errno syscall.Errno
}

func (e *CallError) Error() string {
	s := fmt.Sprintf("%v fails by rule %d", e.Call, e.Rule)
	if e.Name != "" {
		s += fmt.Sprintf(" (%s)", e.Name)
	}
	if e.Plan != "" {
		s += " of " + e.Plan
	} else {
		s += " of the fault plan"
	}
	return fmt.Sprintf("%s: %s: %v", s, errnoNames.name(e.Errno), e.Errno)
}

// Unwrap makes the error match.
func (e *CallError) Unwrap() []error { return []error{ErrInjected, e.Errno} }
