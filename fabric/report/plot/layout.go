package plot

import (
	"cmp"
	"math"
	"slices"
)

// layout is a drawing in the making; y is where the next thing goes.
type layout struct {
	Drawing
	y float64
}

func (l *layout) heading(title string) {
	l.y = 20
	l.Text(8, l.y, Fit(title, titleSize, float64(l.W-16)), Font{Ink: Text, Size: titleSize, Bold: true})
	l.y += 6
}

// legend names the lines, wrapped. A line without a name has none: the title
// says what it is.
func (l *layout) legend(lines []Line) {
	x, any := 8.0, false
	for i := range lines {
		if lines[i].Name == "" {
			continue
		}
		if !any {
			l.y += 12
			any = true
		}
		name := Fit(lines[i].Name, labelSize, float64(l.W)-60)
		w := 26 + Width(name, labelSize) + 12
		if x+w > float64(l.W)-8 && x > 8 {
			x = 8
			l.y += lineHeight
		}
		l.open("key", i, lines[i].Name)
		l.Line(x, l.y-4, x+20, l.y-4, Pen{Ink: Series(i), Width: 2.4, Dash: Dash(i)})
		l.Text(x+25, l.y, name, Font{Ink: Text, Size: labelSize})
		l.close()
		x += w
	}
}

// label writes the name and unit of the vertical axis above it: no turned text.
func (l *layout) label(name string, s scale) {
	l.y += lineHeight
	l.Text(8, l.y, withUnit(name, s.unit), Font{Ink: Muted, Size: labelSize})
	l.y += 11
}

func withUnit(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " (" + unit + ")"
}

// frame draws the axes and the horizontal grid, h high from y on.
func (l *layout) frame(x, y *ruler, w, h float64, zoom bool) {
	left, top := x.lo, l.y
	l.Frame = &Frame{
		X: left, Y: top, W: w, H: h,
		XFrom: x.from, XTo: x.to, XUnit: x.scale.unit, XLog: x.log,
		YFrom: y.from, YTo: y.to, YUnit: y.scale.unit, YLog: y.log, Zoom: zoom,
	}
	for _, t := range y.ticks(5) {
		l.Line(left, t.at, left+w, t.at, Pen{Ink: Grid, Width: 1})
		l.Text(left-6, t.at+4, t.label, Font{Ink: Muted, Size: labelSize, Anchor: End})
	}
	l.Line(left, top+h, left+w, top+h, Pen{Ink: Muted, Width: 1})
}

// xticks labels the horizontal axis, h below y. The last label carries the
// unit.
func (l *layout) xticks(x *ruler, name string, h float64) {
	base := l.y + h
	l.open("xticks", -1, "")
	for _, t := range x.ticks(max(2, int(x.len/110))) {
		l.Line(t.at, base, t.at, base+4, Pen{Ink: Muted, Width: 1})
		l.Text(t.at, base+lineHeight, t.label, Font{Ink: Muted, Size: labelSize, Anchor: Middle})
	}
	l.close()
	l.Text(x.lo+x.len, base+2*lineHeight-2, withUnit(name, x.scale.unit), Font{Ink: Muted, Size: labelSize, Anchor: End})
}

// events marks instants at the foot of the frame; those within a pixel are one.
func (l *layout) events(es []Event, x *ruler, base float64) {
	last := -1
	var marks []Point
	for _, e := range es {
		at := tenths(x.px(e.X)) / 10
		if at == last {
			continue
		}
		last = at
		marks = append(marks, Point{float64(at), base - 6}, Point{1, 6})
	}
	l.Rects(marks, Bad, "")
}

// levels draws thresholds. The name of one that is close above another stands
// to the left of the other's.
func (l *layout) levels(levels []Level, y *ruler, w float64) {
	sorted := slices.Clone(levels)
	slices.SortStableFunc(sorted, func(a, b Level) int { return cmp.Compare(a.Y, b.Y) })
	right, last := 0.0, math.Inf(1)
	for _, v := range sorted {
		at := y.px(v.Y)
		if last-at < labelSize+2 {
			right += 12
		} else {
			right = 4
		}
		l.Line(marginLeft, at, marginLeft+w, at, Pen{Ink: v.Ink, Width: 1.2, Dash: []float64{5, 4}})
		l.Text(marginLeft+w-right, at-4, v.Name, Font{Ink: v.Ink, Size: labelSize, Anchor: End})
		right += Width(v.Name, labelSize)
		last = at
	}
}
