package plot

import (
	"math"
	"strconv"
)

// Quantity says what numbers mean; labels take their units from it.
type Quantity uint8

// The quantities, each with the unit in which values are given.
const (
	Count Quantity = iota
	Time           // picoseconds
	Bytes          // 1 KB is 1000
	Rate           // bit/s
	Share          // 0 … 1, shown in percent
	Ratio          // a factor
)

// scale is how values of a quantity are shown.
type scale struct {
	by   float64 // divided by
	unit string
}

type step struct {
	from float64 // largest value, from which on this unit is used
	scale
}

// scaleOf picks the unit for values of up to top.
func scaleOf(q Quantity, top float64) scale {
	switch q {
	case Time:
		return pick(top, []step{{10e12, scale{1e12, "s"}}, {10e9, scale{1e9, "ms"}}, {10e6, scale{1e6, "us"}}, {0, scale{1e3, "ns"}}})
	case Bytes:
		return pick(top, []step{{2e9, scale{1e9, "GB"}}, {2e6, scale{1e6, "MB"}}, {2e3, scale{1e3, "KB"}}, {0, scale{1, "B"}}})
	case Rate:
		return pick(top, []step{{1e9, scale{1e9, "Gb/s"}}, {1e6, scale{1e6, "Mb/s"}}, {1e3, scale{1e3, "Kb/s"}}, {0, scale{1, "b/s"}}})
	case Share:
		return scale{0.01, "%"}
	case Count:
		return pick(top, []step{{2e6, scale{1e6, "million"}}, {1e5, scale{1e3, "thousand"}}, {0, scale{1, ""}}})
	case Ratio:
	}
	return scale{1, ""}
}

func pick(top float64, steps []step) scale {
	for _, s := range steps[:len(steps)-1] {
		if top >= s.from {
			return s.scale
		}
	}
	return steps[len(steps)-1].scale
}

// Axis is one direction of a chart.
type Axis struct {
	Label string // without unit
	Of    Quantity
	// From and To bound it; both 0: as the data are. A linear axis of values
	// that are not times begins at 0.
	From, To float64
	Log      bool
	// Zoom lets readers of a page look closer at a part, in all its charts that
	// have this, which must span the same values.
	Zoom bool
}

// ruler turns values into pixels.
type ruler struct {
	from, to float64 // in shown units
	scale    scale
	log      bool
	lo, len  float64 // pixel of from, pixels to to
}

// newRuler lays n pixels from pixel at on along an axis; lo and length are of
// the data, for an axis that is not bounded itself.
func newRuler(a Axis, lo, length, at, n float64) ruler {
	if a.From != 0 || a.To != 0 {
		lo, length = a.From, a.To
	} else {
		length = lo + length
	}
	from, to := finite(lo), finite(length)
	if a.Log && from < 1e-9 {
		from = math.Min(1, math.Max(1e-9, to/10))
	}
	if !(to > from) {
		to = from + 1
		if a.Of == Time {
			to = from + 1000
		}
	}
	s := scaleOf(a.Of, math.Max(math.Abs(from), math.Abs(to)))
	return ruler{from: from / s.by, to: to / s.by, scale: s, log: a.Log, lo: at, len: n}
}

// px returns the pixel of a value.
func (r *ruler) px(v float64) float64 {
	v = finite(v) / r.scale.by
	var f float64
	if r.log {
		if v <= 0 {
			v = r.from
		}
		f = math.Log10(v/r.from) / math.Log10(r.to/r.from)
	} else {
		f = (v - r.from) / (r.to - r.from)
	}
	return r.lo + float64(f*r.len)
}

// finite keeps what cannot be a measurement from spoiling a picture.
func finite(v float64) float64 {
	const limit = 1e25
	if math.IsNaN(v) {
		return 0
	}
	return math.Max(-limit, math.Min(limit, v))
}

// in makes a ruler show another unit.
func (r ruler) in(s scale) ruler {
	r.from, r.to = r.from*r.scale.by/s.by, r.to*r.scale.by/s.by
	r.scale = s
	return r
}

type tick struct {
	at    float64 // pixel
	label string
}

// ticks returns about n marks at round numbers.
func (r *ruler) ticks(n int) []tick {
	if r.log {
		return r.logTicks()
	}
	stepM, stepE := niceStep((r.to - r.from) / float64(n))
	size := float64(stepM) * math.Pow10(stepE)
	first, last := math.Ceil(r.from/size-1e-9), math.Floor(r.to/size+1e-9)
	var ts []tick
	for i := first; i <= last && len(ts) < 50; i++ {
		v := i * size
		if v == 0 {
			v = 0 // without a minus
		}
		ts = append(ts, tick{r.px(v * r.scale.by), strconv.FormatFloat(v, 'f', max(0, -stepE), 64)})
	}
	return ts
}

// niceStep returns m·10^e with m of 1, 2, 5, at least v.
func niceStep(v float64) (m, e int) {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1, 0
	}
	e = int(math.Floor(math.Log10(v)))
	f := v / math.Pow10(e)
	switch {
	case f <= 1.0000001:
		return 1, e
	case f <= 2.0000001:
		return 2, e
	case f <= 5.0000001:
		return 5, e
	}
	return 1, e + 1
}

// logTicks marks decades, and 2 and 5 between them where there are few.
func (r *ruler) logTicks() []tick {
	ms := []int{1}
	if math.Log10(r.to/r.from) < 3.01 {
		ms = []int{1, 2, 5}
	}
	var ts []tick
	first := int(math.Floor(math.Log10(r.from)))
	for e := first; e < first+50; e++ {
		for _, m := range ms {
			v := float64(m) * math.Pow10(e)
			if v < r.from*0.9999999 {
				continue
			}
			if v > r.to*1.0000001 {
				return ts
			}
			ts = append(ts, tick{r.px(v * r.scale.by), strconv.FormatFloat(v, 'f', max(0, -e), 64)})
		}
	}
	return ts
}

// niceTop returns a round number at or a little above v, so that the highest
// value is not at the edge.
func niceTop(v float64) float64 {
	m, e := niceStep(v / 5)
	size := float64(m) * math.Pow10(e)
	return math.Ceil(v/size-1e-9) * size
}
