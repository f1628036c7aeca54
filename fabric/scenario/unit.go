package scenario

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Bytes is an amount of data. In files KB is 1,000 bytes, as in the published
// tables of thresholds and flow sizes, and KiB is 1,024.
type Bytes int64

// Length is a length of cable in millimetres.
type Length int64

// Delay returns how long a signal takes from end to end: 5 ns a metre
// (802.1Qbb's figure for cable).
func (l Length) Delay() sim.Time { return sim.Time(l) * 5 * sim.Picosecond }

// Ratio is a probability, share or factor in units of 2^-32, so that decisions
// are integer.
type Ratio uint64

// One is the ratio 1.
const One Ratio = 1 << 32

// Float returns it as a number; for output only.
func (r Ratio) Float() float64 { return float64(r) / float64(One) }

// unit is a suffix and what it stands for in the base unit.
type unit struct {
	name string
	size int64
}

var (
	timeUnits = []unit{
		{"s", int64(sim.Second)},
		{"ms", int64(sim.Millisecond)},
		{"us", int64(sim.Microsecond)},
		{"ns", int64(sim.Nanosecond)},
		{"ps", 1},
		{"µs", int64(sim.Microsecond)},
		{"μs", int64(sim.Microsecond)},
	}
	rateUnits = []unit{
		{"Tbps", 1e12},
		{"Gbps", 1e9},
		{"Mbps", 1e6},
		{"Kbps", 1e3},
		{"bps", 1},
		{"kbps", 1e3},
		{"Tb/s", 1e12},
		{"Gb/s", 1e9},
		{"Mb/s", 1e6},
		{"Kb/s", 1e3},
		{"kb/s", 1e3},
		{"b/s", 1},
		{"Tbit/s", 1e12},
		{"Gbit/s", 1e9},
		{"Mbit/s", 1e6},
		{"kbit/s", 1e3},
		{"bit/s", 1},
	}
	byteUnits = []unit{
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"B", 1},
		{"kB", 1e3},
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
	}
	lengthUnits = []unit{
		{"km", 1e6},
		{"m", 1e3},
		{"cm", 10},
		{"mm", 1},
	}
)

// quantityKind describes one kind of value for errors: its units and an example.
type quantityKind struct {
	what    string
	units   []unit
	choice  string
	example string
	zero    string
}

var (
	timeKind   = &quantityKind{"a time", timeUnits, "ps, ns, us, ms or s", "10us", "0ns"}
	rateKind   = &quantityKind{"a rate", rateUnits, "bps, Kbps, Mbps, Gbps or Tbps", "100Gbps", "0bps"}
	byteKind   = &quantityKind{"an amount of data", byteUnits, "B, KB (1000), KiB (1024), MB, MiB, GB or GiB", "8KB", "0B"}
	lengthKind = &quantityKind{"a length", lengthUnits, "mm, cm, m or km", "100m", "0m"}
)

// maxNumber is the longest text that is read as a number.
const maxNumber = 40

// splitNumber cuts a text into its decimal number and the rest.
func splitNumber(s string) (num, rest string) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || s[i] == '_') {
		i++
	}
	return strings.ReplaceAll(s[:i], "_", ""), strings.TrimSpace(s[i:])
}

// decimal reads a plain decimal number exactly.
func decimal(s string) (*big.Rat, bool) {
	digits := strings.TrimLeft(s, "+-")
	if digits == "" || len(s) > maxNumber || strings.Count(digits, ".") > 1 ||
		strings.Trim(digits, "0123456789.") != "" || strings.Trim(digits, ".") == "" || len(s)-len(digits) > 1 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// parse reads a number with a unit into the base unit. 0 needs none.
func (k *quantityKind) parse(s string) (int64, error) {
	num, suffix := splitNumber(strings.TrimSpace(s))
	r, ok := decimal(num)
	if !ok {
		return 0, fmt.Errorf("%q is not %s, as in %s", clip(s), k.what, k.example)
	}
	if suffix == "" {
		if r.Sign() == 0 {
			return 0, nil
		}
		return 0, fmt.Errorf("%q has no unit: give %s, as in %s", clip(s), k.choice, k.example)
	}
	for _, u := range k.units {
		if u.name != suffix {
			continue
		}
		r.Mul(r, new(big.Rat).SetInt64(u.size))
		if !r.IsInt() {
			return 0, fmt.Errorf("%q is finer than 1 %s", clip(s), k.finest())
		}
		if !r.Num().IsInt64() {
			return 0, fmt.Errorf("%q is too large", clip(s))
		}
		return r.Num().Int64(), nil
	}
	return 0, fmt.Errorf("%q: unknown unit %q: give %s", clip(s), clip(suffix), k.choice)
}

func (k *quantityKind) finest() string {
	for _, u := range k.units {
		if u.size == 1 {
			return u.name
		}
	}
	return ""
}

// format writes v exactly, in the largest unit that it reaches.
func (k *quantityKind) format(v int64) string {
	if v == 0 {
		return k.zero
	}
	sign, a := "", uint64(v)
	if v < 0 {
		sign, a = "-", -uint64(v)
	}
	for _, u := range k.units {
		size := uint64(u.size)
		if a < size {
			continue
		}
		if text := decimalText(a, size); k != byteKind || len(text) < 5 {
			return sign + text + u.name
		}
		break
	}
	if k == byteKind && a%1024 == 0 {
		for _, u := range []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if a%uint64(u.size) == 0 {
				return sign + fmt.Sprint(a/uint64(u.size)) + u.name
			}
		}
	}
	for _, u := range k.units {
		if size := uint64(u.size); a >= size {
			return sign + decimalText(a, size) + u.name
		}
	}
	return fmt.Sprintf("%s%d%s", sign, a, k.finest())
}

// decimalText writes a/size exactly; size is a power of ten.
func decimalText(a, size uint64) string {
	s := fmt.Sprintf("%d", a/size)
	rem := a % size
	if rem == 0 {
		return s
	}
	width := len(fmt.Sprintf("%d", size)) - 1
	return s + "." + strings.TrimRight(fmt.Sprintf("%0*d", width, rem), "0")
}

// maxRatio is the largest ratio that files may hold.
const maxRatio = 1 << 20

// parseRatio reads 0.2, 20% or 1/8. Values between multiples of 2^-32 are
// rounded down.
func parseRatio(s string) (Ratio, error) {
	t := strings.TrimSpace(s)
	bad := fmt.Errorf("%q is not a ratio, as in 20%%, 0.2 or 1/8", clip(s))
	percent := strings.HasSuffix(t, "%")
	t = strings.TrimSpace(strings.TrimSuffix(t, "%"))
	num, den, frac := strings.Cut(t, "/")
	r, ok := decimal(strings.TrimSpace(num))
	if !ok {
		return 0, bad
	}
	if frac {
		d, ok := decimal(strings.TrimSpace(den))
		if !ok || percent {
			return 0, bad
		}
		if d.Sign() == 0 {
			return 0, fmt.Errorf("%q divides by 0", clip(s))
		}
		r.Quo(r, d)
	}
	if percent {
		r.Quo(r, big.NewRat(100, 1))
	}
	if r.Sign() < 0 {
		return 0, fmt.Errorf("%q is below 0", clip(s))
	}
	if r.Cmp(big.NewRat(maxRatio, 1)) > 0 {
		return 0, fmt.Errorf("%q is above %d", clip(s), maxRatio)
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(One)))
	return Ratio(new(big.Int).Quo(r.Num(), r.Denom()).Uint64()), nil
}

// String writes the ratio so that it reads back the same: as a power of two
// fraction, or the shortest decimal.
func (r Ratio) String() string {
	if r == 0 {
		return "0"
	}
	if r%One == 0 {
		return fmt.Sprintf("%d", uint64(r/One))
	}
	if r < One && r&(r-1) == 0 && One/r <= 4096 {
		return fmt.Sprintf("1/%d", uint64(One/r))
	}
	// The shortest decimal d with floor(d × 2^32) = r: some multiple of 10^-n
	// lies in [r, r+1) × 2^-32.
	scale := big.NewInt(1)
	for n := 0; ; n++ {
		lo := new(big.Int).Mul(big.NewInt(int64(r)), scale)
		q, m := new(big.Int).DivMod(lo, big.NewInt(int64(One)), new(big.Int))
		if m.Sign() != 0 {
			q.Add(q, big.NewInt(1))
		}
		// q is the least multiple that is not below.
		up := new(big.Int).Mul(q, big.NewInt(int64(One)))
		lo.Add(lo, scale)
		if up.Cmp(lo) < 0 {
			s := fmt.Sprintf("%0*s", n+1, q.String())
			if n == 0 {
				return s
			}
			return s[:len(s)-n] + "." + s[len(s)-n:]
		}
		scale.Mul(scale, big.NewInt(10))
	}
}

func (b Bytes) String() string  { return byteKind.format(int64(b)) }
func (l Length) String() string { return lengthKind.format(int64(l)) }

// TimeText writes a span exactly, with its unit.
func TimeText(t sim.Time) string { return timeKind.format(int64(t)) }

// RateText writes a rate exactly, with its unit.
func RateText(r sim.Rate) string { return rateKind.format(int64(r)) }

// clip shortens what a message repeats, and keeps it on one line.
func clip(s string) string {
	const limit = 60
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}
