package sweep

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/metric"
)

// unitOf returns what one of a unit is in the base unit of its kind: bytes,
// bit/s, picoseconds. Of a cable it is the delay, 5 ns a metre.
func unitOf(name string) (by float64, u metric.Unit, ok bool) {
	switch name {
	case "":
		return 1, metric.Number, true
	case "%":
		return 0.01, metric.Number, true
	case "m":
		return 5e3, metric.Time, true
	case "km":
		return 5e6, metric.Time, true
	}
	for _, k := range []struct {
		suffix string
		unit   metric.Unit
		by     map[string]float64
	}{
		{"iB", metric.Bytes, map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}},
		{"B", metric.Bytes, map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}},
		{"bps", metric.Bits, map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}},
		{"s", metric.Time, map[string]float64{"p": 1, "n": 1e3, "u": 1e6, "µ": 1e6, "m": 1e9, "": 1e12}},
	} {
		if prefix, found := strings.CutSuffix(name, k.suffix); found {
			by, ok = k.by[prefix]
			return by, k.unit, ok
		}
	}
	return 0, 0, false
}

// number reads a value with its unit, or a fraction such as 1/8.
func number(s string) (v float64, u metric.Unit, ok bool) {
	if a, b, cut := strings.Cut(s, "/"); cut {
		x, err1 := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		if err1 != nil || err2 != nil || y == 0 {
			return 0, 0, false
		}
		return x / y, metric.Number, true
	}
	n := len(s) - len(strings.TrimLeft(s, "+-0123456789._"))
	v, err := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64)
	if err != nil {
		return 0, 0, false
	}
	by, u, ok := unitOf(strings.TrimSpace(s[n:]))
	return v * by, u, ok
}
