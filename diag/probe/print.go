package probe

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// Print writes a result for people: a table of both directions, then the
// findings, worst first. Lines are broken at width columns, as far as words
// allow; 0 breaks none.
func (r *Result) Print(w io.Writer, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", shown(r.Host))
	if r.Address.IsValid() && r.Host != r.Address.String() {
		fmt.Fprintf(&b, " (%v)", r.Address)
	}
	if r.Local.IsValid() {
		fmt.Fprintf(&b, " from %v", r.Local)
	}
	fmt.Fprintf(&b, ": %s\n", strings.ToUpper(r.Status.String()))
	p := printer{&b, width}
	if r.Error == "" {
		r.table(p)
	}
	for i := range r.Findings {
		r.Findings[i].print(p)
	}
	for _, n := range r.Notes {
		b.WriteByte('\n')
		p.text("note: ", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printer writes lines of a width.
type printer struct {
	b     *strings.Builder
	width int
}

// text writes a text after a label; the lines that follow are indented as far.
func (p printer) text(label, text string) {
	indent := columns(label)
	if p.width > 0 && indent > p.width/2 {
		indent = 4
	}
	line := label
	at, empty := columns(label), true
	for _, word := range strings.Fields(text) {
		n := columns(word)
		if p.width > 0 && !empty && at+1+n > p.width {
			p.b.WriteString(line + "\n")
			line, at, empty = strings.Repeat(" ", indent), indent, true
		}
		if !empty {
			line += " "
			at++
		}
		line += word
		at += n
		empty = false
	}
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func columns(s string) int { return utf8.RuneCountInString(s) }

// grid writes rows of cells, or, where they are too wide, what each column says
// one below the other.
func (p printer) grid(head []string, rows [][]string) {
	wide := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, c := range row {
			wide[i] = max(wide[i], columns(c))
		}
	}
	total := 0
	for _, n := range wide {
		total += 2 + n
	}
	if p.width > 0 && total > p.width {
		p.list(head, rows)
		return
	}
	for _, row := range append([][]string{head}, rows...) {
		line := ""
		for i, c := range row {
			line += "  " + c + strings.Repeat(" ", wide[i]-columns(c))
		}
		p.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func (p printer) list(head []string, rows [][]string) {
	for i := 1; i < len(head); i++ {
		by := ""
		if head[0] != "" {
			by = ", by " + head[0]
		}
		p.text("  ", head[i]+by)
		for _, row := range rows {
			p.text("    "+row[0]+": ", row[i])
		}
	}
}

// table is the part with the numbers.
func (r *Result) table(p printer) {
	var rows [][]string
	row := func(name string, f func(*Direction) string) {
		rows = append(rows, []string{name, f(&r.Forward), f(&r.Reverse)})
	}
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
	p.b.WriteByte('\n')
	p.grid([]string{"", fmt.Sprintf("to %v", r.Address), fmt.Sprintf("from %v", r.Address)}, rows)
	p.b.WriteByte('\n')
	r.paths(p)
	if r.Clock.Source != "" {
		p.text("  ", "times are min/median/max; round trips need no clock")
	}
	if r.Clock.Source != "" && !r.Clock.Unsteady {
		p.text("  ", fmt.Sprintf("The two clocks are not known to agree: the other one seems to be %v ahead, ± %v, by %s, as if it had taken as long there as back. "+
			"One-way times rest on that: their spread is measured, their level may be wrong by as much",
			r.Clock.Offset.Round(time.Microsecond), r.Clock.Error.Round(time.Microsecond), map[string]string{"echo": "the quickest echo on UDP 4791", "control": "the control channel"}[r.Clock.Source]))
	}
}

// paths is the table by source port.
func (r *Result) paths(p printer) {
	head := []string{"source port", "round trip", "one way there", "one way back", "TTL there, back"}
	var rows [][]string
	for i := range r.Forward.Paths {
		f, v := r.Forward.Paths[i], Path{}
		if i < len(r.Reverse.Paths) {
			v = r.Reverse.Paths[i]
		}
		rtt := Times{}
		if i < len(r.RTT) {
			rtt = r.RTT[i]
		}
		rows = append(rows, []string{fmt.Sprint(f.Port), rtt.String(), f.OneWay.String(), v.OneWay.String(), fmt.Sprintf("%d, %d", f.TTL, v.TTL)})
	}
	p.grid(head, rows)
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

func (f *Finding) print(p printer) {
	id := f.ID
	if f.Rule != "" {
		id += " " + f.Rule
	}
	p.b.WriteByte('\n')
	p.text("", fmt.Sprintf("%s [%s] %s", strings.ToUpper(f.Status.String()), id, f.What))
	line := func(name, text string) {
		if text != "" {
			p.text(fmt.Sprintf("  %-12s ", name+":"), text)
		}
	}
	for _, e := range f.Evidence {
		line("seen", e)
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
