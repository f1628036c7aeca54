package sweep

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/internal/play"
)

// maxLines is how many curves a chart has.
const maxLines = 8

// Charts draws each metric over the axis with most numbers; none where values
// are words.
func (r *Result) Charts() []report.Chart {
	var out []report.Chart
	for _, name := range r.Metrics {
		if d := r.chart(name); d != nil {
			out = append(out, report.Chart{Name: fileName(name), Drawing: d})
		}
	}
	return out
}

func (r *Result) chart(name string) *plot.Drawing {
	curves := r.curves(name)
	c := plot.Chart{Title: fmt.Sprintf("%s: %s", r.Name, name), EventsName: "knee"}
	var desc []string
	for _, k := range curves {
		if len(k.x) < 2 {
			continue
		}
		if len(c.Lines) == maxLines {
			c.Notes = []string{fmt.Sprintf("%d more curves are not drawn.", len(curves)-maxLines)}
			break
		}
		line := plot.Line{Name: k.others}
		if line.Name == "" {
			line.Name = name
		}
		for i := range k.x {
			line.Points = append(line.Points, plot.XY{X: k.x[i], Y: k.y[i].V})
		}
		c.Lines = append(c.Lines, line)
		c.X = plot.Axis{Label: r.Axes[k.axis].Name(), Of: quantity(k.unit), Log: logarithmic(k.x)}
		c.Y = plot.Axis{Label: name, Of: quantity(k.y[0].Unit)}
		n := len(k.x) - 1
		desc = append(desc, fmt.Sprintf("%s: %s at first, %s at last", line.Name, play.ValueText(k.y[0].Value), play.ValueText(k.y[n].Value)))
		if k.knee >= 0 {
			c.Events = append(c.Events, plot.Event{X: k.x[k.knee]})
		}
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.Desc = strings.Join(desc, "; ") + "."
	return c.Draw()
}

func quantity(u metric.Unit) plot.Quantity {
	switch u {
	case metric.Bits:
		return plot.Rate
	case metric.Time:
		return plot.Time
	case metric.Bytes:
		return plot.Bytes
	case metric.Number:
	}
	return plot.Count
}

// fileName makes a metric's name one of a file.
func fileName(name string) string {
	return "sweep-" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		case r == '*':
			return 'x'
		}
		return '-'
	}, name)
}
