package plot

import "math"

// XY is a value of a line, in the units of the axes' quantities.
type XY struct{ X, Y float64 }

// Line is one line of a chart.
type Line struct {
	Name   string
	Points []XY // X ascending
	Step   bool // a value holds until the next
}

// Level is a horizontal line: a threshold.
type Level struct {
	Name string
	Y    float64
	Ink  Ink
}

// Event is an instant that is marked at the foot of a chart.
type Event struct {
	X float64
}

// Chart is lines over an axis.
type Chart struct {
	Title, Desc string
	X, Y        Axis
	Lines       []Line
	Levels      []Level
	Events      []Event
	EventsName  string // what the marks at the foot are
	Notes       []string
	W, H        int // pixels; 0: 860 by 300 and what legend and notes need
}

// The measures of charts in pixels.
const (
	chartWidth  = 860
	chartHeight = 300
	titleSize   = 14
	labelSize   = 11
	lineHeight  = 16
	marginLeft  = 58
	marginRight = 18
)

// farLevel is how many times the highest value a threshold may be to be drawn:
// a farther one would flatten the lines and is told in words.
const farLevel = 2.5

// Draw lays the chart out.
func (c *Chart) Draw() *Drawing {
	lay := layout{Drawing: Drawing{W: c.W, H: c.H, Title: c.Title, Desc: c.Desc}}
	if lay.W == 0 {
		lay.W = chartWidth
	}
	x0, x1, y1 := c.bounds()
	levels, far := c.near(y1)
	for _, l := range levels {
		y1 = math.Max(y1, l.Y)
	}
	lay.heading(c.Title)
	lay.legend(c.Lines)
	unit := scaleOf(c.Y.Of, y1)
	notes := c.Notes
	for _, l := range far {
		notes = append(notes[:len(notes):len(notes)], l.Name+" is above the chart.")
	}
	lay.label(c.Y.Label, unit)
	foot := 2*lineHeight + 4 + len(notes)*lineHeight
	if len(c.Events) > 0 {
		foot += lineHeight
	}
	if lay.H == 0 {
		lay.H = chartHeight + int(lay.y) - 2*lineHeight + foot - 2*lineHeight
	}
	w, h := float64(lay.W-marginLeft-marginRight), math.Max(40, float64(lay.H-foot)-lay.y)
	xr := newRuler(c.X, x0, x1-x0, marginLeft, w)
	yr := newRuler(c.Y, c.floor(), niceAbove(c.Y, y1, unit.by)-c.floor(), lay.y+h, -h).in(unit)
	lay.frame(&xr, &yr, w, h, c.X.Zoom)
	lay.xticks(&xr, c.X.Label, h)
	lay.open("data", -1, "")
	for i := range c.Lines {
		lay.open("line", i, c.Lines[i].Name)
		lay.Path(c.Lines[i].pixels(&xr, &yr), Pen{Ink: Series(i), Width: 1.6, Dash: Dash(i)}, c.Lines[i].Name)
		lay.close()
	}
	lay.events(c.Events, &xr, lay.y+h)
	lay.close()
	lay.levels(levels, &yr, w)
	lay.y += h + 2*lineHeight + 4
	if len(c.Events) > 0 {
		lay.Line(marginLeft, lay.y-4, marginLeft+10, lay.y-4, Pen{Ink: Bad, Width: 5})
		lay.Text(marginLeft+16, lay.y, c.EventsName, Font{Ink: Muted, Size: labelSize})
		lay.y += lineHeight
	}
	for _, n := range notes {
		lay.Text(marginLeft, lay.y, Fit(n, labelSize, w), Font{Ink: Muted, Size: labelSize})
		lay.y += lineHeight
	}
	return &lay.Drawing
}

// bounds returns the first and last X and the highest Y of the lines.
func (c *Chart) bounds() (x0, x1, y1 float64) {
	first := true
	for i := range c.Lines {
		for _, p := range c.Lines[i].Points {
			if first {
				x0, x1, first = p.X, p.X, false
			}
			x0, x1, y1 = math.Min(x0, p.X), math.Max(x1, p.X), math.Max(y1, p.Y)
		}
	}
	return x0, x1, y1
}

// near splits the levels into those that are drawn and those too far above the
// highest value.
func (c *Chart) near(top float64) (near, far []Level) {
	for _, l := range c.Levels {
		if l.Y <= top*farLevel || top == 0 {
			near = append(near, l)
		} else {
			far = append(far, l)
		}
	}
	return near, far
}

func (c *Chart) floor() float64 {
	if !c.Y.Log {
		return 0
	}
	low := math.Inf(1)
	for i := range c.Lines {
		for _, p := range c.Lines[i].Points {
			if p.Y > 0 {
				low = math.Min(low, p.Y)
			}
		}
	}
	if math.IsInf(low, 1) {
		return 0
	}
	return low
}

// niceAbove rounds the top of an axis up in its shown unit.
func niceAbove(a Axis, top, by float64) float64 {
	if a.Log || top <= 0 {
		return top
	}
	return niceTop(top/by) * by
}

func (l *Line) pixels(x, y *ruler) []Point {
	pts := make([]Point, 0, len(l.Points))
	for i, p := range l.Points {
		q := Point{x.px(p.X), y.px(p.Y)}
		if l.Step && i > 0 {
			pts = append(pts, Point{q.X, pts[len(pts)-1].Y})
		}
		pts = append(pts, q)
	}
	if len(pts) == 1 { // one sample: a short dash that can be seen
		pts = append(pts, Point{pts[0].X + 3, pts[0].Y})
	}
	return pts
}
