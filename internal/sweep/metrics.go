package sweep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/internal/play"
)

// usual are metrics that every run has, kept of each.
func usual() []string { return []string{"marks", "cnps", "pauses", "drops", "retransmitted", "end"} }

// maxGroups is how many workloads have a column by themselves.
const maxGroups = 3

// Defaults returns the metrics of a scenario where none are asked for: goodput
// of single flows, completion times of others, marks, pauses, losses.
func Defaults(sc *scenario.Scenario) []string {
	var out []string
	for _, g := range groups(sc) {
		if len(out) >= 2*maxGroups {
			break
		}
		if w := g.w; w.Kind == scenario.Long && len(w.Src) == 1 || w.Bytes == 0 && w.Kind == scenario.Long {
			out = append(out, "flow."+g.name+".goodput")
			continue
		}
		out = append(out, "flow."+g.name+".fct.p50", "flow."+g.name+".fct.p99")
	}
	return append(out, "marks", "pauses", "drops")
}

type group struct {
	name string
	w    *scenario.Workload
}

func groups(sc *scenario.Scenario) []group {
	var out []group
	for i := range sc.Workload {
		w := &sc.Workload[i]
		name := cmp.Or(w.Name, string(w.Kind))
		if !slices.ContainsFunc(out, func(g group) bool { return g.name == name }) {
			out = append(out, group{name, w})
		}
	}
	return out
}

// checkMetrics says which metric no run of the scenario can have: it is asked of
// a result of its own making, in which every workload has a finished flow.
func checkMetrics(sc *play.Reading, files *play.Files, names []string) error {
	for i := range sc.Workload {
		if sc.Workload[i].Kind == scenario.Trace {
			return nil // names of its flows are in a file
		}
	}
	run, _, err := sc.Load(files)
	if err != nil {
		return err
	}
	r := run.Result()
	r.End = sim.Microsecond
	r.Flows = nil
	for _, g := range groups(sc.Scenario) {
		r.Flows = append(r.Flows, result.Flow{Group: g.name, State: result.Finished, Finish: sim.Microsecond, Base: sim.Microsecond, Bytes: 1, Delivered: 1})
	}
	for _, name := range names {
		if _, err := metric.Of(r, name); err != nil {
			return fmt.Errorf("--metric: %w", err)
		}
	}
	return nil
}

// measure reads metrics off a result.
func measure(r *result.Run, names []string) map[string]Cell {
	out := map[string]Cell{}
	for _, name := range names {
		v, err := metric.Of(r, name)
		c := Cell{Value: v}
		if err != nil {
			c.Err = err.Error()
		}
		out[name] = c
	}
	return out
}

func sortCells(list []Cell) {
	slices.SortFunc(list, func(a, b Cell) int { return cmp.Compare(a.V, b.V) })
}

// cellOf is a cell in a file.
func cellOf(c Cell) lineCell {
	if c.Err != "" {
		return lineCell{Err: c.Err}
	}
	v := c.V
	return lineCell{Value: &v, Unit: play.UnitName(c.Unit)}
}
