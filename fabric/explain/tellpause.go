package explain

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

func (s *Story) tellTrees() section {
	sec := section{title: "WHO PAUSED WHOM"}
	var all sim.Time
	for i := range s.Trees {
		all += s.Trees[i].Stopped
	}
	for i := range s.Trees {
		if i == maxTrees || i > 0 && permille(s.Trees[i].Stopped, all) < smallTreePermille {
			sec.say("%s", lesser(s.Trees[i:]))
			break
		}
		s.Trees[i].tell(&sec)
	}
	if s.PausesCut > 0 {
		sec.say("%s were not recorded: this is the part before.", plural(s.PausesCut, "later pause event"))
	}
	return sec
}

// lesser sums up trees that are not told, and names the first.
func lesser(trees []Tree) string {
	const named = 3
	var stops int
	var d sim.Time
	var names []string
	for i := range trees {
		t := &trees[i]
		stops += t.Stops
		d += t.Stopped
		if i < named {
			names = append(names, fmt.Sprintf("%s (%s, %s)", t.Root, t.Cause.Kind, when(t.Stopped)))
		}
	}
	if len(trees) > named {
		names = append(names, "…")
	}
	return fmt.Sprintf("%s, with %s and %s of stopped time in all: %s.", upper(plural(len(trees), "lesser root")), plural(stops, "stop"), when(d), strings.Join(names, ", "))
}

func (t *Tree) tell(sec *section) {
	sec.say("Root %s, priority %d: %s.", t.Root, t.Prio, t.Cause.sentence(t))
	sec.say("%s, first at %s, in %s; %s deep, %s of stopped time in all%s.", upper(plural(t.Stops, "stop")), when(t.First()), t.windows(),
		plural(t.Depth(), "level"), when(t.Stopped), t.levels())
	t.tellBelow(sec, -1, 1)
}

// tellBelow prints what hangs on a branch (-1: the root): the first few in
// full, the others as a list, since they mostly are alike.
func (t *Tree) tellBelow(sec *section, parent, level int) {
	const full, named = 2, 3
	more, d := t.More, t.MoreStopped
	if parent >= 0 {
		more, d = t.Branches[parent].More, t.Branches[parent].MoreStopped
	}
	shown := 0
	var names []string
	for i := max(0, parent+1); i < len(t.Branches); i++ {
		b := &t.Branches[i]
		if b.Parent != parent {
			continue
		}
		if shown++; shown <= full {
			sec.branch(level, "%s", b.sentence())
			t.tellBelow(sec, i, level+1)
			continue
		}
		if len(names) < named {
			names = append(names, b.Egress.Name)
		} else {
			more++
		}
		d += b.Stopped
	}
	switch {
	case len(names) == 0 && more == 0:
	case len(names) == 0:
		sec.branch(level, "and %s more: %s", plural(more, "egress"), when(d))
	case more == 0:
		sec.branch(level, "and %s: %s", strings.Join(names, ", "), when(d))
	default:
		sec.branch(level, "and %s, %d more: %s", strings.Join(names, ", "), more, when(d))
	}
}

func (b *Branch) sentence() string {
	how := "stopped " + often(b.Stops)
	switch {
	case b.Deaf:
		how = "told to stop " + often(b.Stops) + " and did not"
	case b.Stops == 0:
		how = "stayed stopped" // from a time when it was stopped for another root
	}
	text := fmt.Sprintf("%s %s, %s (%s), by %s", b.Egress, how, when(b.Stopped), percent(b.Share), b.By)
	if b.Held > 0 {
		text += fmt.Sprintf(" (held %s, XOFF %s)", size(b.Held), size(b.Limit))
	}
	if b.Others > 0 {
		text += fmt.Sprintf(", for %d more egresses of it too", b.Others)
	}
	return text
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return count(uint64(n)) + " times"
}

func (t *Tree) windows() string {
	const shown = 3
	var w []string
	for i, x := range t.Windows {
		if i == shown {
			w = append(w, fmt.Sprintf("… (%d windows to %s)", len(t.Windows), when(t.Windows[len(t.Windows)-1].To)))
			break
		}
		w = append(w, when(x.From)+" – "+when(x.To))
	}
	if len(w) == 0 {
		return "no time"
	}
	return strings.Join(w, ", ")
}

func (t *Tree) levels() string {
	if len(t.Levels) < 2 {
		return ""
	}
	var l []string
	for i, x := range t.Levels {
		l = append(l, fmt.Sprintf("level %d: %s, %s", i+1, plural(x.Egresses, "egress"), when(x.Stopped)))
	}
	return " (" + strings.Join(l, "; ") + ")"
}

// sentence says why the root could not send.
func (c *Root) sentence(t *Tree) string {
	var text string
	switch c.Kind {
	case Incast, Collision:
		text = fmt.Sprintf("%s, %s with %s at once by %s, %s its %s", c.Kind, plural(c.Senders, "sender"), plural(c.Flows, "flow"),
			plural(c.InPorts, "port"), times(c.Ratio), speed(c.Rate))
		if c.InRate > c.Rate && c.Rate > 0 {
			text += fmt.Sprintf(" (fed by ports of %s)", speed(c.InRate))
		}
		if c.Before {
			text += ", before the first stop: what they left was still in the queue"
		}
	case StepDown:
		text = fmt.Sprintf("speed step-down, %s comes in at %s and goes out at %s", plural(c.Flows, "flow"), speed(c.InRate), speed(c.Rate))
	case Starved:
		text = fmt.Sprintf("other priorities took %s of the bytes it sent", percent(c.OtherPrio))
	case SlowReceiver:
		text = fmt.Sprintf("slow receiver, %s cannot take in what arrives", c.Receiver)
		if c.Rate > 0 {
			text += fmt.Sprintf(" (it takes %s)", speed(c.Rate))
		}
	case StormHost:
		text = fmt.Sprintf("pause storm, %s says stop without end", t.Root)
	case GlobalPause:
		text = "802.3x PAUSE, all priorities of a port at once"
	case LinkDown:
		text = fmt.Sprintf("the link was down for %s", when(c.Down))
	case Cycle:
		text = "it is in a deadlock: what it waits for waits for it"
	case Unknown:
		text = "the result does not say what filled it"
		if c.Flows > 0 {
			text += fmt.Sprintf(" (%s at once by %s)", plural(c.Flows, "flow"), plural(c.InPorts, "port"))
		}
	}
	if c.PeakQueue > 0 {
		text += fmt.Sprintf("; longest queue %s", size(c.PeakQueue))
	}
	if c.Kind != LinkDown && c.Down > 0 {
		text += fmt.Sprintf("; shortly before, the link at %s went down, and its traffic came here", c.DownAt)
	}
	return text
}

func (s *Story) tellVictims() section {
	sec := section{title: "VICTIMS"}
	sp := &s.Spreading
	if sp.Count == 0 {
		return sec
	}
	how := ""
	if sp.Approximate {
		how = " (shares worked out in steps)"
	}
	var cost []string
	if sp.Stuck > 0 {
		cost = append(cost, verb(sp.Stuck, "got nothing through", "got nothing through"))
	}
	if sp.Factor > 0 {
		cost = append(cost, fmt.Sprintf("%s the fair time at the median, %s at worst%s", times(sp.Factor), times(sp.Worst), how))
	}
	sec.say("%s for congestion that is not on the path, made by %s: %s.",
		verb(sp.Count, "flow waited", "flows waited"), plural(sp.Culprits, "flow"), strings.Join(cost, "; "))
	for i := range sp.Victims {
		sec.item("%s", sp.Victims[i].sentence())
	}
	if n := sp.Count - len(sp.Victims); n > 0 {
		sec.item("and %d more", n)
	}
	return sec
}

func (v *Victim) sentence() string {
	var took string
	if v.Running {
		took = fmt.Sprintf("got %s of %s through in %s", size(v.Got), size(v.Bytes), when(v.Took))
		if v.Bytes <= 0 { // endless
			took = fmt.Sprintf("got %s through in %s", size(v.Got), when(v.Took))
		}
		if v.Got > 0 {
			took += fmt.Sprintf(", at its max-min share %s as much", times(v.Excess))
		}
	} else {
		took = fmt.Sprintf("took %s, %s the %s at its max-min share", when(v.Took), times(v.Excess), when(v.Fair))
		if v.Base > 0 {
			took += fmt.Sprintf(" (%s when idle)", when(v.Base))
		}
	}
	return fmt.Sprintf("%s %s: %s was stopped for %s of it for the sake of %s, while its own last port %s was %s idle",
		v.Flow, took, v.WaitedAt, when(v.Waited), v.Root, v.Receiver, percent(v.Room))
}

func (s *Story) tellDeadlocks() section {
	sec := section{title: "DEADLOCK"}
	for i := range s.Deadlocks {
		if i == maxTrees {
			sec.say("And %d more.", len(s.Deadlocks)-i)
			break
		}
		s.Deadlocks[i].tell(&sec)
	}
	if len(s.Deadlocks) > 0 || len(s.Turns) == 0 {
		return sec
	}
	var at []string
	for _, t := range s.Turns {
		at = append(at, fmt.Sprintf("%s (%s)", t.Node, plural(t.Flows, "flow")))
	}
	sec.say("None here, but flows of a lossless class go up again after coming down at %s: that can close a cycle.", strings.Join(at, ", "))
	return sec
}

func (d *Locked) tell(sec *section) {
	var c []string
	for _, p := range d.Cycle {
		c = append(c, p.Name)
	}
	c = append(c, d.Cycle[0].Name)
	sec.say("Priority %d, closed at %s: %s.", d.Prio, when(d.At), strings.Join(c, " → "))
	switch d.Opened {
	case NeverOpened:
		sec.say("Nothing opened it: each waits for the next to the end of the run.")
	case OpenedByWatchdog:
		sec.say("The PFC watchdog opened it at %s, after %s: %s.", when(d.Until), when(d.Until-d.At), d.restored())
	case OpenedByLoss:
		sec.say("Dropped packets opened it at %s, after %s.", when(d.Until), when(d.Until-d.At))
	case OpenedByLink:
		sec.say("A change of a link opened it at %s, after %s.", when(d.Until), when(d.Until-d.At))
	case OpenedByItself:
		sec.say("It opened by itself at %s, after %s: a stop ran out or room was made in time.", when(d.Until), when(d.Until-d.At))
	}
	if d.Rerouted > 0 {
		sec.say("Since %s all routes are shortest paths, which close no cycle; what stood in the queues stood there still.", when(d.Rerouted))
	}
	if d.FlowCount > 0 {
		var names []string
		for i, f := range d.Flows {
			if i == 4 {
				names = append(names, "…")
				break
			}
			names = append(names, f.String())
		}
		sec.say("Made by %s: %s.", plural(d.FlowCount, "flow"), strings.Join(names, ", "))
	}
	for _, t := range d.Turns {
		sec.item("at %s, %s up again after coming down", t.Node, verb(t.Flows, "flow goes", "flows go"))
	}
	if d.StartCause != Unknown {
		sec.say("It began with the %s at %s, outside the cycle.", d.StartCause, d.Start)
	} else {
		sec.say("The first stop of the cycle was for %s.", d.Start)
	}
}

// restored says what a watchdog took, and when it gave back.
func (d *Locked) restored() string {
	text := fmt.Sprintf("it took %s", plural(int(min(d.Dropped, mostBytes)), "packet"))
	if d.Dropped == 0 {
		text = "it took none out"
	}
	if d.Restored == sim.Never || d.Restored <= 0 {
		return text + ", and had not given the queues back when the run ended"
	}
	return text + " and gave the queues back at " + when(d.Restored)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(uint64(n)) + " " + many
}

func (s *Story) tellStorms() section {
	sec := section{title: "PAUSE STORMS"}
	for i := range s.Storms {
		if i == maxStorms {
			sec.item("and %d more", len(s.Storms)-i)
			break
		}
		w := &s.Storms[i]
		end := fmt.Sprintf("until %s", when(w.To))
		if w.To == sim.Never {
			end = "to the end of the run"
		}
		text := fmt.Sprintf("%s was stopped in priority %d by %s from %s %s, %s", w.Egress, w.Prio, w.By, when(w.From), end, when(w.Ended-w.From))
		if w.Watchdog {
			text += fmt.Sprintf("; the watchdog stepped in and dropped %s", plural(w.Dropped, "packet"))
			if w.Restored > 0 {
				text += fmt.Sprintf(", let go %s", often(int(w.Restored)))
			}
		} else {
			text += "; no watchdog stepped in"
		}
		sec.item("%s", text)
	}
	return sec
}
