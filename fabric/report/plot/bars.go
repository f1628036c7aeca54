package plot

import "math"

// Column is one bar of a group.
type Column struct {
	Name  string
	Value float64
	Ink   Ink
	Tip   string
}

// Group is bars that belong together: their mean is drawn across them.
type Group struct {
	Name    string
	Columns []Column
}

// Bars is groups of upright bars.
type Bars struct {
	Title, Desc string
	Y           Axis
	Groups      []Group
	Notes       []string
	W, H        int // pixels; 0: 860 by 260 and what the notes need
}

// Draw lays the bars out; the dashed line across a group is its mean.
func (b *Bars) Draw() *Drawing {
	lay := layout{Drawing: Drawing{W: b.W, H: b.H, Title: b.Title, Desc: b.Desc}}
	if lay.W == 0 {
		lay.W = chartWidth
	}
	lay.heading(b.Title)
	top, slots := 0.0, 0.0
	for _, g := range b.Groups {
		for _, c := range g.Columns {
			top = math.Max(top, c.Value)
		}
		slots += float64(len(g.Columns)) + 1
	}
	unit := scaleOf(b.Y.Of, top)
	lay.label(b.Y.Label, unit)
	foot := 2*lineHeight + 12 + len(b.Notes)*lineHeight
	if lay.H == 0 {
		lay.H = 260 + len(b.Notes)*lineHeight
	}
	w, h := float64(lay.W-marginLeft-marginRight), math.Max(40, float64(lay.H-foot)-lay.y)
	yr := newRuler(b.Y, 0, niceAbove(b.Y, top, unit.by), lay.y+h, -h).in(unit)
	for _, t := range yr.ticks(5) {
		lay.Line(marginLeft, t.at, marginLeft+w, t.at, Pen{Ink: Grid, Width: 1})
		lay.Text(marginLeft-6, t.at+4, t.label, Font{Ink: Muted, Size: labelSize, Anchor: End})
	}
	slot := math.Min(48, w/math.Max(1, slots))
	x := marginLeft + slot/2
	for _, g := range b.Groups {
		lay.group(&g, &yr, x, slot, lay.y+h)
		x += float64(slot * float64(len(g.Columns)+1))
	}
	lay.Line(marginLeft, lay.y+h, marginLeft+w, lay.y+h, Pen{Ink: Muted, Width: 1})
	lay.y += h + 2*lineHeight + 12
	for _, n := range b.Notes {
		lay.Text(marginLeft, lay.y, Fit(n, labelSize, w), Font{Ink: Muted, Size: labelSize})
		lay.y += lineHeight
	}
	return &lay.Drawing
}

func (l *layout) group(g *Group, y *ruler, x, slot, base float64) {
	sum := 0.0
	for i, c := range g.Columns {
		at := x + float64(slot*float64(i))
		top := y.px(c.Value)
		l.Rect(at+float64(slot*0.1), top, slot*0.8, math.Max(0.5, base-top), c.Ink, 0, c.Tip)
		if Width(c.Name, 10) <= slot {
			l.Text(at+slot/2, base+12, c.Name, Font{Ink: Muted, Size: 10, Anchor: Middle})
		}
		sum += c.Value
	}
	n := float64(len(g.Columns))
	if n > 1 {
		mean := y.px(sum / n)
		l.Line(x, mean, x+float64(slot*n), mean, Pen{Ink: Text, Width: 1.2, Dash: []float64{4, 3}})
	}
	l.Text(x+float64(slot*n)/2, base+26, Fit(g.Name, labelSize, math.Max(30, slot*(n+0.8))), Font{Ink: Text, Size: labelSize, Anchor: Middle})
}
