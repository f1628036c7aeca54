package dcqcn

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Fraction is an exact share Num/Den.
type Fraction struct{ Num, Den uint32 }

// String gives "1/256".
func (f Fraction) String() string { return fmt.Sprintf("%d/%d", f.Num, f.Den) }

// valid keeps alpha's steps few and its products within 64 bits.
func (f Fraction) valid() bool {
	return f.Num > 0 && f.Num <= f.Den && f.Den <= 1<<16 && uint64(f.Num)*4096 >= uint64(f.Den)
}

const maxDiv = 1_000_000

// setWeight takes "1/256" as g, and "1019" as mlxconfig does: (1-g)·1024.
func (k Knob) setWeight(p *Params, text string) error {
	var f Fraction
	if num, den, ok := strings.Cut(text, "/"); ok {
		n, err1 := strconv.ParseUint(strings.TrimSpace(num), 10, 32)
		d, err2 := strconv.ParseUint(strings.TrimSpace(den), 10, 32)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%s: %q is not %s", k.Name, text, k.wants())
		}
		f = Fraction{uint32(n), uint32(d)}
	} else {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%s: %q is not %s", k.Name, text, k.wants())
		}
		if v > 1023 {
			return fmt.Errorf("%s: %d is not allowed: 0 to 1023, which is (1-g)·1024", k.Name, v)
		}
		f = Fraction{1024 - uint32(v), 1024}
	}
	if !f.valid() {
		return k.outside(f.String())
	}
	p.DCETCPG = f
	return nil
}

func (k Knob) setShare(p *Params, text string) error {
	d, err := strconv.ParseUint(text, 10, 32)
	if err != nil || d < 1 || d > maxDiv {
		return fmt.Errorf("%s: line/%s is not allowed: line/1 to line/%d", k.Name, text, maxDiv)
	}
	k.set(p, 0)
	*k.div(p) = uint32(d)
	return nil
}

// unit is a suffix and what it stands for in base units.
type unit struct {
	name string
	base int64
}

// units of a form, the largest first.
func (f form) units() []unit {
	switch f {
	case duration:
		return []unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}
	case rate:
		return []unit{{"Pbps", 1e15}, {"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}
	case size:
		return []unit{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
	case number, toggle, choice, weight:
	}
	return nil
}

// spellings are other ways to write units; results never use them.
func (f form) spellings() []unit {
	switch f {
	case duration:
		return []unit{{"µs", 1e3}, {"μs", 1e3}}
	case rate:
		return []unit{{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"kb/s", 1e3}, {"bit/s", 1}, {"Kbps", 1e3}}
	case size:
		return []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"kB", 1e3}}
	case number, toggle, choice, weight:
	}
	return nil
}

// format writes base units with the largest unit that divides them.
func (k Knob) format(base int64) string {
	switch k.form {
	case toggle:
		return strconv.FormatBool(base != 0)
	case choice:
		if base >= 0 && base < int64(len(k.Values)) {
			return k.Values[base]
		}
	case duration, rate, size:
		if base == 0 {
			return "0"
		}
		for _, u := range k.form.units() {
			if base%u.base == 0 {
				return strconv.FormatInt(base/u.base, 10) + u.name
			}
		}
	case number, weight:
	}
	return strconv.FormatInt(base, 10)
}

// parse reads a value in base units.
func (k Knob) parse(text string) (int64, bool) {
	switch k.form {
	case toggle:
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return 1, true
		case "false", "0", "no", "off":
			return 0, true
		}
		return 0, false
	case choice:
		for i, v := range k.Values {
			if strings.EqualFold(v, text) {
				return int64(i), true
			}
		}
	case number, duration, rate, size, weight:
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return times(v, k.scale)
	}
	cut := strings.LastIndexAny(text, "0123456789.") + 1
	name := strings.TrimSpace(text[cut:])
	for _, set := range [][]unit{k.form.units(), k.form.spellings()} {
		for _, u := range set {
			if u.name == name {
				return decimal(strings.TrimSpace(text[:cut]), u.base)
			}
		}
	}
	return 0, false
}

// decimal reads "12.5" times base, exactly: what does not come out whole is
// refused, and so is what does not fit.
func decimal(text string, base int64) (int64, bool) {
	whole, part, _ := strings.Cut(text, ".")
	v, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || v < 0 {
		return 0, false
	}
	v, ok := times(v, base)
	for _, c := range part {
		if c < '0' || c > '9' || base%10 != 0 {
			return 0, false
		}
		base /= 10
		v += int64(c-'0') * base
	}
	return v, ok && v >= 0
}

// times is a·b for b >= 1, and whether a is at least 0 and the product fits.
func times(a, b int64) (int64, bool) {
	if a < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(lo), hi == 0 && lo < 1<<63
}

// wants names the form for an error.
func (k Knob) wants() string {
	switch k.form {
	case toggle:
		return "true or false"
	case choice:
		return strings.Join(k.Values, " or ")
	case duration:
		return "a time: a number of us, or a number with ns, us, ms or s"
	case rate:
		s := "a rate: a number of Mb/s, or a number with kbps, Mbps or Gbps"
		if k.div != nil {
			s += ", or line/n"
		}
		return s
	case size:
		return "a size: a number of units of 64 B, or a number with B, KB or MB"
	case weight:
		return "a weight: g as a fraction such as 1/256, or mlxconfig's (1-g)·1024"
	default:
		return "a whole number from 0 up"
	}
}
