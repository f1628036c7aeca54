package plot

import (
	"math"
	"testing"
)

// contrast is WCAG 2.1's ratio of the luminances of two colours.
func contrast(a, b uint32) float64 {
	lum := func(c uint32) float64 {
		part := func(v uint32) float64 {
			f := float64(v&0xff) / 255
			if f <= 0.03928 {
				return f / 12.92
			}
			return math.Pow((f+0.055)/1.055, 2.4)
		}
		return 0.2126*part(c>>16) + 0.7152*part(c>>8) + 0.0722*part(c)
	}
	x, y := lum(a), lum(b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	for k := Text; k < numInks; k++ {
		want := 3.0
		if k == Text || k == Muted || k == Good || k == Warn || k == Bad {
			want = 4.5
		}
		if k == Grid {
			continue
		}
		for side := range 2 {
			if got := contrast(palette[k][side], palette[Paper][side]); got < want {
				t.Errorf("ink %d, paper %d: contrast %.2f, want %.1f", k, side, got, want)
			}
		}
	}
}

// Marks are at 1, 2, 5 times powers of ten, inside the axis.
func TestTicks(t *testing.T) {
	for _, top := range []float64{0.7, 1, 3, 9.99, 12, 250, 99999} {
		r := newRuler(Axis{Of: Ratio}, 0, top, 0, 600)
		ts := r.ticks(5)
		if len(ts) < 3 || len(ts) > 8 {
			t.Errorf("top %g has %d marks", top, len(ts))
		}
		for _, m := range ts {
			if m.at < -0.01 || m.at > 600.01 {
				t.Errorf("top %g: mark %s at %g", top, m.label, m.at)
			}
		}
	}
	r := newRuler(Axis{Of: Time, Log: true}, 1e6, 998e6, 0, 600)
	var got []string
	for _, m := range r.ticks(5) {
		got = append(got, m.label)
	}
	// 1 us to 1000 us less one: 1 2 5 10 20 50 100 200 500
	if len(got) != 9 || got[0] != "1" || got[8] != "500" {
		t.Errorf("marks of three decades: %v", got)
	}
}
