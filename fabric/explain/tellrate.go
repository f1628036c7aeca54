package explain

import (
	"fmt"
	"strings"
)

func (s *Story) tellRates() section {
	sec := section{title: "DCQCN"}
	r := s.Rates
	if r == nil {
		return sec
	}
	if r.Marks == 0 && r.CNPs == 0 && r.Silent == nil {
		sec.say("Preset %s: nothing was marked, nobody slowed down.", r.Preset)
		return sec
	}
	sec.say("Preset %s: %s, %s sent, %s handled, %s lost or on their way; %s cut.", r.Preset, plural(r.Marks, "mark"), plural(r.CNPs, "CNP"),
		count(r.Handled), count(r.Lost), plural(r.FlowsCut, "flow"))
	for i := range r.Ports {
		sec.item("%s", r.Ports[i].sentence())
	}
	if n := r.PortCount - len(r.Ports); n > 0 {
		sec.item("and %s more", plural(n, "port"))
	}
	if r.CNPs > 0 && r.Lost*1000 > r.CNPs*cnpLossPermille {
		sec.say("%s of the CNPs did not reach a sender: look at the class they travel in (priority %d).", upper(percent(float64(r.Lost)/float64(r.CNPs))), r.CNPPrio)
	}
	if r.InData {
		sec.say("CNPs travel in priority %d like the data: they wait in the queues that they tell of.", r.CNPPrio)
	}
	if q := r.Silent; q != nil {
		text := fmt.Sprintf("PFC acted and ECN did not: %s at root %s, priority %d, and not one mark", plural(q.Stops, "stop"), q.Root, q.Prio)
		if q.KMin > 0 && q.Limit > 0 {
			text += fmt.Sprintf("; XOFF came at %s held, Kmin is %s", size(q.Limit), size(q.KMin))
		}
		if q.Peak > 0 {
			text += fmt.Sprintf(" and the queue reached %s", size(q.Peak))
		}
		sec.say("%s.", text)
	}
	if r.HeldCount > 0 {
		sec.say("%s held below %s of the max-min share by marks alone:", verb(r.HeldCount, "flow was", "flows were"), percent(heldShare))
	}
	for i := range r.Held {
		r.Held[i].tell(&sec, i == 0)
	}
	if n := r.HeldCount - len(r.Held); n > 0 {
		sec.item("and %d more", n)
	}
	if r.Typical != nil {
		sec.item("most told: %s", r.Typical.curveText())
	}
	return sec
}

func (p *MarkPort) sentence() string {
	text := fmt.Sprintf("%s priority %d marked %s of what it sent (%s)", p.Port, p.Prio, percent(p.Share), plural(p.Marked, "packet"))
	var q []string
	if p.KMin > 0 {
		q = append(q, "Kmin "+size(p.KMin))
	}
	if p.Peak > 0 {
		q = append(q, fmt.Sprintf("queue at most %s, %s on average", size(p.Peak), size(int64(p.Mean))))
	}
	if p.Sampled && p.Crossed > 0 {
		q = append(q, fmt.Sprintf("above Kmin in %s of the samples (each %s), first at %s, %s anew", percent(p.Above), when(p.Step), when(p.First), often(p.Crossed)))
	}
	if len(q) > 0 {
		text += ": " + strings.Join(q, ", ")
	}
	return text
}

// curveText says what a flow's rate did.
func (h *Held) curveText() string {
	text := fmt.Sprintf("%s ran at %s of its %s share (line %s)", h.Flow, speed(h.Goodput), speed(h.Fair), speed(h.Line))
	var q []string
	if h.Mean > 0 {
		q = append(q, fmt.Sprintf("R_C %s at its lowest, %s on average, %s at last", speed(h.Min), speed(h.Mean), speed(h.Final)))
	} else if h.Min > 0 {
		q = append(q, fmt.Sprintf("R_C %s at its lowest, %s at last", speed(h.Min), speed(h.Final)))
	}
	q = append(q, fmt.Sprintf("%s, %s handled", plural(h.Marks, "mark"), plural(h.Handled, "CNP")))
	if h.Cuts > 0 {
		q = append(q, fmt.Sprintf("%s, R_T clamped %s", plural(h.Cuts, "cut"), often(int(h.Clamps))))
	}
	if h.QPs > 1 {
		q = append(q, fmt.Sprintf("R_C is that of the first of %d queue pairs", h.QPs))
	}
	return text + ": " + strings.Join(q, "; ")
}

// tell says all of the first flow, and of others what differs.
func (h *Held) tell(sec *section, first bool) {
	sec.item("%s", h.curveText())
	if b := h.Burst; b != nil {
		sec.paras = append(sec.paras, para{indent: 2, text: b.sentence(h)})
	}
	if !first {
		return
	}
	if h.Recovery > 0 {
		text := fmt.Sprintf("Recovery to %s by additive increase of %s per %s needs %s", speed(h.Target), speed(h.AI), when(h.IncreaseEvery), when(h.Recovery))
		if h.RecoveryByHyper > 0 {
			text += fmt.Sprintf(", by hyper increase of %s %s", speed(h.HAI), when(h.RecoveryByHyper))
		}
		sec.paras = append(sec.paras, para{indent: 2, text: text + "."})
	}
	sec.paras = append(sec.paras, para{indent: 2, text: fmt.Sprintf("A %s message takes %s at that rate, %s at line rate.",
		size(MessageBytes), when(h.MessageTime), when(h.MessageTimeAtLine))})
}

func (b *Burst) sentence(h *Held) string {
	rate := h.Mean
	if rate == 0 || h.QPs > 1 {
		rate = h.Goodput
	}
	who := ""
	if b.From != "" {
		who = " from " + b.From
	}
	if b.Group != "" {
		who += " (" + b.Group + ")"
	}
	var how string
	switch {
	case b.Every > 0:
		how = fmt.Sprintf("every %s a burst of %s%s", when(b.Every), size(b.Bytes), who)
	default:
		how = fmt.Sprintf("%s of up to %s%s", plural(b.Count, "burst"), size(b.Bytes), who)
	}
	text := fmt.Sprintf("Rate held at %s because %s meets it at %s", speed(rate), how, h.At.Port)
	if b.Every <= 0 && b.Count != 1 {
		text = fmt.Sprintf("Rate held at %s because %s meet it at %s", speed(rate), how, h.At.Port)
	}
	if b.Above && b.Every <= 0 && b.Count != 1 {
		text += fmt.Sprintf(" and cross Kmin %s", size(h.At.KMin))
	} else if b.Above {
		text += fmt.Sprintf(" and crosses Kmin %s", size(h.At.KMin))
	}
	text += fmt.Sprintf("; such bursts take %s of the port on average", percent(b.Load))
	switch {
	case b.Benign && b.Above:
		text += ", so the marks are false alarms: Kmin must exceed the largest benign burst."
	case b.Benign:
		text += "."
	default:
		text += fmt.Sprintf(", all other flows %s: that is congestion.", percent(b.Others))
	}
	return text
}
