package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// WriteFlows writes the flows by group: how many, how much, completion times,
// goodput and slowdown.
func WriteFlows(w io.Writer, r *result.Run) error { return writeTables(w, groupTable(r)) }

func writeTables(w io.Writer, ts ...*table) error {
	o := newOut(w)
	for _, t := range ts {
		if t != nil {
			t.write(o)
		}
	}
	return o.Flush()
}

func groupTable(r *result.Run) *table {
	t := &table{
		title: "Flows by group",
		cols: []column{
			left("Group"), right("Done"), right("Bytes"), right("FCT min"), right("p50"), right("p99"), right("max"),
			right("Goodput"), right("Per flow"), right("Slowdown"), right("p99"),
		},
	}
	gs := Groups(r)
	for _, g := range gs {
		done := commas(uint64(g.Finished))
		if g.Finished < g.Flows {
			done += "/" + commas(uint64(g.Flows))
		}
		t.add(clean(g.Name), done, bytesText(g.Bytes), timeText(g.Min), timeText(g.P50), timeText(g.P99), timeText(g.Max),
			rateText(g.Goodput), rateText(g.FlowGoodput), factorText(g.SlowP50), factorText(g.SlowP99))
	}
	if len(gs) == 0 {
		t.notes = append(t.notes, "There are no flows.")
		return t
	}
	t.notes = append(t.notes, "Goodput: of the group, from its first start to its last finish. Per flow: the median. "+
		"Slowdown: median of FCT over the FCT on an idle network.")
	for _, g := range apart(gs) {
		if n := g.Flows - g.Finished; n > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%s: %d not finished (%d running, %d failed, %d not begun); %s of %s delivered.",
				clean(g.Name), n, g.Running, g.Failed, g.NotBegun, bytesText(g.Delivered), bytesText(g.Bytes)))
		}
	}
	return t
}

// congestionTable is what the flows of a group suffered; nil if nothing.
func congestionTable(r *result.Run) *table {
	t := &table{
		title: "Marks, notifications and retransmissions by group",
		cols: []column{
			left("Group"), right("Packets"), right("CE marked"), right("Share"), right("CNPs"), right("Retransmitted"),
			right("NAKs"), right("Timeouts"),
		},
	}
	any := false
	for _, g := range Groups(r) {
		any = any || g.Marks+g.CNPs+g.Retransmitted+g.NAKs+g.Timeouts > 0
		t.add(clean(g.Name), countText(g.Packets), countText(g.Marks), shareText(float64(g.Marks), float64(g.Packets)),
			countText(g.CNPs), countText(g.Retransmitted), countText(g.NAKs), countText(g.Timeouts))
	}
	if !any {
		return nil
	}
	return t
}

// worstTable is single flows: those that failed or have not finished first, then
// by slowdown.
func worstTable(r *result.Run, most int) *table {
	order := make([]int, len(r.Flows))
	for i := range order {
		order[i] = i
	}
	rank := func(f *result.Flow) int {
		switch f.State {
		case result.Failed:
			return 3
		case result.Running:
			return 2
		case result.Finished:
			return 1
		case result.Waiting:
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &r.Flows[a], &r.Flows[b]
		return cmp.Or(cmp.Compare(rank(y), rank(x)), cmp.Compare(y.Slowdown(), x.Slowdown()))
	})
	t := &table{
		title: "Flows, the slowest first",
		cols: []column{
			left("Flow"), right("Bytes"), right("Start"), right("FCT"), right("Slowdown"),
			right("Goodput"), right("Marks"), right("CNPs"), right("Retx"), left("State"),
		},
	}
	n := names{r}
	for _, i := range order[:min(most, len(order))] {
		f := &r.Flows[i]
		state := [...]string{"waiting", "running", "finished", "failed"}[min(f.State, result.Failed)]
		switch {
		case f.Status != "":
			state += ": " + clean(f.Status)
		case f.Silent != "":
			state += ", silent: " + clean(f.Silent)
		}
		t.add(n.flow(int32(i)), bytesText(f.Bytes), timeText(f.Start), timeText(f.FCT()), factorText(f.Slowdown()),
			rateText(Goodput(r, f)), countText(f.Marks), countText(f.CNPs), countText(f.Retransmitted), state)
	}
	if more := len(order) - most; more > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%d more flows.", more))
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t
}

// slowdownTable shows Slowdowns to people; nil if there are too few flows for
// it to say anything.
func slowdownTable(r *result.Run) *table {
	rows := Slowdowns(r)
	if len(rows) < 100/slowdownStep {
		return nil
	}
	t := &table{
		title: "Slowdown by flow size (5 % of the flows in a line)",
		cols:  []column{right("Up to"), right("Flows"), right("p50"), right("p95"), right("p99")},
	}
	for _, s := range rows {
		t.add(bytesText(s.Size), commas(uint64(s.Flows)), factorText(s.P50), factorText(s.P95), factorText(s.P99))
	}
	return t
}

// headLines says which run this is and how it ended.
func headLines(r *result.Run) []string {
	name := clean(r.Name)
	if r.Title != "" {
		name += ": " + clean(r.Title)
	}
	how := "ended at " + timeText(r.End)
	if r.Why != "" {
		how += " (" + clean(r.Why) + ")"
	}
	if r.Interrupted {
		how = "INTERRUPTED at " + timeText(r.End) + ": figures are of the time until then"
		if r.Why == "duration" { // nobody broke it off
			how = "ended at " + timeText(r.End) + ", before all flows had finished"
		}
		if r.Why != "" && r.Why != "interrupted" {
			how += " (" + clean(r.Why) + ")"
		}
	}
	lines := []string{
		name,
		how,
		fmt.Sprintf("seed %d, digest %016x, %s events, %s data packet-hops", r.Seed, r.Digest, countText(r.Events), countText(r.DataHops)),
	}
	if r.PausesCut > 0 {
		lines = append(lines, fmt.Sprintf("%s more changes of pauses than were kept: tables by time are of the first %s", commas(r.PausesCut), commas(uint64(len(r.Pauses)))))
	}
	if r.DropsCut > 0 {
		lines = append(lines, fmt.Sprintf("%s more drops than were kept", commas(r.DropsCut)))
	}
	return lines
}

// spanText writes a stretch of time.
func spanText(from, to sim.Time) string {
	if to == sim.Never {
		return timeText(from) + " to the end"
	}
	return timeText(from) + " to " + timeText(to)
}
