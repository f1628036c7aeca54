package plot

import "math"

// Bar is an interval of a row.
type Bar struct {
	From, To float64
	Ink      Ink
	Tip      string
}

// Row is one line of a time line.
type Row struct {
	Name string
	Bars []Bar // From ascending, not overlapping
}

// Kind names an ink in the legend.
type Kind struct {
	Name string
	Ink  Ink
}

// Gantt is intervals of several things over one axis.
type Gantt struct {
	Title, Desc string
	X           Axis
	Rows        []Row
	Kinds       []Kind
	Notes       []string
	W           int // pixels; 0: 860
}

// maxNameWidth is how much of the width the names of rows may take, in pixels.
const maxNameWidth = 300

// Draw lays the time line out. Bars of a row that would touch each other within
// half a pixel are drawn as one.
func (g *Gantt) Draw() *Drawing {
	const rowHeight = 18
	lay := layout{Drawing: Drawing{W: g.W, Title: g.Title, Desc: g.Desc}}
	if lay.W == 0 {
		lay.W = chartWidth
	}
	lay.heading(g.Title)
	lay.kinds(g.Kinds)
	lay.y += 8
	names := 0.0
	for _, r := range g.Rows {
		names = math.Max(names, math.Min(maxNameWidth, Width(r.Name, labelSize)))
	}
	left := names + 16
	w, h := float64(lay.W)-left-marginRight, float64(max(1, len(g.Rows))*rowHeight)
	lay.H = int(lay.y+h) + 2*lineHeight + 4 + len(g.Notes)*lineHeight
	x0, x1 := g.bounds()
	xr := newRuler(g.X, x0, x1-x0, left, w)
	for i, r := range g.Rows {
		y := lay.y + float64(i*rowHeight)
		lay.Text(left-8, y+13, Fit(r.Name, labelSize, maxNameWidth), Font{Ink: Text, Size: labelSize, Anchor: End})
		lay.Line(left, y+rowHeight, left+w, y+rowHeight, Pen{Ink: Grid, Width: 1})
	}
	lay.open("data", -1, "")
	for i, r := range g.Rows {
		lay.bars(r.Bars, &xr, lay.y+float64(i*rowHeight)+3, rowHeight-6)
	}
	lay.close()
	lay.Frame = &Frame{X: left, Y: lay.y, W: w, H: h, XFrom: xr.from, XTo: xr.to, XUnit: xr.scale.unit, Zoom: g.X.Zoom}
	lay.Line(left, lay.y+h, left+w, lay.y+h, Pen{Ink: Muted, Width: 1})
	lay.xticks(&xr, g.X.Label, h)
	lay.y += h + 2*lineHeight + 4
	for _, n := range g.Notes {
		lay.Text(8, lay.y, Fit(n, labelSize, float64(lay.W)-16), Font{Ink: Muted, Size: labelSize})
		lay.y += lineHeight
	}
	return &lay.Drawing
}

func (g *Gantt) bounds() (x0, x1 float64) {
	first := true
	for _, r := range g.Rows {
		for _, b := range r.Bars {
			if first {
				x0, x1, first = b.From, b.To, false
			}
			x0, x1 = math.Min(x0, b.From), math.Max(x1, b.To)
		}
	}
	return x0, x1
}

func (l *layout) kinds(ks []Kind) {
	if len(ks) == 0 {
		return
	}
	l.y += 12
	x := 8.0
	for _, k := range ks {
		w := 18 + Width(k.Name, labelSize) + 14
		if x+w > float64(l.W)-8 && x > 8 {
			x = 8
			l.y += lineHeight
		}
		l.Rect(x, l.y-9, 12, 10, k.Ink, 0, "")
		l.Text(x+17, l.y, k.Name, Font{Ink: Text, Size: labelSize})
		x += w
	}
}

// manyBars is from how many bars on a row is drawn as one shape without tips.
const manyBars = 60

func (l *layout) bars(bars []Bar, x *ruler, y, h float64) {
	type merged struct {
		Bar
		x, w float64
		last string
	}
	var ms []merged
	for _, b := range bars {
		from, to := x.px(b.From), x.px(b.To)
		if n := len(ms); n > 0 && ms[n-1].Ink == b.Ink && from < ms[n-1].x+ms[n-1].w+0.5 {
			ms[n-1].w = math.Max(ms[n-1].w, to-ms[n-1].x)
			ms[n-1].last = b.Tip
			continue
		}
		ms = append(ms, merged{Bar: b, x: from, w: math.Max(0.5, to-from)})
	}
	if len(ms) <= manyBars {
		for _, m := range ms {
			tip := m.Tip
			if m.last != "" {
				tip += " … " + m.last
			}
			l.Rect(m.x, y, m.w, h, m.Ink, 0, tip)
		}
		return
	}
	var rects []Point
	for i, m := range ms {
		rects = append(rects, Point{m.x, y}, Point{m.w, h})
		if i == len(ms)-1 || ms[i+1].Ink != m.Ink {
			l.Rects(rects, m.Ink, "")
			rects = nil
		}
	}
}
