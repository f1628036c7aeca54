package plot

import "math"

// Point is a place in pixels, from the top left corner.
type Point struct{ X, Y float64 }

// Drawing is a picture as a list of shapes, in the order in which they cover
// each other. The zero value with W and H set is empty paper.
type Drawing struct {
	W, H   int
	Title  string
	Desc   string // what the picture shows, for readers who do not see it
	Frame  *Frame // where the data are, if they are on axes
	shapes []shape
}

// Frame tells readers which point of the picture means what.
type Frame struct {
	X, Y, W, H   float64 // pixels
	XFrom, XTo   float64 // at the left and right edge, in XUnit
	YFrom, YTo   float64 // at the bottom and top edge, in YUnit
	XUnit, YUnit string
	XLog, YLog   bool
	Zoom         bool
}

type shapeKind uint8

const (
	pathShape shapeKind = iota
	areaShape
	rectShape
	rectsShape
	circleShape
	textShape
	openShape // begins a group, up to its closeShape
	closeShape
)

// Anchor says which part of a text is at its point.
type Anchor uint8

// The anchors.
const (
	Start Anchor = iota
	Middle
	End
)

// Pen says how a line is drawn.
type Pen struct {
	Ink   Ink
	Width float64 // pixels
	Dash  []float64
	Faint float64 // 0 opaque … 1 invisible
}

// Font says how text is drawn.
type Font struct {
	Ink    Ink
	Size   float64 // pixels
	Bold   bool
	Anchor Anchor
}

type shape struct {
	kind   shapeKind
	pts    []Point // path, area; rect, rects: corners and sizes in turn; circle: centre and radius; text: place
	pen    Pen     // path: the line; others: Ink and Faint of the inside
	font   Font
	text   string // text; tooltip of others
	class  string // group
	series int    // group of a line: its number + 1
}

// Path draws a line through points.
func (d *Drawing) Path(pts []Point, pen Pen, tip string) {
	if len(pts) > 1 {
		d.shapes = append(d.shapes, shape{kind: pathShape, pts: pts, pen: pen, text: tip})
	}
}

// Line draws a straight line.
func (d *Drawing) Line(x1, y1, x2, y2 float64, pen Pen) {
	d.Path([]Point{{x1, y1}, {x2, y2}}, pen, "")
}

// Area fills a polygon.
func (d *Drawing) Area(pts []Point, ink Ink, faint float64) {
	if len(pts) > 2 {
		d.shapes = append(d.shapes, shape{kind: areaShape, pts: pts, pen: Pen{Ink: ink, Faint: faint}})
	}
}

// Rect fills a rectangle; tip is shown to who points at it.
func (d *Drawing) Rect(x, y, w, h float64, ink Ink, faint float64, tip string) {
	d.shapes = append(d.shapes, shape{kind: rectShape, pts: []Point{{x, y}, {w, h}}, pen: Pen{Ink: ink, Faint: faint}, text: tip})
}

// Rects fills many rectangles, each given by a corner and its size: shorter in a
// file than one by one.
func (d *Drawing) Rects(cornersAndSizes []Point, ink Ink, tip string) {
	if len(cornersAndSizes) > 1 {
		d.shapes = append(d.shapes, shape{kind: rectsShape, pts: cornersAndSizes, pen: Pen{Ink: ink}, text: tip})
	}
}

// Circle fills a disc, with a line of the pen's width around it (0: none).
func (d *Drawing) Circle(x, y, r float64, fill Ink, ring Pen, tip string) {
	if ring.Width > 0 {
		d.shapes = append(d.shapes, shape{kind: circleShape, pts: []Point{{x, y}, {r + ring.Width, 0}}, pen: Pen{Ink: ring.Ink, Faint: ring.Faint}, text: tip})
	}
	d.shapes = append(d.shapes, shape{kind: circleShape, pts: []Point{{x, y}, {r, 0}}, pen: Pen{Ink: fill}, text: tip})
}

// Text writes a line; its baseline is at y.
func (d *Drawing) Text(x, y float64, s string, f Font) {
	if s != "" {
		d.shapes = append(d.shapes, shape{kind: textShape, pts: []Point{{x, y}}, font: f, text: s})
	}
}

// open begins a group; series is the number of the line whose shapes it holds,
// or -1.
func (d *Drawing) open(class string, series int, name string) {
	d.shapes = append(d.shapes, shape{kind: openShape, class: class, series: series + 1, text: name})
}

func (d *Drawing) close() { d.shapes = append(d.shapes, shape{kind: closeShape}) }

// Width estimates how wide a text is: readers' fonts differ, so this leans to
// the wide side.
func Width(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case r == 'i' || r == 'l' || r == '.' || r == ',' || r == ':' || r == ' ' || r == '\'' || r == '|':
			w += 0.32
		case r == 'm' || r == 'w' || r == 'M' || r == 'W' || r == '%' || r == '@':
			w += 0.92
		case r >= 'A' && r <= 'Z':
			w += 0.68
		case r < 0x1100:
			w += 0.58
		default:
			w += 1.05 // ideographs and the like
		}
	}
	return w * size
}

// Fit cuts a text in its middle so that it is at most w wide.
func Fit(s string, size, w float64) string {
	if Width(s, size) <= w {
		return s
	}
	r := []rune(s)
	for n := len(r) - 1; n > 1; n-- {
		cut := string(r[:(n+1)/2]) + "…" + string(r[len(r)-n/2:])
		if Width(cut, size) <= w {
			return cut
		}
	}
	return "…"
}

// tenths is the resolution of coordinates: what is written is an integer number
// of tenths of a pixel, so that the last bit of a float does not show.
func tenths(v float64) int {
	const limit = 1e6 // pixels; also what not-a-number and infinity become
	switch {
	case math.IsNaN(v):
		return 0
	case v > limit:
		v = limit
	case v < -limit:
		v = -limit
	}
	return int(math.Round(v * 10))
}
