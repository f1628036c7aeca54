package metric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// quantity is one number of a flow; ok is false where it has none.
type quantity struct {
	unit Unit
	of   string // what is meant without a statistic
	get  func(r *result.Run, f *result.Flow) (v float64, ok bool)
}

func counter(get func(f *result.Flow) uint64) quantity {
	return quantity{Number, "sum", func(_ *result.Run, f *result.Flow) (float64, bool) { return float64(get(f)), true }}
}

// Goodput returns the payload that arrived over the time from the start to the
// last acknowledgement or, of a flow that is not finished, to the end.
func Goodput(r *result.Run, f *result.Flow) sim.Rate {
	if f.State == result.Waiting {
		return 0
	}
	end := r.End
	if f.State == result.Finished {
		end = f.Finish
	}
	return sim.RateOf(f.Delivered, end-f.Start)
}

func quantityOf(name string) (quantity, bool) {
	switch name {
	case "goodput":
		return quantity{Bits, "mean", func(r *result.Run, f *result.Flow) (float64, bool) {
			return float64(Goodput(r, f)), f.State != result.Waiting
		}}, true
	case "fct":
		return quantity{Time, "max", func(_ *result.Run, f *result.Flow) (float64, bool) {
			return float64(f.FCT()), f.State == result.Finished
		}}, true
	case "slowdown":
		return quantity{Number, "max", func(_ *result.Run, f *result.Flow) (float64, bool) {
			return f.Slowdown(), f.State == result.Finished
		}}, true
	case "rate":
		return quantity{Bits, "mean", func(_ *result.Run, f *result.Flow) (float64, bool) { return float64(f.LastRate), true }}, true
	case "min_rate":
		return quantity{Bits, "mean", func(_ *result.Run, f *result.Flow) (float64, bool) { return float64(f.MinRate), true }}, true
	case "delivered":
		return quantity{Bytes, "sum", func(_ *result.Run, f *result.Flow) (float64, bool) { return float64(f.Delivered), true }}, true
	case "bytes":
		return quantity{Bytes, "sum", func(_ *result.Run, f *result.Flow) (float64, bool) { return float64(f.Bytes), true }}, true
	case "marks":
		return counter(func(f *result.Flow) uint64 { return f.Marks }), true
	case "cnps":
		return counter(func(f *result.Flow) uint64 { return f.CNPs }), true
	case "cnps_handled":
		return counter(func(f *result.Flow) uint64 { return f.CNPsHandled }), true
	case "packets":
		return counter(func(f *result.Flow) uint64 { return f.Packets }), true
	case "retransmitted":
		return counter(func(f *result.Flow) uint64 { return f.Retransmitted }), true
	case "naks":
		return counter(func(f *result.Flow) uint64 { return f.NAKs }), true
	case "timeouts":
		return counter(func(f *result.Flow) uint64 { return f.Timeouts }), true
	}
	return quantity{}, false
}

// flow reads a number of the flows of a workload.
func flow(r *result.Run, name, what string, rest []string) (Value, error) {
	var flows []*result.Flow
	for i := range r.Flows {
		if name == "*" || r.Flows[i].Group == name {
			flows = append(flows, &r.Flows[i])
		}
	}
	if len(flows) == 0 {
		return Value{}, fmt.Errorf("no flow is of workload %q", name)
	}
	if len(rest) == 0 {
		if v, ok := group(r, flows, what); ok {
			return v, nil
		}
	}
	q, ok := quantityOf(what)
	if !ok {
		return Value{}, fmt.Errorf("unknown quantity %q", what)
	}
	of := q.of
	switch len(rest) {
	case 0:
	case 1:
		of = rest[0]
	default:
		return Value{}, fmt.Errorf("unknown statistic %q", strings.Join(rest, "."))
	}
	var vals []float64
	for _, f := range flows {
		if v, ok := q.get(r, f); ok {
			vals = append(vals, v)
		}
	}
	if len(vals) == 0 {
		return Value{}, fmt.Errorf("no flow of %q has a %s: none is finished", name, what)
	}
	v, err := statistic(vals, of)
	return Value{v, q.unit}, err
}

// group reads a number of several flows together.
func group(r *result.Run, flows []*result.Flow, what string) (Value, bool) {
	n := 0
	switch what {
	case "count":
		return count(len(flows)), true
	case "finished", "failed":
		want := result.Finished
		if what == "failed" {
			want = result.Failed
		}
		for _, f := range flows {
			if f.State == want {
				n++
			}
		}
		return count(n), true
	case "jain":
		sum, squares := 0.0, 0.0
		for _, f := range flows {
			g := float64(Goodput(r, f))
			sum += g
			squares += float64(g * g)
		}
		if squares == 0 {
			return Value{}, true
		}
		return Value{V: sum * sum / (float64(len(flows)) * squares)}, true
	case "makespan":
		from, to := sim.Never, sim.Time(0)
		for _, f := range flows {
			from = min(from, f.Start)
			if f.State == result.Finished {
				to = max(to, f.Finish)
			} else {
				to = max(to, r.End)
			}
		}
		return Value{float64(to - from), Time}, true
	}
	return Value{}, false
}

// statistic is one number for several. Percentiles are by nearest rank.
func statistic(v []float64, of string) (float64, error) {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	switch of {
	case "sum":
		return sum, nil
	case "mean":
		return sum / float64(len(v)), nil
	case "min":
		return slices.Min(v), nil
	case "max":
		return slices.Max(v), nil
	}
	p, err := strconv.Atoi(strings.TrimPrefix(of, "p"))
	if err != nil || of[0] != 'p' || p < 1 || p > 100 {
		return 0, fmt.Errorf("unknown statistic %q: give min, max, mean, sum or p1 to p100", of)
	}
	slices.Sort(v)
	return v[(p*len(v)+99)/100-1], nil
}
