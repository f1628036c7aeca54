package faultplan

import (
	"fmt"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/link/fault"
)

// Report is what a plan has done to a device so far.
type Report struct {
	Plan  string       `json:"plan"`
	Seed  uint64       `json:"seed"`
	Rules []RuleReport `json:"rules"`
}

// RuleReport is what one rule has done.
type RuleReport struct {
	Rule   int    `json:"rule"` // its number in the plan, from 1
	Name   string `json:"name,omitempty"`
	Inject string `json:"inject"`
	Call   string `json:"call,omitempty"`
	Met    uint64 `json:"met"`  // packets or calls that its selectors chose
	Hits   uint64 `json:"hits"` // … on which it acted
	// First and Last are when it acted first and last, since the device was
	// opened; without Hits they mean nothing.
	First time.Duration `json:"first_ns"`
	Last  time.Duration `json:"last_ns"`
}

// Report returns what was done so far: one entry for each rule that is for this
// device, in the order of the plan.
func (in *Injector) Report() Report {
	in.mu.Lock()
	defer in.mu.Unlock()
	rep := Report{Plan: in.plan.Name, Seed: in.seed}
	var counts []fault.RuleCount
	for _, l := range in.links {
		for i, c := range l.Rules() {
			if i == len(counts) {
				counts = append(counts, c)
				continue
			}
			add(&counts[i], c)
		}
	}
	for _, r := range in.rules {
		c := r.count
		if r.packet >= 0 && r.packet < len(counts) {
			c = counts[r.packet]
		}
		x := RuleReport{Rule: r.index + 1, Name: r.Name, Inject: r.Action.String(), Met: c.Met, Hits: c.Hits, First: c.First, Last: c.Last}
		if r.Call != 0 {
			x.Call = r.Call.String()
		}
		rep.Rules = append(rep.Rules, x)
	}
	return rep
}

// add joins what a rule did on two links.
func add(c *fault.RuleCount, o fault.RuleCount) {
	if o.Hits > 0 {
		if c.Hits == 0 || o.First < c.First {
			c.First = o.First
		}
		c.Last = max(c.Last, o.Last)
	}
	c.Met += o.Met
	c.Hits += o.Hits
}

// Hits returns how often the rule of a name acted.
func (r *Report) Hits(name string) (n uint64) {
	for i := range r.Rules {
		if r.Rules[i].Name == name {
			n += r.Rules[i].Hits
		}
	}
	return n
}

// String returns the report as text: a line for each rule.
func (r *Report) String() string {
	var w strings.Builder
	plan := r.Plan
	if plan == "" {
		plan = "fault plan"
	}
	fmt.Fprintf(&w, "%s: seed %d\n", plan, r.Seed)
	for _, x := range r.Rules {
		what := x.Inject
		if x.Call != "" {
			what += " " + x.Call
		}
		if x.Name != "" {
			what += " (" + x.Name + ")"
		}
		fmt.Fprintf(&w, "  rule %d: %s: %d of %d", x.Rule, what, x.Hits, x.Met)
		switch {
		case x.Hits == 1:
			fmt.Fprintf(&w, ", at %v", x.First.Round(time.Microsecond))
		case x.Hits > 1:
			fmt.Fprintf(&w, ", first at %v, last at %v", x.First.Round(time.Microsecond), x.Last.Round(time.Microsecond))
		}
		w.WriteByte('\n')
	}
	return w.String()
}
