package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
)

// WriteSVG writes the picture as a file of its own, which brings its colours.
func (d *Drawing) WriteSVG(w io.Writer) error {
	var s svg
	s.s(`<svg xmlns="http://www.w3.org/2000/svg"`)
	s.root(d)
	s.s("<title>").text(d.Title).s("</title><desc>").text(d.Desc).s("</desc>\n<style>").s(Style()).s("</style>\n")
	s.s(`<rect class="vf0" width="100%" height="100%"/>` + "\n")
	s.shapes(d.shapes)
	s.s("</svg>\n")
	_, err := w.Write(s.b.Bytes())
	return err
}

// WriteInline writes the picture for the inside of an HTML page that has
// Style() among its styles. Attributes data-* carry the frame, for scripts.
func (d *Drawing) WriteInline(w io.Writer) error {
	var s svg
	s.s("<svg")
	if f := d.Frame; f != nil {
		s.s(` data-frame="`)
		for i, v := range [...]float64{f.X, f.Y, f.W, f.H, f.XFrom, f.XTo, f.YFrom, f.YTo} {
			if i > 0 {
				s.s(" ")
			}
			s.s(strconv.FormatFloat(v, 'g', 7, 64))
		}
		s.s(`" data-xunit="`).text(f.XUnit).s(`" data-yunit="`).text(f.YUnit).s(`"`)
		if f.Zoom {
			s.s(` data-zoom="1"`)
		}
		if f.XLog {
			s.s(` data-xlog="1"`)
		}
		if f.YLog {
			s.s(` data-ylog="1"`)
		}
	}
	s.root(d)
	s.shapes(d.shapes)
	s.s("</svg>")
	_, err := w.Write(s.b.Bytes())
	return err
}

// Style returns the CSS rules of the inks: vs and vf with the number of an ink
// are the classes of lines and insides.
func Style() string {
	var b bytes.Buffer
	for side := range 2 {
		if side == 1 {
			b.WriteString("@media screen and (prefers-color-scheme:dark){")
		}
		for k := range numInks {
			c := palette[k][side]
			fmt.Fprintf(&b, ".vs%d{stroke:#%06x}.vf%d{fill:#%06x}", k, c, k, c)
		}
	}
	b.WriteString("}")
	return b.String()
}

type svg struct{ b bytes.Buffer }

func (s *svg) s(t string) *svg {
	s.b.WriteString(t)
	return s
}

// text writes what came from outside, so that it is text whatever it holds:
// markup is escaped, what XML cannot hold becomes U+FFFD.
func (s *svg) text(t string) *svg {
	_ = xml.EscapeText(&s.b, []byte(t)) // a bytes.Buffer takes everything
	return s
}

func (s *svg) num(v float64) *svg { return s.tenths(tenths(v)) }

func (s *svg) tenths(n int) *svg {
	if n < 0 {
		s.b.WriteByte('-')
		n = -n
	}
	if n >= 10 || n == 0 {
		s.s(strconv.Itoa(n / 10))
	}
	if n%10 != 0 {
		s.s("." + string(rune('0'+n%10)))
	}
	return s
}

func (s *svg) attr(name string, v float64) *svg {
	return s.s(" " + name + `="`).num(v).s(`"`)
}

func (s *svg) root(d *Drawing) {
	fmt.Fprintf(&s.b, ` viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui,sans-serif" aria-label="`, d.W, d.H, d.W, d.H)
	s.text(d.Title)
	if d.Desc != "" {
		s.s(". ").text(d.Desc)
	}
	s.s("\">\n")
}

func (s *svg) shapes(shapes []shape) {
	depth := 0
	for i := range shapes {
		p := &shapes[i]
		switch p.kind {
		case pathShape:
			s.path(p)
		case areaShape:
			s.s(`<path d="`).points(p.pts).s(`z" class="vf`).s(strconv.Itoa(int(p.pen.Ink))).s(`"`).faint(p.pen.Faint).s("/>\n")
		case rectShape:
			s.s("<rect").attr("x", p.pts[0].X).attr("y", p.pts[0].Y).attr("width", p.pts[1].X).attr("height", p.pts[1].Y)
			s.end("rect", p)
		case rectsShape:
			s.rects(p)
		case circleShape:
			s.s("<circle").attr("cx", p.pts[0].X).attr("cy", p.pts[0].Y).attr("r", p.pts[1].X)
			s.end("circle", p)
		case textShape:
			s.label(p)
		case openShape:
			depth++
			s.s(`<g class="v-` + p.class + `"`)
			if p.series > 0 {
				s.s(` data-line="` + strconv.Itoa(p.series-1) + `" data-name="`).text(p.text).s(`"`)
			}
			s.s(">\n")
		case closeShape:
			if depth > 0 {
				depth--
				s.s("</g>\n")
			}
		}
	}
	for ; depth > 0; depth-- {
		s.s("</g>\n")
	}
}

func (s *svg) path(p *shape) {
	s.s(`<path d="`).points(p.pts).s(`" fill="none" class="vs`).s(strconv.Itoa(int(p.pen.Ink))).s(`"`)
	if p.pen.Width != 1 {
		s.attr("stroke-width", p.pen.Width)
	}
	if len(p.pen.Dash) > 0 {
		s.s(` stroke-dasharray="`)
		for i, v := range p.pen.Dash {
			if i > 0 {
				s.s(" ")
			}
			s.num(v)
		}
		s.s(`"`)
	}
	s.faint(p.pen.Faint).tip("path", p.text)
}

// points writes the first place and then differences, in tenths of a pixel
// that do not add up their rounding.
func (s *svg) points(pts []Point) *svg {
	x, y := tenths(pts[0].X), tenths(pts[0].Y)
	s.s("M").tenths(x).s(" ").tenths(y).s("l")
	for i, p := range pts[1:] {
		px, py := tenths(p.X), tenths(p.Y)
		if i > 0 && px >= x {
			s.s(" ")
		}
		s.tenths(px - x)
		if py >= y {
			s.s(" ")
		}
		s.tenths(py - y)
		x, y = px, py
	}
	return s
}

// rects writes many rectangles as one path.
func (s *svg) rects(p *shape) {
	s.s(`<path d="`)
	for i := 0; i+1 < len(p.pts); i += 2 {
		at, size := p.pts[i], p.pts[i+1]
		s.s("M").num(at.X).s(" ").num(at.Y).s("h").num(size.X).s("v").num(size.Y).s("h").num(-size.X).s("z")
	}
	s.s(`"`)
	s.end("path", p)
}

func (s *svg) end(name string, p *shape) {
	s.s(` class="vf`+strconv.Itoa(int(p.pen.Ink))+`"`).faint(p.pen.Faint).tip(name, p.text)
}

func (s *svg) faint(f float64) *svg {
	if f > 0 {
		s.attr("opacity", 1-f)
	}
	return s
}

func (s *svg) tip(name, tip string) {
	if tip == "" {
		s.s("/>\n")
		return
	}
	s.s("><title>").text(tip).s("</title></" + name + ">\n")
}

func (s *svg) label(p *shape) {
	s.s("<text").attr("x", p.pts[0].X).attr("y", p.pts[0].Y).attr("font-size", p.font.Size)
	s.s(` class="vf` + strconv.Itoa(int(p.font.Ink)) + `"`)
	switch p.font.Anchor {
	case Start:
	case Middle:
		s.s(` text-anchor="middle"`)
	case End:
		s.s(` text-anchor="end"`)
	}
	if p.font.Bold {
		s.s(` font-weight="600"`)
	}
	s.s(">").text(p.text).s("</text>\n")
}
