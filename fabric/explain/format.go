package explain

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Numbers as engineers write them: Gb/s, KB of 1000 as the published tables
// have it (KiB where a number is whole in it), three or four digits.

// size writes bytes.
func size(n int64) string {
	switch {
	case n < 0:
		return "-" + size(-max(n, -math.MaxInt64))
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n%1000 != 0 && n%(1<<20) == 0 && n < 10000<<20:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n%1000 != 0 && n%1024 == 0 && n < 10000<<10:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	case n < 1000*1000:
		return digits(float64(n)/1e3) + " KB"
	case n < 1000*1000*1000:
		return digits(float64(n)/1e6) + " MB"
	}
	return digits(float64(n)/1e9) + " GB"
}

// speed writes a rate.
func speed(r sim.Rate) string {
	switch {
	case r >= sim.Gbps || r <= 0:
		return digits(float64(r)/1e9) + " Gb/s"
	case r >= sim.Mbps:
		return digits(float64(r)/1e6) + " Mb/s"
	}
	return digits(float64(r)/1e3) + " Kb/s"
}

// when writes a span or an instant.
func when(t sim.Time) string {
	if t == sim.Never {
		return "never"
	}
	if t == 0 {
		return "0 us"
	}
	for _, u := range [...]struct {
		unit sim.Time
		name string
	}{{sim.Second, "s"}, {sim.Millisecond, "ms"}, {sim.Microsecond, "us"}, {sim.Nanosecond, "ns"}} {
		if t >= u.unit || t <= -u.unit {
			return digits(float64(t)/float64(u.unit)) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(t), 10) + " ps"
}

// digits writes a number of at most four digits, at most two behind the point.
func digits(v float64) string {
	var s string
	switch {
	case v > 0 && v < 0.1:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v >= 100 || v <= -100:
		s = strconv.FormatFloat(v, 'f', 1, 64)
		if v >= 1000 || v <= -1000 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
	case v >= 10 || v <= -10:
		s = strconv.FormatFloat(v, 'f', 1, 64)
	default:
		s = strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// percent writes a share.
func percent(x float64) string {
	p := x * 100
	switch {
	case x <= 0:
		return "0 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 10:
		return digits(p) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// times writes a factor.
func times(x float64) string {
	if x >= 1e6 {
		return "> 1000000 x"
	}
	return digits(x) + " x"
}

// count writes a number with thousands apart.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes a number of things: "1 flow", "3 flows".
func plural[N int | int32 | int64 | uint64](n N, one string) string {
	s := count(uint64(n)) + " " + one
	if n == 1 {
		return s
	}
	switch {
	case strings.HasSuffix(one, "ss"), strings.HasSuffix(one, "sh"), strings.HasSuffix(one, "ch"):
		return s + "es"
	}
	return s + "s"
}

func (f FlowRef) String() string {
	name := fmt.Sprintf("flow %d", f.ID)
	if f.Group != "" {
		name += " (" + f.Group + ")"
	}
	return name + " " + f.Src + " → " + f.Dst
}

func (p Place) String() string { return p.Name }
