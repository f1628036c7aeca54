package token

import "github.com/verbena-rdma/verbena/fabric/sim"

// The units that ns-3 knows for rates: bits or bytes a second, with decimal or
// binary prefixes.
var rateUnits = [...]struct {
	name string
	bits uint64
}{
	{"", 1},
	{"bps", 1},
	{"b/s", 1},
	{"Bps", 8},
	{"B/s", 8},
	{"kbps", 1e3},
	{"kb/s", 1e3},
	{"Kbps", 1e3},
	{"Kb/s", 1e3},
	{"kBps", 8e3},
	{"kB/s", 8e3},
	{"KBps", 8e3},
	{"KB/s", 8e3},
	{"Kib/s", 1 << 10},
	{"KiB/s", 8 << 10},
	{"Mbps", 1e6},
	{"Mb/s", 1e6},
	{"MBps", 8e6},
	{"MB/s", 8e6},
	{"Mib/s", 1 << 20},
	{"MiB/s", 8 << 20},
	{"Gbps", 1e9},
	{"Gb/s", 1e9},
	{"GBps", 8e9},
	{"GB/s", 8e9},
	{"Gib/s", 1 << 30},
	{"GiB/s", 8 << 30},
	{"Tbps", 1e12},
	{"Tb/s", 1e12},
}

var timeUnits = [...]struct {
	name  string
	scale int // 10^scale ps
}{
	{"", 12}, // as in ns-3: seconds
	{"s", 12},
	{"ms", 9},
	{"us", 6},
	{"ns", 3},
	{"ps", 0},
}

// cut splits "100Gbps" into number and unit.
func cut(text string) (number, unit string) {
	i := len(text)
	for i > 0 && (text[i-1] < '0' || text[i-1] > '9') && text[i-1] != '.' {
		i--
	}
	return text[:i], text[i:]
}

// Rate reads a field as a rate with a unit ("100Gbps"; none: bit/s), greater
// than 0 and at most high.
func (r *Reader) Rate(f Field, what string, high sim.Rate) (sim.Rate, error) {
	number, unit := cut(f.Text)
	for _, u := range rateUnits {
		if u.name != unit {
			continue
		}
		v, ok := scaled(number, u.bits, 0, uint64(high))
		switch {
		case !ok:
			if !isNumber(number) {
				return 0, r.Fail(f, "%s %q is not a rate such as 100Gbps", what, f.Text)
			}
			return 0, r.Fail(f, "%s %s is over the limit of %s", what, f.Text, high)
		case v == 0:
			return 0, r.Fail(f, "%s %s is not positive", what, f.Text)
		}
		return sim.Rate(v), nil
	}
	return 0, r.Fail(f, "%s %q is not a rate such as 100Gbps", what, f.Text)
}

// Time reads a field as a span with a unit ("1us", "0.001ms"; none: seconds),
// at most high, to the nearest picosecond.
func (r *Reader) Time(f Field, what string, high sim.Time) (sim.Time, error) {
	number, unit := cut(f.Text)
	for _, u := range timeUnits {
		if u.name != unit {
			continue
		}
		v, ok := Decimal(number, u.scale, uint64(high))
		if ok {
			return sim.Time(v), nil
		}
		if isNumber(number) {
			return 0, r.Fail(f, "%s %s is over the limit of %s", what, f.Text, high)
		}
		break
	}
	return 0, r.Fail(f, "%s %q is not a time such as 1us", what, f.Text)
}

func isNumber(text string) bool {
	_, _, ok := split(text)
	return ok
}
