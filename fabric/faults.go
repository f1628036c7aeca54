package fabric

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// step is the beginning or the end of a fault, one of a flap's.
type step struct {
	at    sim.Time
	fault int32 // of the scenario
	on    bool
}

// target is where a fault of the scenario acts: a link or a NIC; -1 where it is
// of the other kind.
type target struct{ link, nic int32 }

// dropRule loses packets that arrive at either end of a link.
type dropRule struct {
	left int
	what string
	prio scenario.Prios
}

// planFaults turns the scenario's faults into steps.
func (r *Run) planFaults() error {
	r.faultAt = make([]target, len(r.Scenario.Faults))
	r.faultOn = make([]bool, len(r.Scenario.Faults))
	for i := range r.Scenario.Faults {
		f := &r.Scenario.Faults[i]
		to := target{link: -1, nic: -1}
		var err error
		switch f.Kind {
		case scenario.LinkDown, scenario.Flap, scenario.Errors, scenario.DropNext:
			to.link, err = r.linkNamed(f.Where)
		case scenario.Storm, scenario.SlowReceiver:
			to.nic, err = r.endpoint(f.Where)
		case scenario.Reroute:
		}
		if err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
		r.faultAt[i] = to
		n := 1
		if f.Kind == scenario.Flap {
			n = max(f.Count, 1)
		}
		for k := range n {
			at := f.At.Add(sim.Time(k) * f.Every)
			r.schedule(step{at: at, fault: int32(i), on: true})
			if f.For > 0 && f.Kind != scenario.DropNext {
				r.schedule(step{at: at.Add(f.For), fault: int32(i)})
			}
		}
	}
	return nil
}

func (r *Run) schedule(s step) {
	r.steps = append(r.steps, s)
	r.S.At(s.at, r, evFault|uint64(len(r.steps)-1)<<evShift)
}

// fault does one step. Faults overlap: a link is up when nothing keeps it down,
// and what several do to one place is the worst of them.
func (r *Run) fault(now sim.Time, i int) {
	s := r.steps[i]
	f, to := &r.Scenario.Faults[s.fault], r.faultAt[s.fault]
	r.faultOn[s.fault] = s.on
	switch f.Kind {
	case scenario.LinkDown, scenario.Flap:
		down := r.active(to, scenario.LinkDown) != nil || r.active(to, scenario.Flap) != nil
		if down != r.downLink[to.link] {
			r.setLink(now, to.link, !down)
		}
	case scenario.Errors:
		var rates [8]uint64
		for _, k := range r.active(to, scenario.Errors) {
			e := &r.Scenario.Faults[k]
			for q := range uint8(8) {
				if e.Priorities.Has(q) {
					rates[q] = max(rates[q], uint64(e.ErrorRate))
				}
			}
		}
		l := &r.Graph.Links[to.link]
		r.Ports[l.A][l.APort].SetErrors(rates)
		r.Ports[l.B][l.BPort].SetErrors(rates)
	case scenario.Storm:
		var prios scenario.Prios
		for _, k := range r.active(to, scenario.Storm) {
			prios |= r.Scenario.Faults[k].Priorities
		}
		nic := r.NICs[to.nic]
		for q := range uint8(8) {
			if f.Priorities.Has(q) && nic.Config().Lossless&(1<<q) != 0 {
				nic.Storm(now, q, prios.Has(q))
			}
		}
	case scenario.SlowReceiver:
		rate := r.hostOf(to.nic).NIC.PCIeRate
		for _, k := range r.active(to, scenario.SlowReceiver) {
			if slow := r.Scenario.Faults[k].Rate; rate == 0 || slow < rate {
				rate = slow
			}
		}
		r.NICs[to.nic].SetDrain(now, rate)
	case scenario.DropNext:
		rule := &dropRule{left: max(f.Count, 1), what: f.What, prio: f.Priorities}
		l := &r.Graph.Links[to.link]
		for _, p := range [2]*port.Port{r.Ports[l.A][l.APort], r.Ports[l.B][l.BPort]} {
			before := p.Lose
			p.Lose = func(k *sim.Packet) bool { return before != nil && before(k) || rule.takes(k) }
		}
	case scenario.Reroute:
		r.Routes.Forget()
		r.Routes.Rebuild(func(i int32) bool { return r.downLink[i] })
		r.reroutes = append(r.reroutes, result.RouteChange{At: now})
		r.S.Note(0xF1)
	}
}

// active lists the faults of a kind that have begun at a place and not ended.
func (r *Run) active(to target, kind scenario.FaultKind) []int {
	var list []int
	for i := range r.faultAt {
		if r.faultOn[i] && r.faultAt[i] == to && r.Scenario.Faults[i].Kind == kind {
			list = append(list, i)
		}
	}
	return list
}

// takes reports whether a rule loses a packet.
func (d *dropRule) takes(p *sim.Packet) bool {
	control := p.Kind == sim.KindPFC || p.Kind == sim.KindPause
	in := d.prio.Has(p.Prio)
	if control { // what it stops or lets go on; 802.3x all
		in = d.prio&scenario.Prios(p.Enable) != 0 || p.Kind == sim.KindPause
	}
	if d.left == 0 || !in {
		return false
	}
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
	for _, e := range [2]struct{ node, port int32 }{{l.A, l.APort}, {l.B, l.BPort}} {
		if first := r.Graph.Nodes[e.node].Endpoint; up && r.Switches[e.node] == nil {
			r.NICs[first+e.port].LinkUp(now)
		}
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
