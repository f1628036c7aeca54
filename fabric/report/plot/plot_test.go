package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
)

const hostile = "a<script>alert('x')</script>&\"]]>\x00\x1b[31m\u202e 漢字 \xff"

func chart(name string) *plot.Chart {
	return &plot.Chart{
		Title: name, Desc: name,
		X: plot.Axis{Label: "time", Of: plot.Time},
		Y: plot.Axis{Label: "queue", Of: plot.Bytes},
		Lines: []plot.Line{
			{Name: name, Points: []plot.XY{{0, 0}, {5e6, 120e3}, {1e7, 40e3}}},
			{Name: "second", Step: true, Points: []plot.XY{{0, 10e3}, {1e7, 20e3}}},
		},
		Levels:     []plot.Level{{Name: "Kmin 50 KB", Y: 50e3, Ink: plot.Warn}, {Name: "Kmax 4 MB", Y: 4e6, Ink: plot.Bad}},
		Events:     []plot.Event{{X: 1e6}, {X: 2e6}},
		EventsName: "XOFF",
		Notes:      []string{name},
	}
}

func figures(name string) map[string]*plot.Drawing {
	return map[string]*plot.Drawing{
		"chart": chart(name).Draw(),
		"empty": (&plot.Chart{Title: name, X: plot.Axis{Of: plot.Time}}).Draw(),
		"log": (&plot.Chart{
			Title: name, X: plot.Axis{Label: "FCT", Of: plot.Time, Log: true}, Y: plot.Axis{Of: plot.Share, From: 0, To: 1},
			Lines: []plot.Line{{Name: name, Step: true, Points: []plot.XY{{1e6, .2}, {1e9, 1}}}},
		}).Draw(),
		"gantt": (&plot.Gantt{
			Title: name, X: plot.Axis{Label: "time", Of: plot.Time},
			Rows:  []plot.Row{{Name: name, Bars: []plot.Bar{{From: 0, To: 5e6, Ink: plot.Bad, Tip: name}, {From: 6e6, To: 9e6, Ink: plot.Warn}}}},
			Kinds: []plot.Kind{{Name: name, Ink: plot.Bad}}, Notes: []string{name},
		}).Draw(),
		"bars": (&plot.Bars{
			Title: name, Y: plot.Axis{Label: "load", Of: plot.Share},
			Groups: []plot.Group{{Name: name, Columns: []plot.Column{{Name: "0", Value: .4, Ink: plot.Series0, Tip: name}, {Name: "1", Value: .9, Ink: plot.Bad}}}},
		}).Draw(),
		"no bars": (&plot.Bars{Title: name}).Draw(),
	}
}

// wellFormed reads all of an XML text, and returns what its text nodes and
// attributes hold.
func wellFormed(t *testing.T, b []byte) (names []string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%.2000s", err, b)
		}
		if e, ok := tok.(xml.StartElement); ok {
			names = append(names, e.Name.Local)
		}
	}
}

// Whatever a name holds, pictures are well-formed, hold no element but theirs,
// and no address.
func TestSVGIsWellFormed(t *testing.T) {
	for _, name := range []string{"plain", hostile, ""} {
		for id, d := range figures(name) {
			for _, write := range []func(io.Writer) error{d.WriteSVG, d.WriteInline} {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				for _, e := range wellFormed(t, b.Bytes()) {
					switch e {
					case "svg", "title", "desc", "style", "g", "path", "rect", "circle", "text":
					default:
						t.Errorf("%s of %q has an element %s", id, name, e)
					}
				}
				s := strings.ReplaceAll(b.String(), `xmlns="http://www.w3.org/2000/svg"`, "")
				if regexp.MustCompile(`(?i)https?:|url\(|href|<script`).MatchString(s) {
					t.Errorf("%s of %q refers to something or runs something", id, name)
				}
				if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
					t.Errorf("%s of %q has a number that is none", id, name)
				}
			}
		}
	}
}

func TestPNGDecodes(t *testing.T) {
	for id, d := range figures(hostile) {
		var b bytes.Buffer
		if err := d.WritePNG(&b, 2); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if got := img.Bounds().Dx(); got != 2*d.W {
			t.Errorf("%s is %d wide, want %d", id, got, 2*d.W)
		}
		ink := 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if r, g, b, _ := img.At(x, y).RGBA(); r+g+b < 3*0xf000 {
					ink++
				}
			}
		}
		if id != "empty" && ink < 300 {
			t.Errorf("%s: only %d pixels are not paper", id, ink)
		}
	}
}

func TestPNGRefuses(t *testing.T) {
	for _, c := range []struct {
		d    plot.Drawing
		zoom int
		want string
	}{
		{plot.Drawing{W: 10, H: 10, Title: "x"}, 0, `picture "x": zoom 0: must be 1 to 4`},
		{plot.Drawing{W: 10, H: 0, Title: "x"}, 1, `picture "x": 10 by 0 pixels at zoom 1: must be 1 to 16777216 in all`},
		{plot.Drawing{W: 1 << 20, H: 1 << 20}, 1, `picture "": 1048576 by 1048576 pixels at zoom 1: must be 1 to 16777216 in all`},
	} {
		if err := c.d.WritePNG(io.Discard, c.zoom); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// A line of a known colour is where its values say.
func TestPNGDrawsWhereItShould(t *testing.T) {
	d := plot.Drawing{W: 100, H: 60}
	d.Path([]plot.Point{{X: 10, Y: 30}, {X: 90, Y: 30}}, plot.Pen{Ink: plot.Series0, Width: 4}, "")
	d.Rect(10, 40, 20, 10, plot.Bad, 0, "")
	d.Circle(70, 45, 5, plot.Good, plot.Pen{}, "")
	var b bytes.Buffer
	if err := d.WritePNG(&b, 1); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x, y int
		want [3]uint32
	}{
		{50, 30, [3]uint32{0x00, 0x67, 0xb1}},
		{50, 35, [3]uint32{0xff, 0xff, 0xff}},
		{50, 25, [3]uint32{0xff, 0xff, 0xff}},
		{20, 45, [3]uint32{0xcf, 0x22, 0x2e}},
		{35, 45, [3]uint32{0xff, 0xff, 0xff}},
		{70, 45, [3]uint32{0x1a, 0x7f, 0x37}},
	} {
		r, g, b, _ := img.At(c.x, c.y).RGBA()
		if got := [3]uint32{r >> 8, g >> 8, b >> 8}; got != c.want {
			t.Errorf("pixel %d,%d is %x, want %x", c.x, c.y, got, c.want)
		}
	}
}

// Values that no chart should get do not make it hang or break.
func TestBadNumbers(t *testing.T) {
	bad := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 0}
	for _, x := range bad {
		for _, y := range bad {
			c := plot.Chart{Lines: []plot.Line{{Name: "a", Points: []plot.XY{{x, y}, {y, x}}}}, Levels: []plot.Level{{Y: y}}, Events: []plot.Event{{X: x}}}
			for _, log := range []bool{false, true} {
				c.X.Log, c.Y.Log = log, log
				d := c.Draw()
				var b bytes.Buffer
				if err := d.WriteSVG(&b); err != nil {
					t.Fatal(err)
				}
				wellFormed(t, b.Bytes())
				if err := d.WritePNG(io.Discard, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Peaks and ends survive; the number of points is bounded; the order holds.
func TestEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Int64()).Draw(t, "v")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		keep := plot.Envelope(v, n)
		if len(v) == 0 {
			if len(keep) != 0 {
				t.Fatal("something of nothing")
			}
			return
		}
		if len(keep) > 2*n+2 {
			t.Fatalf("%d points, want at most %d", len(keep), 2*n+2)
		}
		if keep[0] != 0 || keep[len(keep)-1] != len(v)-1 {
			t.Fatalf("ends are lost: %v of %d", keep, len(v))
		}
		lo, hi := v[0], v[0]
		for _, x := range v {
			lo, hi = min(lo, x), max(hi, x)
		}
		klo, khi := v[0], v[0]
		for i, k := range keep {
			if i > 0 && keep[i-1] >= k {
				t.Fatalf("order: %v", keep)
			}
			klo, khi = min(klo, v[k]), max(khi, v[k])
		}
		if klo != lo || khi != hi {
			t.Fatalf("extremes are %d, %d, want %d, %d", klo, khi, lo, hi)
		}
	})
}

func TestThinKeepsTheLine(t *testing.T) {
	got := plot.Thin([]plot.XY{{0, 1}, {1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 2}, {6, 2}})
	want := []plot.XY{{0, 1}, {2, 1}, {3, 2}, {6, 2}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// Labels carry the unit that fits the highest value.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		of      plot.Quantity
		top, by float64
		want    string
	}{
		{plot.Time, 5e6, 1e3, "(ns)"},
		{plot.Time, 500e6, 1e6, "(us)"},
		{plot.Time, 50e9, 1e9, "(ms)"},
		{plot.Time, 50e12, 1e12, "(s)"},
		{plot.Bytes, 1500, 1, "(B)"},
		{plot.Bytes, 256e3, 1e3, "(KB)"},
		{plot.Bytes, 25e6, 1e6, "(MB)"},
		{plot.Bytes, 1980, 1, "(B)"}, // the next round number is 2 KB
		{plot.Rate, 100e9, 1e9, "(Gb/s)"},
		{plot.Rate, 5e6, 1e6, "(Mb/s)"},
		{plot.Share, 0.5, 0.01, "(%)"},
	} {
		d := (&plot.Chart{Y: plot.Axis{Label: "value", Of: c.of}, Lines: []plot.Line{{Points: []plot.XY{{0, 0}, {1, c.top}}}}}).Draw()
		var b bytes.Buffer
		if err := d.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "value "+c.want) {
			t.Errorf("%v up to %g: no label %s", c.of, c.top, c.want)
		}
		if got := d.Frame.YTo * c.by; got < c.top || got > 1.5*c.top {
			t.Errorf("%v up to %g: the axis ends at %g %s", c.of, c.top, d.Frame.YTo, d.Frame.YUnit)
		}
	}
}

func TestFit(t *testing.T) {
	for _, s := range []string{"", "a", "a rather long name of a port", "漢字漢字漢字漢字"} {
		for w := 10.0; w < 200; w += 7 {
			got := plot.Fit(s, 11, w)
			if plot.Width(got, 11) > w && got != "…" {
				t.Errorf("%q in %g is %q", s, w, got)
			}
		}
	}
	if got := plot.Fit("leaf0:Ethernet12", 11, 300); got != "leaf0:Ethernet12" {
		t.Errorf("cut without need: %q", got)
	}
}
