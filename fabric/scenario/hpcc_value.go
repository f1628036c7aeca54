package scenario

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

func (h *hpccReader) integer(key, s string, lo, hi int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		// Some files have 32.0.
		if f, ok := decimal(s); ok && f.IsInt() && f.Num().IsInt64() {
			n, err = f.Num().Int64(), nil
		}
	}
	if err != nil || n < lo || n > hi {
		return 0, h.fail(key, "%q is not a whole number from %d to %d", clip(s), lo, hi)
	}
	return n, nil
}

func (h *hpccReader) flag(key, s string) error {
	if s != "0" && s != "1" {
		return h.fail(key, "%q is not 0 or 1", clip(s))
	}
	h.number[key] = s
	return nil
}

// time reads a decimal number of a unit.
func (h *hpccReader) time(key, s string, unit int64, to *sim.Time) error {
	r, ok := decimal(s)
	if !ok || r.Sign() < 0 {
		return h.fail(key, "%q is not a number from 0", clip(s))
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() || sim.Time(n.Int64()) > longest {
		// Some files have 40000000000000 for "without end".
		n.SetInt64(int64(longest))
	}
	if n.Sign() == 0 {
		return h.fail(key, "%s is no time at all", clip(s))
	}
	*to = sim.Time(n.Int64())
	return nil
}

func (h *hpccReader) knob(d *DCQCN, name, value string, err error) error {
	if err != nil {
		return err
	}
	d.Knobs = append(d.Knobs, Knob{name, value})
	h.places["host.dcqcn."+name] = h.line
	return nil
}

func (h *hpccReader) micros(d *DCQCN, name, key, s string) error {
	if r, ok := decimal(s); !ok || r.Sign() < 0 {
		return h.fail(key, "%q is not a number of microseconds", clip(s))
	}
	return h.knob(d, name, s+"us", nil)
}

// gain turns 0.00390625 into 1/256.
func (h *hpccReader) gain(key, s string) (string, error) {
	num, den, ok := strings.Cut(s, "/")
	r, good := decimal(num)
	if ok && good {
		d, g := decimal(den)
		if good = g && d.Sign() > 0; good {
			r.Quo(r, d)
		}
	}
	if !good || r.Sign() <= 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
		return "", h.fail(key, "%q is not a gain above 0, up to 1", clip(s))
	}
	if r.Denom().Cmp(big.NewInt(1<<16)) > 0 {
		// 0.0039 and the like: the nearest n/65536.
		r.Mul(r, big.NewRat(1<<16, 1))
		n := new(big.Int).Quo(new(big.Int).Add(new(big.Int).Lsh(r.Num(), 1), r.Denom()), new(big.Int).Lsh(r.Denom(), 1))
		if n.Sign() == 0 {
			n.SetInt64(1)
		}
		r = new(big.Rat).SetFrac(n, big.NewInt(1<<16))
	}
	return r.Num().String() + "/" + r.Denom().String(), nil
}

func (h *hpccReader) rate(d *DCQCN, name, key, s string) error {
	n, err := rateKind.parse(s)
	if err != nil {
		return h.fail(key, "%s", err)
	}
	return h.knob(d, name, RateText(sim.Rate(n)), nil)
}

// rates reads "n rate value rate value ...".
func (h *hpccReader) rates(which int, key string, args []string) error {
	if len(args) == 0 {
		return h.fail(key, "no values; it has a count, then pairs of bit/s and value")
	}
	n, err := h.integer(key, args[0], 1, 64)
	if err != nil {
		return err
	}
	if int64(len(args)-1) != 2*n {
		return h.fail(key, "%d values behind the count %d; there must be %d", len(args)-1, n, 2*n)
	}
	for i := 1; i < len(args); i += 2 {
		rate, err := h.integer(key, args[i], 1, 1e13)
		if err != nil {
			return err
		}
		h.maps[which] = append(h.maps[which], hpccRate{rate, args[i+1]})
	}
	return nil
}

// linkDown reads "time_us a b"; 0 0 0 means none. Times count from 2 s.
func (h *hpccReader) linkDown(key string, args []string) error {
	var v [3]int64
	for i, s := range args {
		n, err := h.integer(key, s, 0, 1<<40)
		if err != nil {
			return err
		}
		v[i] = n
	}
	if v[0] == 0 {
		return nil
	}
	f := Fault{At: 2*sim.Second + sim.Time(v[0])*sim.Microsecond, Kind: LinkDown}
	f.setDefaults()
	// Which of the two is a switch is known when the topology is read; links
	// between switches are what that key is for.
	f.Where = fmt.Sprintf("sw%d-sw%d", v[1], v[2])
	h.s.Faults = append(h.s.Faults, f)
	h.warn(key, "taken as the link of switches %s; write hostN for a host", f.Where)
	return nil
}
