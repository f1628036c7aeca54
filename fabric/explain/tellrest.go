package explain

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

func (s *Story) tellHosts() section {
	sec := section{title: "HOSTS AT THEIR LIMIT"}
	for i := range s.Hosts {
		if i == maxHosts {
			sec.item("and %s more", plural(len(s.Hosts)-i, "host"))
			break
		}
		sec.item("%s", s.Hosts[i].sentence())
	}
	return sec
}

func (l *Limit) sentence() string {
	var text string
	switch l.Kind {
	case OneRxQueue:
		text = fmt.Sprintf("%s: 1 of %d RX queues (number %d) did all the work at %s, busy %s of the time, for %s on a line of %s",
			l.Host, l.Queues, l.Busiest, speed(l.Rate), percent(l.Busy), plural(l.Flows, "flow"), speed(l.Line))
	case RxQueues:
		text = fmt.Sprintf("%s: %d of %s in use, the busiest %s of the time; it took in %s of a line of %s", l.Host, l.Used, plural(l.Queues, "RX queue"), percent(l.Busy), speed(l.Rate), speed(l.Line))
	case Drain:
		text = fmt.Sprintf("%s: slow receiver, took in %s of a line of %s", l.Host, speed(l.Rate), speed(l.Line))
		if l.Max > 0 {
			text += fmt.Sprintf("; it can take %s", speed(l.Max))
		}
	case QPEngine:
		text = fmt.Sprintf("%s: the NIC gives one queue pair %s of %s, and %s with %s had %s", l.Host, speed(l.Max), speed(l.Line), verb(l.Flows, "flow", "flows"), plural(l.QPs, "queue pair"), speed(l.Rate))
	case PacketRate:
		text = fmt.Sprintf("%s: packet rate, %s packets a second of %s that the NIC can, at %s of %s", l.Host, count(l.Packets), count(l.MaxPackets), speed(l.Rate), speed(l.Line))
	}
	if l.Paused > 0 {
		text += fmt.Sprintf("; it stopped the network for %s", when(l.Paused))
	}
	if l.Drops > 0 {
		text += fmt.Sprintf("; it dropped %s", plural(l.Drops, "packet"))
	}
	if l.RxBuffer > 0 && l.PeakRx > 0 && l.Kind <= Drain {
		text += fmt.Sprintf("; %s of %s waited in the NIC", size(l.PeakRx), size(l.RxBuffer))
	}
	return text
}

func (s *Story) tellTiers() section {
	sec := section{title: "ECMP"}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		if t.Most < 2 && !t.Polarised {
			continue
		}
		way := "up"
		if t.Down {
			way = "down by parallel links"
		}
		text := fmt.Sprintf("Tier %d %s, when most flows crossed (%s): %s on %d of %d equal links (a uniform hash uses %s); the fullest, %s, had %d", t.Tier, way, when(t.At),
			plural(t.Flows, "flow"), t.Used, t.Links, digits(t.ExpectedUsed), t.Worst, t.Most)
		if t.Expected > 0 {
			text += fmt.Sprintf(" (balls in bins at one switch: %s)", digits(t.Expected))
		}
		sec.say("%s.", text)
		if t.Polarised {
			sec.item("polarised: %s uses %d of %d links for %s; the tier hashes as the one before it, or the flows differ in nothing that is hashed", t.Narrow, t.NarrowUsed, t.NarrowLinks, plural(t.NarrowFlows, "flow"))
		}
		if t.Costs() {
			fact := ""
			if t.Real > 0 {
				fact = fmt.Sprintf(" (%s in fact)", times(t.Real))
			}
			sec.item("%s slowed by it: %s is one of %d on %s, which is %s of it for each, and takes %s its idle time at best%s", verb(t.Crowded, "flow is", "flows are"),
				t.SlowestFlow, t.SlowestWith, t.SlowestAt, percent(1/float64(t.SlowestWith)), times(t.Slowest), fact)
		}
		if t.Partly {
			sec.item("of flows with several queue pairs only the first one's path is counted")
		}
	}
	return sec
}

func (s *Story) tellFairness() section {
	sec := section{title: "FAIRNESS"}
	f := &s.Fairness
	if len(f.Groups) == 0 {
		if f.Fair > 0 {
			sec.say("%s one bottleneck fairly: Jain's index at least %s.", verb(f.Fair, "group of like flows shares", "groups of like flows share"), digits(f.Least))
		}
		return sec
	}
	const shown = 3
	for i := range f.Groups {
		if i == shown {
			sec.say("And %s more; %s fair.", plural(len(f.Groups)-i, "unfair group"), verb(f.Fair, "is", "are"))
			break
		}
		g := &f.Groups[i]
		sec.say("%s share %s (%s): Jain's index %s, %s for %s to %s for %s.", upper(plural(g.Flows, "like flow")), g.At, speed(g.Rate), digits(g.Jain), speed(g.Min), g.Slowest, speed(g.Max), g.Fastest)
		if !g.PortFair {
			continue
		}
		sec.item("parking lot: the switch shares by ingress port and not by flow (%s)", g.inputText())
	}
	return sec
}

// inputText lists the ingress ports, or if they are many sums up those with
// equally many flows.
func (g *Sharing) inputText() string {
	const listed = 4
	var in []string
	if len(g.Inputs) <= listed {
		for _, x := range g.Inputs {
			in = append(in, fmt.Sprintf("%s with %s: %s each", x.Port, plural(x.Flows, "flow"), speed(x.Each)))
		}
		return strings.Join(in, "; ")
	}
	most := 0
	for _, x := range g.Inputs {
		most = max(most, x.Flows)
	}
	for k := 1; k <= most; k++ {
		ports, sum := 0, sim.Rate(0)
		for _, x := range g.Inputs {
			if x.Flows == k && x.Each > 0 {
				ports, sum = ports+1, sum+x.Each
			}
		}
		if ports > 0 {
			in = append(in, fmt.Sprintf("%s with %s: %s each", plural(ports, "port"), plural(k, "flow"), speed(sum/sim.Rate(ports))))
		}
	}
	return strings.Join(in, "; ")
}
