package play

import (
	"math"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Numbers for people: three digits and the unit that fits.

type unit struct {
	by   float64
	name string
}

// fit writes v in the first unit that it reaches; units descend.
func fit(v float64, units ...unit) string {
	u := units[len(units)-1]
	for _, x := range units {
		if math.Abs(v) >= x.by {
			u = x
			break
		}
	}
	return digits(v/u.by) + " " + u.name
}

// digits writes three digits, more where the number has more before the point.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	after := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', max(0, min(after, 6)), 64)
}

func timeText(t sim.Time) string {
	switch {
	case t == sim.Never:
		return "-"
	case t == 0:
		return "0"
	case t > -10*sim.Millisecond && t < 10*sim.Millisecond:
		return fit(float64(t), unit{1e6, "us"}, unit{1e3, "ns"}, unit{1, "ps"})
	}
	return fit(float64(t), unit{1e12, "s"}, unit{1e9, "ms"})
}

func rateText(r sim.Rate) string {
	if r == 0 {
		return "0"
	}
	return fit(float64(r), unit{1e12, "Tb/s"}, unit{1e9, "Gb/s"}, unit{1e6, "Mb/s"}, unit{1e3, "Kb/s"}, unit{1, "b/s"})
}

func bytesText(n int64) string {
	if n > -1000 && n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return fit(float64(n), unit{1e12, "TB"}, unit{1e9, "GB"}, unit{1e6, "MB"}, unit{1e3, "KB"})
}

// countText writes a number of things with commas, from 10 million on in millions.
func countText(n uint64) string {
	if n >= 10e6 {
		return fit(float64(n), unit{1e12, "T"}, unit{1e9, "G"}, unit{1e6, "M"})
	}
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ValueText writes a metric's value with its unit.
func ValueText(v metric.Value) string {
	switch v.Unit {
	case metric.Bits:
		return rateText(sim.Rate(v.V))
	case metric.Time:
		return timeText(sim.Time(v.V))
	case metric.Bytes:
		return bytesText(int64(math.Round(v.V)))
	case metric.Number:
	}
	if v.V >= 0 && v.V == math.Trunc(v.V) && v.V < 1e15 {
		return countText(uint64(v.V))
	}
	return digits(v.V)
}

// factorText writes how many times one number is another; "" where that says
// nothing.
func factorText(a, b float64) string {
	if a <= 0 || b <= 0 {
		return ""
	}
	f := b / a
	if f > 0.995 && f < 1.005 {
		return "="
	}
	if f < 1e-6 {
		return "÷ >1000000"
	}
	if f < 1 {
		return "÷ " + digits(1/f)
	}
	if f >= 1e6 {
		return "x >1000000"
	}
	return "x " + digits(f)
}

// UnitName is the unit of values in files for programs.
func UnitName(u metric.Unit) string {
	switch u {
	case metric.Bits:
		return "bps"
	case metric.Time:
		return "ps"
	case metric.Bytes:
		return "bytes"
	case metric.Number:
	}
	return ""
}
