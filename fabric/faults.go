package fabric

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// step is one thing that happens at one instant.
type step struct {
	at    sim.Time
	kind  scenario.FaultKind
	on    bool
	link  int32
	nic   int32
	prios scenario.Prios
	rate  sim.Rate
	error uint64
	count int
	what  string
}

// dropRule loses packets that arrive at a port of a link.
type dropRule struct {
	link int32
	left int
	what string
	prio scenario.Prios
}

// planFaults turns the scenario's faults into steps.
func (r *Run) planFaults() error {
	for i := range r.Scenario.Faults {
		f := &r.Scenario.Faults[i]
		s := step{at: f.At, kind: f.Kind, on: true, link: -1, nic: -1, prios: f.Priorities, rate: f.Rate, error: uint64(f.ErrorRate), count: max(f.Count, 1), what: f.What}
		switch f.Kind {
		case scenario.LinkDown, scenario.Flap, scenario.Errors, scenario.DropNext:
			l, err := r.linkNamed(f.Where)
			if err != nil {
				return fmt.Errorf("faults[%d]: %w", i, err)
			}
			s.link = l
		case scenario.Storm, scenario.SlowReceiver:
			e, err := r.endpoint(f.Where)
			if err != nil {
				return fmt.Errorf("faults[%d]: %w", i, err)
			}
			s.nic = e
		}
		n := 1
		if f.Kind == scenario.Flap {
			n = s.count
		}
		for k := range n {
			on, off := s, s
			on.at = f.At.Add(sim.Time(k) * f.Every)
			r.schedule(on)
			if f.For > 0 && f.Kind != scenario.DropNext {
				off.on, off.at = false, on.at.Add(f.For)
				r.schedule(off)
			}
		}
	}
	return nil
}

func (r *Run) schedule(s step) {
	r.steps = append(r.steps, s)
	r.S.At(s.at, r, evFault|uint64(len(r.steps)-1)<<evShift)
}

// fault does one step.
func (r *Run) fault(now sim.Time, i int) {
	s := &r.steps[i]
	switch s.kind {
	case scenario.LinkDown, scenario.Flap:
		r.setLink(now, s.link, !s.on)
	case scenario.Errors:
		l := &r.Graph.Links[s.link]
		rate := l.ErrorRate
		if s.on {
			rate = s.error
		}
		r.Ports[l.A][l.APort].SetErrorRate(rate)
		r.Ports[l.B][l.BPort].SetErrorRate(rate)
	case scenario.Storm:
		for q := range uint8(8) {
			if s.prios.Has(q) && r.NICs[s.nic].Config().Lossless&(1<<q) != 0 {
				r.NICs[s.nic].Storm(now, q, s.on)
			}
		}
	case scenario.SlowReceiver:
		rate := r.NICs[s.nic].Config().DrainRate
		if s.on {
			rate = s.rate
		} else if rate == s.rate {
			rate = 0
		}
		r.NICs[s.nic].SetDrain(now, rate)
	case scenario.DropNext:
		l := &r.Graph.Links[s.link]
		rule := &dropRule{link: s.link, left: s.count, what: s.what, prio: s.prios}
		lose := func(p *sim.Packet) bool { return rule.takes(p) }
		r.Ports[l.A][l.APort].Lose = lose
		r.Ports[l.B][l.BPort].Lose = lose
	}
}

// takes reports whether a rule loses a packet.
func (d *dropRule) takes(p *sim.Packet) bool {
	if d.left == 0 || !d.prio.Has(p.Prio) {
		return false
	}
	control := p.Kind == sim.KindPFC || p.Kind == sim.KindPause
	cnp := p.Kind == sim.KindRoCE && p.Head[0] == opCNP
	switch d.what {
	case "data":
		if control || p.Ack {
			return false
		}
	case "ack":
		if control || cnp || !p.Ack {
			return false
		}
	case "cnp":
		if !cnp {
			return false
		}
	case "pfc":
		if !control {
			return false
		}
	}
	d.left--
	return true
}

const opCNP = 0x81

// setLink takes a link down or up; the switches learn it at once.
func (r *Run) setLink(now sim.Time, link int32, up bool) {
	l := &r.Graph.Links[link]
	r.downLink[link] = !up
	r.Ports[l.A][l.APort].SetDown(now, !up)
	if sw := r.Switches[l.A]; sw != nil {
		sw.SetDown(now, int(l.APort), !up)
	}
	if sw := r.Switches[l.B]; sw != nil {
		sw.SetDown(now, int(l.BPort), !up)
	}
	r.Routes.Rebuild(func(i int32) bool { return r.downLink[i] })
	r.links = append(r.links, result.LinkChange{At: now, Node: l.A, Port: l.APort, Up: up, Rate: l.Rate})
	r.S.Note(uint64(link)<<8 | 0xF0)
}

// linkNamed finds a link: "leaf0-spine1", or by a port of it "leaf0/Ethernet3"
// or "host3/eth0", or by a host "host3".
func (r *Run) linkNamed(name string) (int32, error) {
	g := r.Graph
	if a, b, ok := strings.Cut(name, "-"); ok {
		na, nb := g.Node(a), g.Node(b)
		if na >= 0 && nb >= 0 {
			for _, p := range g.Nodes[na].Ports {
				if p.Peer == nb {
					return p.Link, nil
				}
			}
			return -1, fmt.Errorf("no link joins %s and %s", a, b)
		}
	}
	node, port, err := r.portOf(name)
	if err != nil {
		return -1, err
	}
	return g.Nodes[node].Ports[port].Link, nil
}
