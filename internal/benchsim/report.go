package benchsim

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// write prints the report.
func write(out io.Writer, r *Report) {
	m := &r.Machine
	cpu := m.CPU
	if cpu == "" {
		cpu = "processor"
	}
	fmt.Fprintf(out, "%s, %d × %s, %s, %s; load %s\n", m.Time, m.CPUs, cpu, m.OS, m.Go, m.Load)
	fmt.Fprintln(out, "Hops are of data packets; an acknowledgement is asked for as the ACK column says, crosses the same links and is not counted.")
	fmt.Fprintln(out, "Rates are over the processor time of the whole process, best of the runs (median in brackets).")
	fmt.Fprintln(out)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "case\thosts\tflows\tdata hops\tevents\tCPU s\tset-up s\tM hops/s\tM events/s\tpeak MB\tACK hops\tACK every\tDCQCN\tpauses\tdrops\tsimulated us\tallocations\t")
	for i := range r.Cases {
		c := &r.Cases[i]
		f := &c.Best
		if c.Failed != "" {
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%.2f (%.2f)\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t%d\t%s\t%d\t%d\t%.0f\t%d\t\n",
			f.Case, f.Hosts, f.Flows, f.DataHops, f.Events, f.CPUSeconds, median(c.All), f.SetupSeconds, f.HopsPerSecond()/1e6, f.EventsPerSecond()/1e6,
			float64(f.PeakBytes)/1e6, f.AckHops, f.AckEvery, f.Preset, f.Pauses, f.Drops, f.Micros, f.Allocs)
	}
	_ = tw.Flush()
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Failed != "" {
			fmt.Fprintln(out, "FAILED", c.Failed)
		}
	}
	writeRows(out, r)
	writeRivals(out, r)
}

func writeRows(out io.Writer, r *Report) {
	if len(r.Rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "row\tmeasured\tgoal\tfloor\t÷ goal\t")
	for i := range r.Rows {
		j := &r.Rows[i]
		name := j.Case + ", " + string(j.Metric)
		if j.Than != "" {
			name += " of " + j.Than
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%s\t%s\t%.2f\t%s\n", name, j.Value, j.bound(j.Goal), j.bound(j.Floor), j.Value/j.Goal, j.Verdict)
	}
	_ = tw.Flush()
}

func (r *Row) bound(v float64) string {
	switch {
	case v == 0:
		return "-"
	case r.Metric.LessIsBetter():
		return fmt.Sprintf("≤ %.4g", v)
	}
	return fmt.Sprintf("≥ %.4g", v)
}

func writeRivals(out io.Writer, r *Report) {
	head := false
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range r.Rivals {
		v := &r.Rivals[i]
		f := r.find(v.Case)
		if f == nil {
			continue
		}
		if !head {
			head = true
			fmt.Fprintln(tw, "\nbeside others (measured once on a machine of this kind, data hops)\tM hops/s\tours ÷ theirs\t")
		}
		theirs, ratio := "-", "-"
		if v.Hops > 0 {
			theirs, ratio = fmt.Sprintf("%.3f", v.Hops), fmt.Sprintf("%.1f", f.HopsPerSecond()/1e6/v.Hops)
		}
		fmt.Fprintf(tw, "%s: %s\t%s\t%s\t%s\n", v.Case, v.Name, theirs, ratio, v.Note)
	}
	_ = tw.Flush()
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
