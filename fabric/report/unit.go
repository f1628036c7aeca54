package report

import (
	"math"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Numbers for people: three or four digits and the unit that fits. For
// programs there are JSON and CSV.

// digits returns v with n significant digits and no exponent.
func digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	after := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', max(0, min(after, 6)), 64)
}

type unit struct {
	by   float64
	name string
}

// fit writes v with the first unit that it reaches; units descend.
func fit(v float64, units ...unit) string {
	for _, u := range units {
		if math.Abs(v) >= u.by {
			return digits(v/u.by, 3) + " " + u.name
		}
	}
	last := units[len(units)-1]
	return digits(v/last.by, 3) + " " + last.name
}

func bytesText[T int64 | uint64 | float64](n T) string {
	if v := float64(n); v < 1000 && v > -1000 {
		if v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 0, 64) + " B"
		}
		return digits(v, 3) + " B"
	}
	return fit(float64(n), unit{1e15, "PB"}, unit{1e12, "TB"}, unit{1e9, "GB"}, unit{1e6, "MB"}, unit{1e3, "KB"})
}

func rateText(r sim.Rate) string {
	return fit(float64(r), unit{1e12, "Tb/s"}, unit{1e9, "Gb/s"}, unit{1e6, "Mb/s"}, unit{1e3, "Kb/s"}, unit{1, "b/s"})
}

// timeText writes a span; "-" for Never.
func timeText(t sim.Time) string {
	if t == sim.Never {
		return "-"
	}
	if t == 0 {
		return "0"
	}
	if t < 10*sim.Millisecond && t > -10*sim.Millisecond {
		// Microseconds up to here, so that the columns of a table can be
		// compared by eye.
		return fit(float64(t), unit{1e6, "us"}, unit{1e3, "ns"}, unit{1, "ps"})
	}
	return fit(float64(t), unit{1e12, "s"}, unit{1e9, "ms"})
}

// countText writes a number of things, with commas up to a million.
func countText(n uint64) string {
	if n >= 10e6 {
		return fit(float64(n), unit{1e12, "T"}, unit{1e9, "G"}, unit{1e6, "M"})
	}
	return commas(n)
}

// commas groups digits by three.
func commas(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// shareText writes part of whole in percent; "-" if there is no whole.
func shareText(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	p := 100 * part / whole
	switch {
	case p == 0:
		return "0"
	case p < 0.1:
		return "<0.1%"
	}
	return digits(p, 2+b2i(p >= 10)) + "%"
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// factorText writes a slowdown; "-" for none.
func factorText(f float64) string {
	if f <= 0 {
		return "-"
	}
	return digits(f, 3) + "x"
}

// nanos writes picoseconds as nanoseconds with all three decimals, exactly.
func nanos(b []byte, t sim.Time) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	b = strconv.AppendInt(b, int64(t/sim.Nanosecond), 10)
	frac := int64(t % sim.Nanosecond)
	return append(b, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}
