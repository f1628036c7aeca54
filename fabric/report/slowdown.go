package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// SlowdownRow is one of twenty equal shares of the finished flows, by size.
type SlowdownRow struct {
	From          int   // percent of the flows that are smaller
	Flows         int   // in the share
	Size          int64 // largest flow of it, bytes
	P50, P95, P99 float64
}

// slowdownStep is the share of the flows in a row, in percent.
const slowdownStep = 5

// Slowdowns returns the table of HPCC's fct_analysis.py: finished flows sorted
// by size (then number) in shares of 5 %, and of each share percentiles of
// max(1, FCT/standalone FCT). Shares without flows are left out.
//
// Deviation: percentiles are by nearest rank; the script takes the value at
// index int(n·p), which is one rank higher when n·p is whole. The script leaves
// out the largest flow of a file; here it counts.
func Slowdowns(r *result.Run) []SlowdownRow {
	type sized struct {
		size int64
		slow float64
	}
	var fs []sized
	for i := range r.Flows {
		if s := r.Flows[i].Slowdown(); s > 0 {
			fs = append(fs, sized{r.Flows[i].Bytes, s})
		}
	}
	slices.SortStableFunc(fs, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	var rows []SlowdownRow
	for p := 0; p < 100; p += slowdownStep {
		part := fs[p*len(fs)/100 : (p+slowdownStep)*len(fs)/100]
		if len(part) == 0 {
			continue
		}
		slow := make([]float64, len(part))
		for i := range part {
			slow[i] = part[i].slow
		}
		slices.Sort(slow)
		rows = append(rows, SlowdownRow{
			From: p, Flows: len(part), Size: part[len(part)-1].size,
			P50: Percentile(slow, 50), P95: Percentile(slow, 95), P99: Percentile(slow, 99),
		})
	}
	return rows
}

// WriteSlowdown writes the rows as HPCC's fct_analysis.py prints them: share of
// the flows that are smaller, size in bytes, tab, median, p95, p99.
func WriteSlowdown(w io.Writer, rows []SlowdownRow) error {
	o := newOut(w)
	for _, r := range rows {
		fmt.Fprintf(o, "%.3f %d\t%.3f %.3f %.3f\n", float64(r.From)/100, r.Size, r.P50, r.P95, r.P99)
	}
	return o.Flush()
}
