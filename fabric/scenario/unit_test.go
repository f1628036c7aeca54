package scenario

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Numbers with units are exact.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		kind *quantityKind
		in   string
		want int64
		out  string
	}{
		{rateKind, "100Gbps", 100e9, "100Gbps"},
		{rateKind, "2.5 Gb/s", 25e8, "2.5Gbps"},
		{rateKind, "40Mbit/s", 40e6, "40Mbps"},
		{rateKind, "1Tbps", 1e12, "1Tbps"},
		{rateKind, "1000Gbps", 1e12, "1Tbps"},
		{rateKind, "0", 0, "0bps"},
		{timeKind, "1us", 1e6, "1us"},
		{timeKind, "1µs", 1e6, "1us"},
		{timeKind, "1.28ns", 1280, "1.28ns"},
		{timeKind, "0.001ms", 1e6, "1us"},
		{timeKind, "83.84ns", 83840, "83.84ns"},
		{timeKind, "2s", 2e12, "2s"},
		{byteKind, "8KB", 8000, "8KB"},
		{byteKind, "8KiB", 8192, "8KiB"},
		{byteKind, "1_000B", 1000, "1KB"},
		{byteKind, "1.5MB", 1500000, "1.5MB"},
		{byteKind, "16MiB", 16 << 20, "16MiB"},
		{byteKind, "1MB", 1e6, "1MB"},
		{byteKind, "1048B", 1048, "1.048KB"},
		{lengthKind, "100m", 100e3, "100m"},
		{lengthKind, "1.5km", 1500e3, "1.5km"},
	} {
		n, err := c.kind.parse(c.in)
		if err != nil || n != c.want || c.kind.format(n) != c.out {
			t.Errorf("%s: %d %s %v, want %d %s", c.in, n, c.kind.format(n), err, c.want, c.out)
		}
	}
	if d := Length(100e3).Delay(); d != 500*sim.Nanosecond {
		t.Error(d) // 5 ns a metre
	}
}

func TestRatios(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Ratio
		out  string
	}{
		{"1", One, "1"},
		{"100%", One, "1"},
		{"1/8", One / 8, "1/8"},
		{"0.125", One / 8, "1/8"},
		{"12.5 %", One / 8, "1/8"},
		{"8", 8 * One, "8"},
		{"0", 0, "0"},
		{"20%", 858993459, "0.2"}, // 0.2 × 2^32 = 858993459.2
		{"0.5%", 21474836, "0.005"},
		{"1/3", 1431655765, "0.3333333333"},
		{"3/2", One * 3 / 2, "1.5"},
	} {
		r, err := parseRatio(c.in)
		if err != nil || r != c.want || r.String() != c.out {
			t.Errorf("%s: %d %s %v, want %d %s", c.in, r, r, err, c.want, c.out)
		}
	}
}

// What is printed reads back the same.
func TestPrintedNumbersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		for _, k := range []*quantityKind{timeKind, rateKind, byteKind, lengthKind} {
			if back, err := k.parse(k.format(n)); err != nil || back != n {
				t.Fatalf("%s: %s: %d %v", k.what, k.format(n), back, err)
			}
		}
		r := Ratio(rapid.Uint64Range(0, uint64(maxRatio)<<32).Draw(t, "r"))
		if back, err := parseRatio(r.String()); err != nil || back != r {
			t.Fatalf("%d: %s: %d %v", r, r, back, err)
		}
	})
}

// Limits in the model's tags are values of their keys, in order, and the
// default lies between them.
func TestLimitsInTags(t *testing.T) {
	var walk func(v reflect.Value, path string)
	n := 0
	walk = func(v reflect.Value, path string) {
		for _, f := range fields(v) {
			p := join(path, f.key)
			switch {
			case isMap(f.val.Type()):
				walk(f.val, p)
			case f.val.Kind() == reflect.Slice && f.val.Type() != typeSelect && f.val.Type().Elem() != typeOverlay:
				fresh := reflect.New(f.val.Type().Elem())
				if def, ok := fresh.Interface().(interface{ setDefaults() }); ok {
					def.setDefaults()
				}
				walk(fresh.Elem(), p)
			}
			for _, limit := range []string{"min", "max"} {
				text := f.tag.Get(limit)
				if text == "" || f.val.Kind() == reflect.Array {
					continue
				}
				n++
				if err := scalar(text, reflect.New(f.val.Type()).Elem(), f.tag); err != nil {
					t.Errorf("%s: its %s: %v", p, limit, err)
				}
			}
			if _, ok := inline(f.val); ok && f.tag.Get("min") != "" && f.val.Kind() != reflect.Array && !f.val.IsZero() {
				text, _ := inline(f.val)
				if err := scalar(text, reflect.New(f.val.Type()).Elem(), f.tag); err != nil {
					t.Errorf("%s: its default: %v", p, err)
				}
			}
		}
	}
	walk(reflect.ValueOf(Default()).Elem(), "")
	if n < 150 {
		t.Errorf("only %d limits", n)
	}
}
