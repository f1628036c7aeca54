package doctor

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

var ofSwitch = []Each{EachSwitchPort, EachProfile}

// switchFacts are those of a switch on the path: its ports, PFC watchdog and ECN
// profiles.
var switchFacts = map[string]fact{
	"switch.port":          {doc: "name of the port", each: ofSwitch, get: func(s *scope) reading { return is(s.name(), "switch") }},
	"switch.pfc_rx_rate":   {doc: "PFC frames a second received by the port, of all priorities", each: ofSwitch, get: pfcRate(func(p *snapshot.SwitchPort) snapshot.Value[[8]uint64] { return p.PFCRx })},
	"switch.pfc_tx_rate":   {doc: "PFC frames a second sent by the port", each: ofSwitch, get: pfcRate(func(p *snapshot.SwitchPort) snapshot.Value[[8]uint64] { return p.PFCTx })},
	"switch.storms":        {doc: "storms that the PFC watchdog has found on the port, between the snapshots or in all", each: ofSwitch, get: watchdog(func(q *snapshot.WatchdogQueue) uint64 { return q.Detected })},
	"switch.restores":      {doc: "storms that it has taken for over", each: ofSwitch, get: watchdog(func(q *snapshot.WatchdogQueue) uint64 { return q.Restored })},
	"switch.stormed":       {doc: "queues in storm now", each: ofSwitch, get: stormedQueues},
	"switch.ports_pausing": {doc: "share of the switch's ports that receive and send PFC at more than 1,000 frames a second, 0 to 1", get: once("switch.ports_pausing", portsPausing)},
	"profile.kmin":         profileFact("Kmin in bytes", func(p *snapshot.ECNProfile) float64 { return float64(p.Kmin) }),
	"profile.kmax":         profileFact("Kmax in bytes", func(p *snapshot.ECNProfile) float64 { return float64(p.Kmax) }),
	"profile.pmax":         profileFact("Pmax, 0 to 1", func(p *snapshot.ECNProfile) float64 { return p.Pmax }),
	"profile.xoff":         profileFact("XOFF in bytes, 0 if not known", func(p *snapshot.ECNProfile) float64 { return float64(p.XOFF) }),
}

func profileFact(doc string, get func(*snapshot.ECNProfile) float64) fact {
	return fact{doc: doc, each: []Each{EachProfile}, get: func(s *scope) reading { return is(get(s.now.prof), s.name()) }}
}

func sum8(v [8]uint64) uint64 {
	n := uint64(0)
	for _, x := range v {
		n += x
	}
	return n
}

func framesPerSecond(s *scope, now, before *snapshot.SwitchPort, get func(*snapshot.SwitchPort) snapshot.Value[[8]uint64]) reading {
	sec := s.window.Length().Seconds()
	if before == nil || sec <= 0 {
		return none("switch", "it takes two snapshots of the switch's counters")
	}
	a, ok := get(now).Get()
	b, ok2 := get(before).Get()
	if !ok || !ok2 {
		return none("switch", "PFC counters of %s: %s", now.Name, get(now).Why())
	}
	if sum8(a) < sum8(b) {
		return none("switch", "the counters of %s were reset", now.Name)
	}
	return is(float64(sum8(a)-sum8(b))/sec, fmt.Sprintf("show pfc counters, %s", now.Name))
}

func pfcRate(get func(*snapshot.SwitchPort) snapshot.Value[[8]uint64]) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.swPort == nil || s.before == nil {
			return none("switch", "it takes two snapshots of the switch's counters")
		}
		return framesPerSecond(s, s.now.swPort, s.before.swPort, get)
	}
}

func watchdog(get func(*snapshot.WatchdogQueue) uint64) func(*scope) reading {
	return func(s *scope) reading {
		p := s.now.swPort
		if p == nil || len(p.Queues) == 0 {
			return none("show pfcwd stats", "no watchdog counters")
		}
		n := uint64(0)
		for i := range p.Queues {
			n += get(&p.Queues[i])
		}
		if s.before != nil && s.before.swPort != nil {
			was := uint64(0)
			for i := range s.before.swPort.Queues {
				was += get(&s.before.swPort.Queues[i])
			}
			if was > n {
				return none("show pfcwd stats", "the counters were reset")
			}
			n -= was
		}
		return is(n, "show pfcwd stats, "+p.Name)
	}
}

func stormedQueues(s *scope) reading {
	p := s.now.swPort
	if p == nil || len(p.Queues) == 0 {
		return none("show pfcwd stats", "no watchdog counters")
	}
	n := 0
	for i := range p.Queues {
		if p.Queues[i].Status == "stormed" {
			n++
		}
	}
	return is(n, "show pfcwd stats, "+p.Name)
}

// pausingRate is how many PFC frames a second make a port that pauses: thousands
// were seen in storms (SIGCOMM'16 4.3).
const pausingRate = 1000

func portsPausing(s *scope) reading {
	h := s.now.host.Switch
	if h == nil || len(h.Ports) == 0 || s.before == nil || s.before.host.Switch == nil {
		return none("switch", "it takes two snapshots of the switch's counters")
	}
	n := 0
	for i := range h.Ports {
		p := &h.Ports[i]
		was := s.work.index(s.before.host).switchPorts[p.Name]
		rx := framesPerSecond(s, p, was, func(p *snapshot.SwitchPort) snapshot.Value[[8]uint64] { return p.PFCRx })
		tx := framesPerSecond(s, p, was, func(p *snapshot.SwitchPort) snapshot.Value[[8]uint64] { return p.PFCTx })
		r, ok := rx.value.(float64)
		t, ok2 := tx.value.(float64)
		if !ok || !ok2 {
			return none("switch", "%s", rx.why+tx.why)
		}
		if r > pausingRate && t > pausingRate {
			n++
		}
	}
	return is(float64(n)/float64(len(h.Ports)), "show pfc counters")
}
