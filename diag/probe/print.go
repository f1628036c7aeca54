package probe

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// Print writes a result for people: a table of both directions, then the
// findings, worst first.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.Host)
	if r.Address.IsValid() && r.Host != r.Address.String() {
		fmt.Fprintf(&b, " (%v)", r.Address)
	}
	if r.Local.IsValid() {
		fmt.Fprintf(&b, " from %v", r.Local)
	}
	fmt.Fprintf(&b, ": %s\n", strings.ToUpper(r.Status.String()))
	if r.Error == "" {
		r.table(&b)
	}
	for _, f := range r.Findings {
		f.print(&b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table is the part with the numbers.
func (r *Result) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name string, f func(*Direction) string) {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", name, f(&r.Forward), f(&r.Reverse))
	}
	fmt.Fprintf(t, "\n  \tto %v\tfrom %v\n", r.Address, r.Address)
	row("UDP 4791", func(d *Direction) string {
		if d.HeardBy == "capture" {
			return string(d.Verdict) + " (at the interface)"
		}
		return string(d.Verdict)
	})
	row("lost", func(d *Direction) string { return fmt.Sprintf("%d of %d", d.Sent-d.Seen, d.Sent) })
	row("reordered", func(d *Direction) string { return fmt.Sprint(d.Reordered) })
	row("path MTU", func(d *Direction) string {
		switch {
		case d.MTU.Path == 0:
			return "-"
		case d.MTU.Limited:
			return fmt.Sprintf("%d of the interface's %d, RoCE %d", d.MTU.Path, d.MTU.Interface, d.MTU.RoCE)
		}
		return fmt.Sprintf("%d, RoCE %d", d.MTU.Path, d.MTU.RoCE)
	})
	row("DSCP", func(d *Direction) string { return d.dscpText() })
	row("ECN", func(d *Direction) string { return d.ecnText() })
	row("bursts", func(d *Direction) string {
		if d.Burst.Sent == 0 {
			return "-"
		}
		s := fmt.Sprintf("%d of %d × %d B", d.Burst.Seen, d.Burst.Sent, d.Burst.Size)
		if d.Burst.Rate > 0 {
			s += " at " + bitRate(d.Burst.Rate)
		}
		return s
	})
	row("one way", func(d *Direction) string { return d.OneWay.String() })
	_ = t.Flush()
	fmt.Fprintln(t)
	fmt.Fprintf(t, "  source port\tround trip\tone way there\tone way back\tTTL there, back\n")
	for i := range r.Forward.Paths {
		f, v := r.Forward.Paths[i], Path{}
		if i < len(r.Reverse.Paths) {
			v = r.Reverse.Paths[i]
		}
		rtt := Times{}
		if i < len(r.RTT) {
			rtt = r.RTT[i]
		}
		fmt.Fprintf(t, "  %d\t%v\t%v\t%v\t%d, %d\n", f.Port, rtt, f.OneWay, v.OneWay, f.TTL, v.TTL)
	}
	_ = t.Flush()
	if r.Clock.Source != "" {
		fmt.Fprintf(w, "  times are min/median/max. The other clock is %v ahead, ± %v, by %s: a way that is slower in one direction\n"+
			"  shifts the one-way times by up to that; round trips need no clock\n",
			r.Clock.Offset.Round(time.Microsecond), r.Clock.Error.Round(time.Microsecond), map[string]string{"echo": "the quickest echo on UDP 4791", "control": "the control channel"}[r.Clock.Source])
	}
}

// String writes min/median/max.
func (t Times) String() string {
	if t.N == 0 {
		return "-"
	}
	r := func(d time.Duration) string { return d.Round(time.Microsecond).String() }
	return r(t.Min) + "/" + r(t.Median) + "/" + r(t.Max)
}

func (d *Direction) dscpText() string {
	var changed []string
	n := 0
	for i := range d.DSCP {
		c := &d.DSCP[i]
		if c.Arrived > 0 {
			n++
		}
		if as, yes := c.became(); yes {
			changed = append(changed, fmt.Sprintf("%d→%d", c.Sent, as))
		}
		if c.Arrived == 0 {
			changed = append(changed, fmt.Sprintf("%d lost", c.Sent))
		}
	}
	switch {
	case len(changed) > 0:
		return strings.Join(changed, " ")
	case n == 0:
		return "-"
	}
	return fmt.Sprintf("unchanged (%d values)", n)
}

func (d *Direction) ecnText() string {
	var changed []string
	n := 0
	for i := range d.ECN {
		c := &d.ECN[i]
		if c.Arrived > 0 {
			n++
		}
		if as, yes := c.became(); yes {
			changed = append(changed, fmt.Sprintf("%v→%v", ip.ECN(c.Sent), ip.ECN(as)))
		}
	}
	switch {
	case len(changed) > 0:
		return strings.Join(changed, " ")
	case n == 0:
		return "-"
	}
	return "survives"
}

func (f *Finding) print(w io.Writer) {
	id := f.ID
	if f.Rule != "" {
		id += " " + f.Rule
	}
	fmt.Fprintf(w, "\n%s [%s] %s\n", strings.ToUpper(f.Status.String()), id, f.What)
	for _, e := range f.Evidence {
		fmt.Fprintf(w, "  seen:        %s\n", e)
	}
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-12s %s\n", name+":", text)
		}
	}
	line("queue pair", f.Effect.What)
	line("state", f.Effect.State)
	line("completion", f.Effect.Completion)
	line("counters", strings.Join(f.Effect.Counters, "; "))
	for _, x := range f.Fix {
		line("fix", x)
	}
	line("confidence", f.Confidence)
}
