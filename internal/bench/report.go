package bench

import (
	"fmt"
	"io"
	"strings"
)

func writeHead(out io.Writer, r *Report) {
	m := &r.Machine
	fmt.Fprintf(out, "%s, %d × %s, %s %s, %s", m.Time, m.CPUs, or(m.CPU, "processor"), m.OS, m.Kernel, m.Go)
	fmt.Fprintf(out, ", %s; load %s\n", or(m.Iperf, "no iperf3"), or(m.LoadBefore, "unknown"))
	fmt.Fprintf(out, "%d rounds of %d ms each, seed %d. Ratios are medians of paired ratios, in brackets their quartiles.\n", r.Rounds, r.SlotMS, r.Seed)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// nameWidth is the width of the first column.
const nameWidth = 48

func writeGroup(out io.Writer, title string, rows []Result) {
	fmt.Fprintf(out, "\n%-*s %9s %9s  %-20s %-6s %-6s\n", nameWidth, title, "A", "B", "A ÷ B", "goal", "floor")
	for i := range rows {
		r := &rows[i]
		name := strings.TrimPrefix(r.Name, title+" ")
		switch {
		case r.Skipped != "":
			fmt.Fprintf(out, "  %-*s skipped: %s\n", nameWidth-2, name, r.Skipped)
			continue
		case r.Failed != "":
			fmt.Fprintf(out, "  %-*s FAILED: %s\n", nameWidth-2, name, r.Failed)
			continue
		}
		fmt.Fprintf(out, "  %-*s %9s %9s  %-20s %-6s %-6s %-12s", nameWidth-2, name+" ("+string(r.Metric)+")",
			number(r.Ours.Median), number(r.Theirs.Median), ratio(&r.Ratio), bound(r, r.Goal), bound(r, r.Floor), string(r.Verdict))
		if r.Resent > 0 {
			fmt.Fprintf(out, " %d packets sent again", r.Resent)
		}
		fmt.Fprintln(out)
	}
}

func number(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func ratio(s *Spread) string {
	if s.Median == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f–%.2f]", s.Median, s.Q1, s.Q3)
}

func bound(r *Result, v float64) string {
	switch {
	case v == 0:
		return "-"
	case r.Metric.LessIsBetter():
		return fmt.Sprintf("≤%.2f", v)
	}
	return fmt.Sprintf("≥%.2f", v)
}

// writeEnd counts the verdicts and names what falls short.
func writeEnd(out io.Writer, r *Report) {
	n := map[Verdict]int{}
	var short []string
	skipped, failed := 0, 0
	for i := range r.Rows {
		row := &r.Rows[i]
		switch {
		case row.Skipped != "":
			skipped++
		case row.Failed != "":
			failed++
			short = append(short, "FAILED       "+row.Name)
		default:
			n[row.Verdict]++
			if row.Verdict == BelowFloor || row.Verdict == BelowGoal {
				short = append(short, fmt.Sprintf("%-12s %s: %.2f, goal %s, floor %s", row.Verdict, row.Name, row.Ratio.Median, bound(row, row.Goal), bound(row, row.Floor)))
			}
		}
	}
	fmt.Fprintf(out, "\n%d rows reach their goal, %d only their floor, %d do not; %d have none; %d failed, %d skipped. Load %s\n",
		n[OK], n[BelowGoal], n[BelowFloor], n[NoGoal], failed, skipped, or(r.Machine.LoadAfter, "unknown"))
	for _, s := range short {
		fmt.Fprintln(out, "  "+s)
	}
}
