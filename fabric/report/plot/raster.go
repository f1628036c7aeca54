package plot

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/vector"
)

// fill paints polygons in one go: what they cover together is covered once.
// All must turn the same way, or their overlap would cancel.
func (c *canvas) fill(pen Pen, polygons [][]Point) {
	lo, hi := Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for _, poly := range polygons {
		for _, p := range poly {
			p = snap(p)
			lo = Point{math.Min(lo.X, p.X), math.Min(lo.Y, p.Y)}
			hi = Point{math.Max(hi.X, p.X), math.Max(hi.Y, p.Y)}
		}
	}
	// The rasteriser works on the part of the picture that is touched.
	box := image.Rect(tenths(lo.X*c.zoom)/10-1, tenths(lo.Y*c.zoom)/10-1, tenths(hi.X*c.zoom)/10+2, tenths(hi.Y*c.zoom)/10+2).Intersect(c.img.Bounds())
	if box.Empty() {
		return
	}
	r := vector.NewRasterizer(box.Dx(), box.Dy())
	for _, poly := range polygons {
		for i, p := range poly {
			p = snap(p)
			x, y := float32(p.X*c.zoom)-float32(box.Min.X), float32(p.Y*c.zoom)-float32(box.Min.Y)
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	ink := pen.Ink.light()
	a := 1 - pen.Faint
	src := color.NRGBA{R: ink.R, G: ink.G, B: ink.B, A: uint8(math.Round(255 * math.Max(0, math.Min(1, a))))}
	r.Draw(c.img, box, image.NewUniform(src), image.Point{})
}

// stroke paints a line: a rectangle for each straight piece, half a width
// longer at both ends so that the pieces join.
func (c *canvas) stroke(pts []Point, pen Pen) {
	var quads [][]Point
	on, left := true, math.Inf(1)
	di := 0
	if len(pen.Dash) > 0 {
		left = pen.Dash[0]
	}
	for i := 1; i < len(pts); i++ {
		a, b := snap(pts[i-1]), snap(pts[i])
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		for at := 0.0; at < length; {
			n := math.Min(left, length-at)
			if on {
				quads = append(quads, quad(along(a, b, at/length), along(a, b, (at+n)/length), pen.Width, len(pen.Dash) == 0))
			}
			at += n
			if left -= n; left <= 0 {
				di = (di + 1) % len(pen.Dash)
				left, on = math.Max(0.1, pen.Dash[di]), !on
			}
		}
	}
	if len(quads) > 0 {
		c.fill(pen, quads)
	}
}

// snap makes a place finite.
func snap(p Point) Point {
	const limit = 1e5
	for _, v := range [...]*float64{&p.X, &p.Y} {
		if math.IsNaN(*v) {
			*v = 0
		}
		*v = math.Max(-limit, math.Min(limit, *v))
	}
	return p
}

func along(a, b Point, f float64) Point {
	return Point{a.X + float64((b.X-a.X)*f), a.Y + float64((b.Y-a.Y)*f)}
}

func quad(a, b Point, width float64, join bool) []Point {
	dx, dy := b.X-a.X, b.Y-a.Y
	n := math.Hypot(dx, dy)
	if n == 0 {
		n = 1
	}
	h := width / 2 / n
	dx, dy = dx*h, dy*h
	if join && width > 1 {
		a, b = Point{a.X - dx, a.Y - dy}, Point{b.X + dx, b.Y + dy}
	}
	return []Point{{a.X - dy, a.Y + dx}, {b.X - dy, b.Y + dx}, {b.X + dy, b.Y - dx}, {a.X + dy, a.Y - dx}}
}

func box(at, size Point) []Point {
	return []Point{at, {at.X + size.X, at.Y}, {at.X + size.X, at.Y + size.Y}, {at.X, at.Y + size.Y}}
}

func circle(at Point, r float64) []Point {
	const n = 32
	pts := make([]Point, n)
	for i := range pts {
		s, c := math.Sincos(2 * math.Pi * float64(i) / n)
		pts[i] = Point{at.X + float64(r*c), at.Y + float64(r*s)}
	}
	return pts
}
