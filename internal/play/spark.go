package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// sparkWidth is how many marks a line over time has.
const sparkWidth = 48

// marks are the heights of a line over time. The lowest is not nothing: nothing
// is a blank.
var marks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// spark draws values of a series as heights, from 0 to top, over the time from
// 0 to end; where from and to leave the flow out it is blank.
func spark(s *result.Series, end, from, to sim.Time, top int64, peaks bool) string {
	if end <= 0 || top <= 0 || s.Step <= 0 || len(s.Values) == 0 {
		return ""
	}
	out := make([]rune, sparkWidth)
	for c := range out {
		a, b := end/sparkWidth*sim.Time(c), end/sparkWidth*sim.Time(c+1)
		if out[c] = ' '; b <= from || a >= to {
			continue
		}
		v, ok := over(s, max(a, from), min(b, to), peaks)
		if !ok {
			continue
		}
		v = min(max(v, 0), top)
		out[c] = marks[min(int(float64(v)/float64(top)*float64(len(marks))), len(marks)-1)]
	}
	return string(out)
}

// over joins the samples of a stretch of time: their mean, or the largest.
func over(s *result.Series, a, b sim.Time, peaks bool) (v int64, ok bool) {
	// Sample i is of the step that ends at Start + i·Step.
	first := max(0, int((a-s.Start)/s.Step))
	if a > s.Start && (a-s.Start)%s.Step != 0 {
		first++
	}
	last := min(len(s.Values)-1, int((b-s.Start)/s.Step))
	if last < first {
		last = first
	}
	if first >= len(s.Values) || b < s.Start-s.Step {
		return 0, false
	}
	n := int64(last - first + 1)
	for _, x := range s.Values[first : last+1] {
		if peaks {
			v = max(v, x)
		} else {
			v += x / n
		}
	}
	return v, true
}

// tellTime writes rates of flows, the longest queues and who was stopped over
// time.
func tellTime(w io.Writer, r *result.Run) {
	g := NewGrid("<what", "<of", "<over time", "<scale")
	n := names{r}
	for _, id := range tellingFlows(r, 3) {
		f := &r.Flows[id]
		to := r.End
		if f.State == result.Finished {
			to = f.Finish
		}
		for _, k := range []struct {
			kind result.SeriesKind
			what string
		}{{result.FlowRate, "goodput"}, {result.FlowRC, "R_C"}} {
			s := series(r, k.kind, -1, -1, id)
			if s == nil || k.kind == result.FlowRC && r.Shape.Preset == "off" {
				continue
			}
			top := int64(n.line(f))
			if line := spark(s, r.End, f.Start, to, top, false); line != "" {
				g.Row(k.what, n.flow(id), line, "0 to "+rateText(sim.Rate(top)))
			}
		}
	}
	for _, q := range []struct {
		kind  result.SeriesKind
		what  string
		most  int
		peaks bool
		text  func(top int64, s *result.Series) string
	}{
		{result.QueueBytes, "queue", 2, true, func(top int64, _ *result.Series) string { return "0 to " + bytesText(top) }},
		{result.MarkRate, "marks", 1, false, func(_ int64, s *result.Series) string { return plural(sum(s), "mark") }},
		{result.PausedShare, "stopped", 2, false, func(_ int64, s *result.Series) string {
			return timeText(sim.Time(sum(s))) + " in all"
		}},
	} {
		for _, s := range highest(r, q.kind, q.most) {
			top := slices.Max(s.Values)
			if q.kind == result.PausedShare {
				top = int64(s.Step)
			}
			if line := spark(s, r.End, 0, r.End, top, q.peaks); line != "" {
				g.Row(q.what, fmt.Sprintf("%s p%d", n.port(s.Node, s.Port), s.Prio), line, q.text(top, s))
			}
		}
	}
	g.write(w, "OVER TIME, 0 to "+timeText(r.End))
}

func sum(s *result.Series) uint64 {
	n := uint64(0)
	for _, v := range s.Values {
		n += uint64(max(0, v))
	}
	return n
}

// series finds a recorded quantity; nil if there is none.
func series(r *result.Run, kind result.SeriesKind, node, port, flow int32) *result.Series {
	for i := range r.Series {
		s := &r.Series[i]
		if s.Kind == kind && s.Flow == flow && (flow >= 0 || s.Node == node && s.Port == port) {
			return s
		}
	}
	return nil
}

// highest returns the series of ports of a kind with the highest peaks, or sums
// where they are of time, highest first.
func highest(r *result.Run, kind result.SeriesKind, most int) []*result.Series {
	type ranked struct {
		s *result.Series
		v uint64
	}
	var all []ranked
	for i := range r.Series {
		s := &r.Series[i]
		if s.Kind != kind || s.Flow >= 0 || len(s.Values) == 0 {
			continue
		}
		v := sum(s)
		if kind == result.QueueBytes {
			v = uint64(max(0, slices.Max(s.Values)))
		}
		if v > 0 {
			all = append(all, ranked{s, v})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(b.v, a.v) })
	var out []*result.Series
	for _, x := range all[:min(most, len(all))] {
		out = append(out, x.s)
	}
	return out
}

// tellingFlows picks the flows whose rate says most: of each group the one that
// lived longest, those that have lived through enough samples alone; the
// longest first.
func tellingFlows(r *result.Run, most int) []int32 {
	const enough = 8 // samples
	var ids []int32
	seen := map[string]int{}
	life := func(i int32) sim.Time {
		f := &r.Flows[i]
		switch f.State {
		case result.Waiting:
			return 0
		case result.Finished:
			return f.Finish - f.Start
		case result.Running, result.Failed:
		}
		return r.End - f.Start
	}
	for i := range r.Series {
		s := &r.Series[i]
		id := s.Flow
		if s.Kind != result.FlowRate || id < 0 || life(id) < enough*s.Step {
			continue
		}
		g := r.Flows[id].Group
		if k, ok := seen[g]; !ok {
			seen[g] = len(ids)
			ids = append(ids, id)
		} else if life(id) > life(ids[k]) {
			ids[k] = id
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(life(b), life(a)) })
	return ids[:min(most, len(ids))]
}

// names names what a result has by number. It was read from a file perhaps, but
// its numbers are in range.
type names struct{ r *result.Run }

func (n names) port(node, port int32) string {
	return n.r.Nodes[node].Name + ":" + n.r.Nodes[node].Ports[port].Name
}

func (n names) flow(id int32) string {
	f := &n.r.Flows[id]
	return fmt.Sprintf("%s %d %s → %s", f.Group, f.ID, n.r.Nodes[f.SrcNode].Name, n.r.Nodes[f.DstNode].Name)
}

// line is the rate of the port that sends a flow's data.
func (n names) line(f *result.Flow) sim.Rate {
	if len(f.Path) > 0 {
		return n.r.Nodes[f.Path[0].Node].Ports[f.Path[0].Port].Rate
	}
	if ports := n.r.Nodes[f.SrcNode].Ports; len(ports) > 0 {
		return ports[0].Rate
	}
	return 0
}
