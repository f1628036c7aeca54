package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// pauseChart draws when which egress was stopped, the first that was on top: how
// a congestion spread.
func pauseChart(r *result.Run) *plot.Drawing {
	all := stops(r)
	if len(all) == 0 {
		return nil
	}
	drawn := all
	if len(all) > maxGantt {
		ranked := slices.Clone(all)
		slices.SortStableFunc(ranked, func(a, b *stopped) int { return cmp.Compare(b.total, a.total) })
		ranked = ranked[:maxGantt]
		drawn = slices.DeleteFunc(slices.Clone(all), func(s *stopped) bool { return !slices.Contains(ranked, s) })
	}
	n := names{r}
	g := plot.Gantt{Title: "Stopped egresses, by the first stop", X: timeAxis(r)}
	for _, s := range drawn {
		name := n.port(s.node, s.port)
		switch {
		case s.global:
			name += " all priorities"
		default:
			name += fmt.Sprintf(" p%d", s.prio)
		}
		row := plot.Row{Name: name + " by " + n.node(s.by)}
		for _, sp := range s.spans {
			row.Bars = append(row.Bars, plot.Bar{
				From: float64(sp.From), To: float64(sp.To), Ink: causeInk(s.cause),
				Tip: spanText(sp.From, sp.To) + ", " + timeText(sp.To-sp.From),
			})
		}
		g.Rows = append(g.Rows, row)
	}
	for c := result.CauseBuffer; c <= result.CauseGlobal; c++ {
		if slices.ContainsFunc(drawn, func(s *stopped) bool { return s.cause == c }) {
			g.Kinds = append(g.Kinds, plot.Kind{Name: causeName(c), Ink: causeInk(c)})
		}
	}
	if more := len(all) - len(drawn); more > 0 {
		g.Notes = append(g.Notes, commas(uint64(more))+" more egresses were stopped for shorter times.")
	}
	if r.PausesCut > 0 {
		g.Notes = append(g.Notes, commas(r.PausesCut)+" later changes of pauses were not kept: the right part is incomplete.")
	}
	longest := slices.MaxFunc(all, func(a, b *stopped) int { return cmp.Compare(a.total, b.total) })
	g.Desc = fmt.Sprintf("%d egresses were stopped. %s was the first, at %s; %s was stopped longest, for %s.", len(all),
		n.port(all[0].node, all[0].port), timeText(all[0].spans[0].From), n.port(longest.node, longest.port), timeText(longest.total))
	return g.Draw()
}

func causeInk(c result.Cause) plot.Ink {
	switch c {
	case result.CauseSlowReceiver:
		return plot.Series(3)
	case result.CauseStorm:
		return plot.Bad
	case result.CauseGlobal:
		return plot.Series(0)
	case result.CauseBuffer:
	}
	return plot.Series(1)
}

func causeName(c result.Cause) string {
	switch c {
	case result.CauseSlowReceiver:
		return "slow receiver"
	case result.CauseStorm:
		return "storm (fault)"
	case result.CauseGlobal:
		return "802.3x PAUSE, whole port"
	case result.CauseBuffer:
	}
	return "ingress above XOFF"
}

// fctChart draws the distribution of completion times of each group.
func fctChart(r *result.Run) *plot.Drawing {
	c := plot.Chart{
		Title: "Completion times", X: plot.Axis{Label: "FCT", Of: plot.Time},
		Y: plot.Axis{Label: "finished flows", Of: plot.Share, To: 1},
	}
	var desc []string
	low, high := math.Inf(1), 0.0
	for _, g := range apart(Groups(r)) {
		if g.Finished == 0 {
			continue
		}
		if len(c.Lines) == maxLines {
			c.Notes = []string{"Some groups are not drawn."}
			break
		}
		fcts := fctsOf(r, g.Name)
		if len(fcts) == 0 {
			continue
		}
		c.Lines = append(c.Lines, plot.Line{Name: clean(g.Name), Step: true, Points: distribution(fcts)})
		desc = append(desc, fmt.Sprintf("%s: half within %s, 99 %% within %s", clean(g.Name), timeText(g.P50), timeText(g.P99)))
		low, high = math.Min(low, float64(fcts[0])), math.Max(high, float64(fcts[len(fcts)-1]))
	}
	if len(c.Lines) == 0 {
		return nil
	}
	const wide = 20 // times: beyond, short flows would be lost at the left edge
	if c.X.Log = high > low*wide && low > 0; !c.X.Log {
		c.X.To = high * 1.04 // the last step is not on the edge
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

func fctsOf(r *result.Run, group string) []sim.Time {
	var fcts []sim.Time
	for i := range r.Flows {
		f := &r.Flows[i]
		if f.State == result.Finished && (f.Group == group || f.Group == "" && group == "flows") {
			fcts = append(fcts, f.FCT())
		}
	}
	slices.Sort(fcts)
	return fcts
}

// distribution returns the steps of an empirical distribution, thinned to what
// can be seen.
func distribution(sorted []sim.Time) []plot.XY {
	n := len(sorted)
	pts := []plot.XY{{X: float64(sorted[0]), Y: 0}}
	last := -1
	for i, t := range sorted {
		if i+1 < n && sorted[i+1] == t {
			continue // the last of equal ones has their step
		}
		at := i * 2 * linePoints / n
		if at == last && i+1 < n {
			continue
		}
		last = at
		pts = append(pts, plot.XY{X: float64(t), Y: float64(i+1) / float64(n)})
	}
	return pts
}

// slowdownChart draws the slowdown table; nil if it has few lines.
func slowdownChart(r *result.Run) *plot.Drawing {
	rows := Slowdowns(r)
	if len(rows) < 100/slowdownStep || rows[0].Size == rows[len(rows)-1].Size {
		return nil
	}
	c := plot.Chart{
		Title: "Slowdown by flow size", X: plot.Axis{Label: "flow size", Of: plot.Bytes, Log: true},
		Y:     plot.Axis{Label: "FCT / FCT on an idle network", Of: plot.Ratio},
		Lines: []plot.Line{{Name: "p50"}, {Name: "p95"}, {Name: "p99"}},
	}
	for _, s := range rows {
		for i, y := range [...]float64{s.P50, s.P95, s.P99} {
			c.Lines[i].Points = append(c.Lines[i].Points, plot.XY{X: float64(max(1, s.Size)), Y: y})
		}
	}
	last := rows[len(rows)-1]
	c.Desc = fmt.Sprintf("Flows of up to %s: median %s, p99 %s. The largest, up to %s: median %s, p99 %s.",
		bytesText(rows[0].Size), factorText(rows[0].P50), factorText(rows[0].P99), bytesText(last.Size), factorText(last.P50), factorText(last.P99))
	return c.Draw()
}

// The bounds of the chart of equal paths.
const (
	maxECMPSwitches = 12
	maxECMPPorts    = 64 // bars in all
)

// uplinks are the ports of a switch towards a higher tier, which ECMP chooses
// between; of switches with a tenth of the busiest one's load or more.
type uplinks struct {
	node  int32
	ports []int32
	bytes []uint64
	sum   uint64
	ratio float64 // highest over mean
}

// ecmpChart draws how the load was spread over the uplinks of each switch, the
// most uneven switches if there are many.
func ecmpChart(r *result.Run) *plot.Drawing {
	all := uplinksOf(r)
	if len(all) == 0 {
		return nil
	}
	drawn := slices.Clone(all)
	slices.SortStableFunc(drawn, func(a, b uplinks) int { return cmp.Compare(b.ratio, a.ratio) })
	worst := drawn[0]
	bars := 0
	for i, u := range drawn {
		if bars += len(u.ports); i == maxECMPSwitches || i > 0 && bars > maxECMPPorts {
			drawn = drawn[:i]
			break
		}
	}
	slices.SortFunc(drawn, func(a, b uplinks) int { return cmp.Compare(a.node, b.node) })
	flows := flowsOn(r)
	n := names{r}
	b := plot.Bars{Title: "Load of equal paths: what each uplink sent", Y: plot.Axis{Label: "sent", Of: plot.Bytes}}
	for _, u := range drawn {
		g := plot.Group{Name: n.node(u.node)}
		for i, port := range u.ports {
			k := flows[result.Hop{Node: u.node, Port: port}]
			p := at(r, u.node, port)
			g.Columns = append(g.Columns, plot.Column{
				Name: fmt.Sprint(k), Value: float64(u.bytes[i]), Ink: plot.Series(0),
				Tip: fmt.Sprintf("%s to %s: %s, %d flows", n.port(u.node, port), n.node(p.Peer), bytesText(u.bytes[i]), k),
			})
		}
		b.Groups = append(b.Groups, g)
	}
	b.Notes = []string{"Below a bar: flows whose first packet took it. Dashed: the mean, which even spreading would give."}
	if more := len(all) - len(drawn); more > 0 {
		b.Notes = append(b.Notes, fmt.Sprintf("%d switches with a more even load are not drawn.", more))
	}
	b.Desc = fmt.Sprintf("Most uneven is %s: its busiest uplink sent %s times the mean.", n.node(worst.node), digits(worst.ratio, 3))
	return b.Draw()
}

func uplinksOf(r *result.Run) []uplinks {
	var all []uplinks
	busiest := uint64(0)
	for i := range r.Nodes {
		if !r.Nodes[i].Switch {
			continue
		}
		u := uplinks{node: int32(i)}
		most, sum := uint64(0), uint64(0)
		for j := range r.Nodes[i].Ports {
			p := &r.Nodes[i].Ports[j]
			if at(r, p.Peer, p.PeerPort) == nil || !r.Nodes[p.Peer].Switch || r.Nodes[p.Peer].Tier <= r.Nodes[i].Tier {
				continue
			}
			sent := uint64(0)
			for k := range p.Prio {
				sent += p.Prio[k].TxBytes
			}
			u.ports, u.bytes = append(u.ports, int32(j)), append(u.bytes, sent)
			most, sum = max(most, sent), sum+sent
		}
		if len(u.ports) < 2 || sum == 0 {
			continue
		}
		u.ratio, u.sum = float64(most)*float64(len(u.ports))/float64(sum), sum
		busiest = max(busiest, sum)
		all = append(all, u)
	}
	// Acknowledgements alone say nothing about spreading.
	return slices.DeleteFunc(all, func(u uplinks) bool { return u.sum < busiest/10 })
}

// flowsOn counts flows by the egresses of their paths; looked up, never walked.
func flowsOn(r *result.Run) map[result.Hop]int {
	m := map[result.Hop]int{}
	for i := range r.Flows {
		for _, h := range r.Flows[i].Path {
			m[h]++
		}
	}
	return m
}
