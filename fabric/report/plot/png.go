package plot

import (
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// maxPixels bounds a picture: 64 MB of memory.
const maxPixels = 16 << 20

// WritePNG writes the picture on white, zoom (1 … 4) pixels for each of the
// drawing's; 2 is sharp on paper and on dense screens. Characters that the
// built-in font (Go Regular: Latin, Greek, Cyrillic) does not have are boxes;
// the SVG has them.
func (d *Drawing) WritePNG(w io.Writer, zoom int) error {
	if zoom < 1 || zoom > 4 {
		return fmt.Errorf("picture %q: zoom %d: must be 1 to 4", d.Title, zoom)
	}
	if d.W <= 0 || d.H <= 0 || d.W*zoom > maxPixels/(d.H*zoom) {
		return fmt.Errorf("picture %q: %d by %d pixels at zoom %d: must be 1 to %d in all", d.Title, d.W, d.H, zoom, maxPixels)
	}
	c := &canvas{img: image.NewRGBA(image.Rect(0, 0, d.W*zoom, d.H*zoom)), zoom: float64(zoom)}
	var err error
	if c.regular, err = opentype.Parse(goregular.TTF); err != nil {
		return err
	}
	if c.bold, err = opentype.Parse(gobold.TTF); err != nil {
		return err
	}
	draw.Draw(c.img, c.img.Bounds(), image.NewUniform(Paper.light()), image.Point{}, draw.Src)
	for i := range d.shapes {
		if err := c.shape(&d.shapes[i]); err != nil {
			return err
		}
	}
	return png.Encode(w, c.img)
}

type canvas struct {
	img           *image.RGBA
	zoom          float64
	regular, bold *opentype.Font
	faces         []face
}

type face struct {
	size float64
	bold bool
	face font.Face
}

func (c *canvas) shape(p *shape) error {
	switch p.kind {
	case pathShape:
		c.stroke(p.pts, p.pen)
	case areaShape:
		c.fill(p.pen, [][]Point{p.pts})
	case rectShape:
		c.fill(p.pen, [][]Point{box(p.pts[0], p.pts[1])})
	case rectsShape:
		var boxes [][]Point
		for i := 0; i+1 < len(p.pts); i += 2 {
			boxes = append(boxes, box(p.pts[i], p.pts[i+1]))
		}
		if len(boxes) > 0 {
			c.fill(p.pen, boxes)
		}
	case circleShape:
		c.fill(p.pen, [][]Point{circle(p.pts[0], p.pts[1].X)})
	case textShape:
		return c.text(p)
	case openShape, closeShape: // no appearance
	}
	return nil
}

func (c *canvas) text(p *shape) error {
	f, err := c.face(p.font.Size*c.zoom, p.font.Bold)
	if err != nil {
		return err
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(p.font.Ink.light()), Face: f}
	x := fixed.Int26_6(tenths(p.pts[0].X*c.zoom) * 64 / 10)
	switch p.font.Anchor {
	case Start:
	case Middle:
		x -= d.MeasureString(p.text) / 2
	case End:
		x -= d.MeasureString(p.text)
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(tenths(p.pts[0].Y*c.zoom) * 64 / 10)}
	d.DrawString(p.text)
	return nil
}

func (c *canvas) face(size float64, bold bool) (font.Face, error) {
	for _, f := range c.faces {
		if f.size == size && f.bold == bold {
			return f.face, nil
		}
	}
	from := c.regular
	if bold {
		from = c.bold
	}
	made, err := opentype.NewFace(from, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, err
	}
	c.faces = append(c.faces, face{size, bold, made})
	return made, nil
}
