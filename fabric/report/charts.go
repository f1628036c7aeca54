package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Chart is one picture of a run.
type Chart struct {
	Name    string // of its file, without ending: "queues"
	Drawing *plot.Drawing
}

// The bounds of charts.
const (
	maxLines    = 8   // of a chart
	linePoints  = 400 // stretches of a line's envelope
	maxGantt    = 24  // rows
	maxEventsAt = 4000
)

// Charts draws what the run has data for, in the order in which an engineer
// asks: topology with the pauses, queues, rates, R_C, marks, pauses, buffers,
// completion times, load of equal paths. The same run gives the same pictures.
func Charts(r *result.Run) []Chart {
	var cs []Chart
	add := func(name string, d *plot.Drawing) {
		if d != nil {
			cs = append(cs, Chart{name, d})
		}
	}
	add("topology", topology(r))
	add("queues", queueChart(r))
	add("rates", flowChart(r, result.FlowRate, "Goodput of flows", "goodput", plot.Rate))
	add("rc", flowChart(r, result.FlowRC, "DCQCN: current rate R_C", "R_C", plot.Rate))
	add("alpha", flowChart(r, result.FlowAlpha, "DCQCN: alpha", "alpha", plot.Ratio))
	add("marks", markChart(r))
	add("pauses", pauseChart(r))
	add("paused", pausedChart(r))
	add("ports", portChart(r))
	add("buffers", nodeChart(r, result.BufferShared, "Shared buffer in use"))
	add("receivers", nodeChart(r, result.HostQueue, "Receive buffers of NICs"))
	add("fct", fctChart(r))
	add("slowdown", slowdownChart(r))
	add("ecmp", ecmpChart(r))
	return cs
}

// top returns the series of a kind with the highest peaks, at most maxLines, in
// the order of the run, and how many were left out. Those without any value
// but zero are not counted.
func top(r *result.Run, kind result.SeriesKind) (best []*result.Series, more int) {
	for i := range r.Series {
		if s := &r.Series[i]; s.Kind == kind && peak(s) > 0 {
			best = append(best, s)
		}
	}
	if len(best) <= maxLines {
		return best, 0
	}
	ranked := slices.Clone(best)
	slices.SortStableFunc(ranked, func(a, b *result.Series) int { return cmp.Compare(peak(b), peak(a)) })
	more = len(ranked) - maxLines
	ranked = ranked[:maxLines]
	return slices.DeleteFunc(best, func(s *result.Series) bool { return !slices.Contains(ranked, s) }), more
}

func peak(s *result.Series) int64 {
	p := int64(0)
	for _, v := range s.Values {
		p = max(p, v)
	}
	return p
}

// peakAt returns when the peak was.
func peakAt(s *result.Series) sim.Time {
	best := 0
	for i, v := range s.Values {
		if v > s.Values[best] {
			best = i
		}
	}
	return s.Start + sim.Time(best)*s.Step
}

// points returns the envelope of a series, its values multiplied.
func points(s *result.Series, by float64) []plot.XY {
	keep := plot.Envelope(s.Values, linePoints)
	pts := make([]plot.XY, len(keep))
	for i, k := range keep {
		pts[i] = plot.XY{X: float64(s.Start + sim.Time(k)*s.Step), Y: float64(s.Values[k]) * by}
	}
	return plot.Thin(pts)
}

func timeAxis(r *result.Run) plot.Axis {
	return plot.Axis{Label: "time", Of: plot.Time, To: float64(max(r.End, sim.Nanosecond)), Zoom: true}
}

func moreNote(more int, of string) []string {
	if more <= 0 {
		return nil
	}
	return []string{commas(uint64(more)) + " more " + of + " with lower peaks are not drawn."}
}

// thresholds returns the marking levels of the queues that are drawn; those of
// the shape where ports do not say theirs. Different ones are all drawn.
func thresholds(r *result.Run, drawn []*result.Series) []plot.Level {
	var ls []plot.Level
	add := func(name string, at int64, ink plot.Ink) {
		name += " " + bytesText(at)
		if at > 0 && !slices.ContainsFunc(ls, func(l plot.Level) bool { return l.Name == name }) && len(ls) < 6 {
			ls = append(ls, plot.Level{Name: name, Y: float64(at), Ink: ink})
		}
	}
	both := func(kmin, kmax int64) {
		if kmin == kmax {
			add("Kmin = Kmax", kmin, plot.Warn)
			return
		}
		add("Kmin", kmin, plot.Warn)
		add("Kmax", kmax, plot.Warn)
	}
	for _, s := range drawn {
		if p := at(r, s.Node, s.Port); p != nil {
			q := &p.Prio[s.Prio%8]
			if q.KMin == 0 && q.KMax == 0 && r.Shape.Lossless&(1<<(s.Prio%8)) != 0 {
				both(r.Shape.KMin, r.Shape.KMax)
			} else {
				both(q.KMin, q.KMax)
			}
		}
	}
	return ls
}

func queueChart(r *result.Run) *plot.Drawing {
	drawn, more := top(r, result.QueueBytes)
	if len(drawn) == 0 {
		return nil
	}
	n := names{r}
	c := plot.Chart{
		Title: "Egress queues", X: timeAxis(r), Y: plot.Axis{Label: "waiting at the egress", Of: plot.Bytes},
		Levels: thresholds(r, drawn), Notes: moreNote(more, "queues"),
	}
	var desc []string
	for _, s := range drawn {
		name := n.port(s.Node, s.Port) + " p" + string(rune('0'+s.Prio%8))
		c.Lines = append(c.Lines, plot.Line{Name: name, Points: points(s, 1)})
		desc = append(desc, name+" reaches "+bytesText(peak(s))+" at "+timeText(peakAt(s)))
	}
	xoff := int64(0)
	for i := range r.Pauses {
		p := &r.Pauses[i]
		if !p.On || p.Refresh {
			continue
		}
		if p.Cause == result.CauseBuffer && p.Limit > 0 && (xoff == 0 || p.Limit < xoff) {
			xoff = p.Limit
		}
		if len(c.Events) < maxEventsAt {
			c.Events = append(c.Events, plot.Event{X: float64(p.At)})
		}
	}
	if xoff > 0 {
		c.Levels = append(c.Levels, plot.Level{Name: "XOFF " + bytesText(xoff), Y: float64(xoff), Ink: plot.Bad})
		c.Notes = append(c.Notes, "XOFF: the lowest limit at which an ingress stopped its neighbour. It is compared with what came in by that ingress, not with one queue.")
	}
	if len(c.Events) > 0 {
		c.EventsName = "instants at which somebody was stopped (XOFF)"
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

func sentence(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

// flowChart draws series of flows: the largest flows, where there are too many.
func flowChart(r *result.Run, kind result.SeriesKind, title, label string, of plot.Quantity) *plot.Drawing {
	var all []*result.Series
	for i := range r.Series {
		if s := &r.Series[i]; s.Kind == kind && peak(s) > 0 && s.Flow >= 0 && int(s.Flow) < len(r.Flows) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	drawn := all
	if len(all) > maxLines {
		drawn = spread(r, all)
	}
	by := 1.0
	if kind == result.FlowAlpha {
		by = 1.0 / (1 << 32)
	}
	n := names{r}
	c := plot.Chart{Title: title, X: timeAxis(r), Y: plot.Axis{Label: label, Of: of}}
	var desc []string
	for _, s := range drawn {
		name := n.flow(s.Flow)
		c.Lines = append(c.Lines, plot.Line{Name: name, Points: points(s, by), Step: kind == result.FlowRC})
		low, high := extremes(s)
		if kind == result.FlowAlpha {
			desc = append(desc, name+" between "+digits(float64(low)*by, 3)+" and "+digits(float64(high)*by, 3))
		} else {
			desc = append(desc, name+" between "+rateText(sim.Rate(low))+" and "+rateText(sim.Rate(high)))
		}
	}
	if more := len(all) - len(drawn); more > 0 {
		c.Notes = []string{commas(uint64(more)) + " more flows are not drawn; of each group the largest are."}
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

func extremes(s *result.Series) (low, high int64) {
	for i, v := range s.Values {
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// spread chooses series so that every group has its share: the largest flow of
// each group, then the second, ….
func spread(r *result.Run, all []*result.Series) []*result.Series {
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b *result.Series) int {
		return cmp.Compare(r.Flows[b.Flow].Bytes, r.Flows[a.Flow].Bytes)
	})
	turn := map[string]int{} // looked up, never walked
	turns := make(map[*result.Series]int, len(ranked))
	for _, s := range ranked {
		g := r.Flows[s.Flow].Group
		turns[s] = turn[g]
		turn[g]++
	}
	slices.SortStableFunc(ranked, func(a, b *result.Series) int { return cmp.Compare(turns[a], turns[b]) })
	ranked = ranked[:maxLines]
	return slices.DeleteFunc(slices.Clone(all), func(s *result.Series) bool { return !slices.Contains(ranked, s) })
}

// markChart draws CE marks and CNPs: the sums, and the ports that marked most.
func markChart(r *result.Run) *plot.Drawing {
	c := plot.Chart{Title: "CE marks and CNPs in each interval", X: timeAxis(r), Y: plot.Axis{Label: "packets", Of: plot.Count}}
	var desc []string
	add := func(kind result.SeriesKind, name string) {
		if s := sumSeries(r, kind); s != nil {
			total := int64(0)
			for _, v := range s.Values {
				total += v
			}
			c.Lines = append(c.Lines, plot.Line{Name: name + ", all", Points: points(s, 1)})
			desc = append(desc, countText(uint64(total))+" "+name)
		}
	}
	add(result.MarkRate, "CE marks")
	add(result.CNPRate, "CNPs")
	if len(c.Lines) == 0 {
		return nil
	}
	n := names{r}
	ports, _ := top(r, result.MarkRate)
	if len(ports) > 1 {
		for _, s := range ports[:min(len(ports), maxLines-len(c.Lines))] {
			c.Lines = append(c.Lines, plot.Line{Name: "CE marks, " + n.series(s), Points: points(s, 1)})
		}
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

// sumSeries adds the series of a kind that are sampled as the first is; nil if
// there is nothing but zeros.
func sumSeries(r *result.Run, kind result.SeriesKind) *result.Series {
	var sum *result.Series
	for i := range r.Series {
		s := &r.Series[i]
		if s.Kind != kind {
			continue
		}
		if sum == nil {
			sum = &result.Series{Start: s.Start, Step: s.Step}
		}
		if s.Start != sum.Start || s.Step != sum.Step {
			continue
		}
		for len(sum.Values) < len(s.Values) {
			sum.Values = append(sum.Values, 0)
		}
		for j, v := range s.Values {
			sum.Values[j] += v
		}
	}
	if sum == nil || peak(sum) == 0 {
		return nil
	}
	return sum
}

func portChart(r *result.Run) *plot.Drawing {
	drawn, more := top(r, result.PortRate)
	if len(drawn) == 0 {
		return nil
	}
	n := names{r}
	c := plot.Chart{Title: "What left ports", X: timeAxis(r), Y: plot.Axis{Label: "rate", Of: plot.Rate}, Notes: moreNote(more, "ports")}
	var desc []string
	for _, s := range drawn {
		name := n.series(s)
		c.Lines = append(c.Lines, plot.Line{Name: name, Points: points(s, 1)})
		desc = append(desc, name+" up to "+rateText(sim.Rate(peak(s))))
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

// pausedChart draws the share of each interval in which an egress was stopped.
func pausedChart(r *result.Run) *plot.Drawing {
	drawn, more := top(r, result.PausedShare)
	if len(drawn) == 0 {
		return nil
	}
	n := names{r}
	c := plot.Chart{
		Title: "Share of each interval in which an egress was stopped", X: timeAxis(r),
		Y: plot.Axis{Label: "stopped", Of: plot.Share, To: 1}, Notes: moreNote(more, "egresses"),
	}
	var desc []string
	for _, s := range drawn {
		name := n.series(s) + " p" + string(rune('0'+s.Prio%8))
		c.Lines = append(c.Lines, plot.Line{Name: name, Points: points(s, 1/float64(max(1, s.Step)))})
		desc = append(desc, name+" up to "+shareText(float64(peak(s)), float64(s.Step)))
	}
	c.Desc = sentence(desc)
	return c.Draw()
}

// nodeChart draws bytes that nodes hold.
func nodeChart(r *result.Run, kind result.SeriesKind, title string) *plot.Drawing {
	drawn, more := top(r, kind)
	if len(drawn) == 0 {
		return nil
	}
	n := names{r}
	c := plot.Chart{Title: title, X: timeAxis(r), Y: plot.Axis{Label: "in use", Of: plot.Bytes}, Notes: moreNote(more, "nodes")}
	var desc []string
	for _, s := range drawn {
		name := n.series(s)
		c.Lines = append(c.Lines, plot.Line{Name: name, Points: points(s, 1)})
		desc = append(desc, name+" up to "+bytesText(peak(s)))
		if s.Node < 0 || int(s.Node) >= len(r.Nodes) {
			continue
		}
		limit := plot.Level{Name: "all of it", Ink: plot.Bad}
		if limit.Y = float64(r.Nodes[s.Node].Buffer.Shared); kind == result.HostQueue {
			limit.Y = float64(r.Nodes[s.Node].Host.RxBuffer)
		}
		limit.Name = "size " + bytesText(limit.Y)
		if limit.Y > 0 && !slices.Contains(c.Levels, limit) {
			c.Levels = append(c.Levels, limit)
		}
	}
	c.Desc = sentence(desc)
	return c.Draw()
}
