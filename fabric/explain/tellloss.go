package explain

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

func (s *Story) tellOutages() section {
	sec := section{title: "LINKS DOWN"}
	for i := range s.Outages {
		if i == maxLossPlaces {
			sec.item("and %s more", plural(len(s.Outages)-i, "time"))
			break
		}
		o := &s.Outages[i]
		end := "to the end of the run"
		if o.To != sim.Never {
			end = fmt.Sprintf("to %s, %s", when(o.To), when(o.To-o.From))
		}
		sec.item("%s – %s from %s %s", o.Port, o.Peer, when(o.From), end)
	}
	return sec
}

func (s *Story) tellLoss() section {
	sec := section{title: "LOSS"}
	l := s.Loss
	if l == nil {
		return sec
	}
	if l.Drops+l.Cut > 0 {
		text := upper(plural(l.Drops+l.Cut, "packet")) + " lost"
		if l.TCP > 0 {
			text += fmt.Sprintf(", %s of TCP, which expects it", count(l.TCP))
		}
		if l.Cut > 0 {
			text += fmt.Sprintf(" (places of the first %s follow)", count(l.Drops))
		}
		sec.say("%s.", text)
	}
	for i := range l.Places {
		p := &l.Places[i]
		class := "lossy"
		if p.Lossless {
			class = "LOSSLESS"
		}
		sec.item("%s: %s of %s priority %d, %s, from %s on: %s", p.At, plural(p.Count, "packet"), class, p.Prio, size(int64(p.Bytes)), when(p.First), p.Reason)
	}
	if n := l.PlaceCount - len(l.Places); n > 0 {
		sec.item("and %s more", plural(n, "place"))
	}
	for i := range l.Misfits {
		sec.say("%s", l.Misfits[i].sentence())
	}
	for i := range l.Deaf {
		sec.say("%s", l.Deaf[i].sentence())
	}
	for i := range l.Mute {
		m := &l.Mute[i]
		sec.say("PFC is off on one hop: %s dropped %s of lossless priority %d and never said stop.", m.At, plural(m.Drops, "packet"), m.Prio)
	}
	if l.Again > 0 || l.Timeouts > 0 {
		text := fmt.Sprintf("Go-back-N sent %s of %s again (%s)", count(l.Again), plural(l.Packets, "packet"), percent(ratio(float64(l.Again), float64(l.Packets))))
		if l.PerDrop > 0 {
			text += fmt.Sprintf(", %s for each that was lost", digits(l.PerDrop))
		}
		sec.say("%s; %s, %s.", text, plural(l.NAKs, "NAK"), plural(l.Timeouts, "timeout"))
	}
	if w := l.Worst; w != nil {
		sec.item("worst: %s sent %s of %s again and had %s", w.Flow, count(w.Again), plural(w.Packets, "packet"), speed(w.Goodput))
	}
	for _, f := range l.Failed {
		sec.item("%s gave up: %s", f.Flow, or(f.Status, "no status"))
	}
	if n := l.FailedCount - len(l.Failed); n > 0 {
		sec.item("and %s more gave up", plural(n, "flow"))
	}
	return sec
}

func (m *Misfit) sentence() string {
	if m.Everywhere {
		return fmt.Sprintf("RoCE in a lossy class: %s in priority %d, which has no PFC; %s.", verb(m.Flows, "flow is", "flows are"), m.Want, plural(m.Drops, "drop"))
	}
	return fmt.Sprintf("RoCE in the wrong class: %s puts %s of priority %d into priority %d, where PFC of priority %d does not hold it; %s. Its map of DSCP (or PCP) to priority is not the others'.",
		m.At, plural(m.Flows, "flow"), m.Want, m.Got, m.Want, plural(m.Drops, "drop"))
}

func (d *Deaf) sentence() string {
	heard := "and counted none"
	if d.Heard > 0 {
		heard = fmt.Sprintf("though it counted %s", count(d.Heard))
	}
	text := fmt.Sprintf("PFC is off on one hop: %s sent %s in priority %d and %s obeyed none, %s", d.At, plural(d.Stops, "stop frame"), d.Prio, d.Peer, heard)
	if d.Drops > 0 {
		text += fmt.Sprintf("; %s at %s", plural(d.Drops, "drop"), d.At)
	}
	return text + "."
}

func (s *Story) tellLossless() section {
	sec := section{title: "LOSSLESS"}
	l := &s.Lossless
	switch l.Verdict {
	case NoClass:
		return sec
	case Proven:
		t := l.Tightest
		if t.Peak == 0 {
			sec.say("Proven: %s had the headroom that the formula asks for, and none was used.", countPorts(l.Ports))
			break
		}
		sec.say("Proven: %s had the headroom that the formula asks for; the tightest, %s, used %s.", countPorts(l.Ports), t.name(), t.used())
	case HeldOnly:
		sec.say("Held, not proven: nothing was lost (%s used %s), but %s than the formula asks for. %s has %s and needs %s.", l.Tightest.name(), l.Tightest.used(),
			verb(l.Short, "ingress has less headroom", "ingresses have less headroom"), l.Shortest.name(), size(l.Shortest.Have), size(l.Shortest.Need))
	case Violated:
		s.tellViolated(&sec)
	case Unchecked:
		sec.say("Not checked: the run has no record of headroom.")
	}
	if l.Elsewhere > 0 {
		sec.say("%s of lossless classes were lost for other reasons (mostly: %s): headroom does not help there.", upper(plural(l.Elsewhere, "packet")), l.ElsewhereReason)
	}
	return sec
}

func (s *Story) tellViolated(sec *section) {
	l := &s.Lossless
	if l.ViolatedCount == 0 {
		sec.say("Violated: %s of lossless classes dropped.", plural(l.Dropped, "packet"))
		return
	}
	for i := range l.Violated {
		h := &l.Violated[i]
		if h.Over() == 0 {
			sec.item("violated at %s: %s dropped although its %s of headroom are what the formula asks for: the neighbour did not stop",
				h.name(), plural(h.Dropped, "packet"), size(h.Have))
			continue
		}
		text := fmt.Sprintf("violated by %s at %s: %s", size(h.Over()), h.name(), h.used())
		if h.Need > h.Have {
			text += fmt.Sprintf(", needs %s", size(h.Need))
		}
		if h.Dropped > 0 {
			text += fmt.Sprintf(", %s dropped", plural(h.Dropped, "packet"))
		}
		sec.item("%s", text)
	}
	if n := l.ViolatedCount - len(l.Violated); n > 0 {
		sec.item("and %s more", plural(n, "port"))
	}
}

func countPorts(n int) string {
	if n == 1 {
		return "the one ingress"
	}
	return "all " + count(uint64(n)) + " ingresses"
}

func (h *HeadroomUse) name() string { return fmt.Sprintf("%s p%d", h.At, h.Prio) }

func (h *HeadroomUse) used() string { return fmt.Sprintf("%s of %s", size(h.Peak), size(h.Have)) }
