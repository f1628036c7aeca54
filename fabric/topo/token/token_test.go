package token

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

func fields(t *testing.T, r *Reader) []string {
	t.Helper()
	var out []string
	for {
		p, okp := r.Peek()
		f, ok := r.Next()
		if p != f || ok != okp {
			t.Fatalf("Peek says %v %v, Next %v %v", p, okp, f, ok)
		}
		if !ok {
			return out
		}
		mark := ""
		if f.New {
			mark = "*"
		}
		out = append(out, fmt.Sprintf("%s%d:%d %q", mark, f.Line, f.Col, f.Text))
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		name, in string
		comma    byte
		want     []string
	}{
		{"empty", "", 0, nil},
		{"blank lines", "\n \r\n\t\n", 0, nil},
		{"words", "a  b\r\n c", 0, []string{`*1:1 "a"`, `1:4 "b"`, `*2:2 "c"`}},
		{"comments", "# x\na #b c\n#\nd#e", 0, []string{`*2:1 "a"`, `*4:1 "d"`}},
		{"a comma is text", "a,b c", 0, []string{`*1:1 "a,b"`, `1:5 "c"`}},
		{
			"commas", " a b ,, c\r\n\n,\nd", ',',
			[]string{`*1:2 "a b"`, `1:7 ""`, `1:9 "c"`, `*3:1 ""`, `3:2 ""`, `*4:1 "d"`},
		},
		{"trailing comma at the end", "a,", ',', []string{`*1:1 "a"`, `1:3 ""`}},
		{"comma and comment", "a, #b\nc", ',', []string{`*1:1 "a"`, `1:6 ""`, `*2:1 "c"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(iotest.OneByteReader(strings.NewReader(c.in)), "f")
			r.Comma = c.comma
			if d := cmp.Diff(c.want, fields(t, r)); d != "" || r.Err() != nil {
				t.Error(d, r.Err())
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	r := NewReader(strings.NewReader("a "+strings.Repeat("x", 1000)), "f")
	if got := fields(t, r); len(got) != 1 || fmt.Sprint(r.Err()) != "f:1:3: field is longer than 256 bytes" {
		t.Error(got, r.Err())
	}
	r = NewReader(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), "f")
	if fields(t, r); !errors.Is(r.Err(), io.ErrUnexpectedEOF) || r.Err().Error() != "f:2: unexpected EOF" {
		t.Error(r.Err())
	}
	r = NewReader(strings.NewReader("a b"), "f")
	f, _ := r.Next()
	_ = r.Fail(f, "first")
	_ = r.FailFile("second")
	if _, ok := r.Next(); ok || r.Err().Error() != "f:1:1: first" {
		t.Error(r.Err())
	}
	r = NewReader(strings.NewReader("1\n"), "f")
	_, _ = r.NextInt("x", 0, 1)
	if _, err := r.NextInt("size", 0, 1); err == nil || err.Error() != "f:2: size is missing: the file ends here" {
		t.Error(err)
	}
}

// A decimal is what exact arithmetic makes of it.
func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		in    string
		scale int
		most  uint64
		want  uint64
		ok    bool
	}{
		{"2", 12, 1 << 62, 2e12, true},
		{"2.000001", 12, 1 << 62, 2000001000000, true},
		{"1e-05", 12, 1 << 62, 1e7, true},
		{".5", 0, 9, 1, true},
		{"0.4999", 0, 9, 0, true},
		{"0e9999", 0, 9, 0, true},
		{"0.00000000000000000000000000001", 3, 9, 0, true},
		{"1E+3", 0, 1000, 1000, true},
		{"1000.5", 0, 1000, 0, false},
		{"18446744073709551620", 0, 1<<64 - 1, 0, false},
		{"1e20", 0, 1<<64 - 1, 0, false},
		{"1e9999", 0, 1<<64 - 1, 0, false},
		{"1e99999", 0, 9, 0, false},
		{"", 0, 9, 0, false},
		{".", 0, 9, 0, false},
		{"-1", 0, 9, 0, false},
		{"1.2.3", 0, 9, 0, false},
		{"1e", 0, 9, 0, false},
		{"nan", 0, 9, 0, false},
		{"0x10", 0, 99, 0, false},
	} {
		got, ok := Decimal(c.in, c.scale, c.most)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("Decimal(%q, %d) = %d, %v, want %d, %v", c.in, c.scale, got, ok, c.want, c.ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,10}(\.[0-9]{0,8})?(e-?[0-9])?`).Draw(t, "text")
		scale := rapid.IntRange(0, 12).Draw(t, "scale")
		x, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip()
		}
		x.Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		x.Add(x, big.NewRat(1, 2))
		want := new(big.Int).Div(x.Num(), x.Denom())
		got, ok := Decimal(text, scale, 1<<63)
		fits := want.Cmp(new(big.Int).SetUint64(1<<63)) <= 0
		if ok != fits || ok && want.Cmp(new(big.Int).SetUint64(got)) != 0 {
			t.Fatalf("Decimal(%q, %d) = %d, %v, want %d", text, scale, got, ok, want)
		}
	})
}

func one(text string) (*Reader, Field) {
	r := NewReader(strings.NewReader(text), "f")
	f, _ := r.Next()
	return r, f
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"12", "12"},
		{"-3", "-3"},
		{"100", "f:1:1: n 100 is over the limit of 99"},
		{"-4", "f:1:1: n -4 is less than -3"},
		{"99999999999999999999999", "f:1:1: n 99999999999999999999999 is over the limit of 99"},
		{"1.5", `f:1:1: n "1.5" is not a whole number`},
		{"-", `f:1:1: n "-" is not a whole number`},
	} {
		r, f := one(c.in)
		n, err := r.Int(f, "n", -3, 99)
		if got := fmt.Sprint(n); err == nil && got != c.want || err != nil && err.Error() != c.want {
			t.Errorf("Int(%q) = %d, %v", c.in, n, err)
		}
	}
	for in, want := range map[string]uint64{"0": 0, "1": 1 << 32, "0.5": 1 << 31, "1.0": 1 << 32, "2.3283064365386963e-10": 1, "1e-3": 4294967} {
		r, f := one(in)
		if got, err := r.Share(f, "x"); got != want || err != nil {
			t.Errorf("Share(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	r, f := one("1.01")
	if _, err := r.Share(f, "error rate"); err == nil || err.Error() != `f:1:1: error rate "1.01" is not a number from 0 to 1` {
		t.Error(err)
	}
}

func TestUnits(t *testing.T) {
	for in, want := range map[string]sim.Rate{
		"100Gbps": 100e9, "2.5Gbps": 2.5e9, "25000000000": 25e9, "25000000000.0": 25e9, "1e9": 1e9, "10Gb/s": 10e9,
		"1GB/s": 8e9, "100Mbps": 100e6, "1.6Tbps": 1.6e12, "0.1Kbps": 100, "1Kib/s": 1024, "1bps": 1,
	} {
		r, f := one(in)
		if got, err := r.Rate(f, "rate", 100*1000*sim.Gbps); got != want || err != nil {
			t.Errorf("Rate(%q) = %d, %v", in, got, err)
		}
	}
	for in, want := range map[string]sim.Time{
		"1us": 1e6, "0.001ms": 1e6, "1000ns": 1e6, "0.000025ms": 25e3, "2": 2e12, "1.5ps": 2, "0": 0, "0s": 0, "1e-6s": 1e6,
	} {
		r, f := one(in)
		if got, err := r.Time(f, "delay", 10*sim.Second); got != want || err != nil {
			t.Errorf("Time(%q) = %d, %v", in, got, err)
		}
	}
	for _, c := range []struct{ in, rate, time string }{
		{"x", `f:1:1: rate "x" is not a rate such as 100Gbps`, `f:1:1: delay "x" is not a time such as 1us`},
		{"100", "", "f:1:1: delay 100 is over the limit of 10s"},
		{"1e30", "f:1:1: rate 1e30 is over the limit of 1Gbps", "f:1:1: delay 1e30 is over the limit of 10s"},
		{"0", "f:1:1: rate 0 is not positive", ""},
		{"-1", `f:1:1: rate "-1" is not a rate such as 100Gbps`, `f:1:1: delay "-1" is not a time such as 1us`},
		{"1gbps", `f:1:1: rate "1gbps" is not a rate such as 100Gbps`, `f:1:1: delay "1gbps" is not a time such as 1us`},
		{"Gbps", `f:1:1: rate "Gbps" is not a rate such as 100Gbps`, `f:1:1: delay "Gbps" is not a time such as 1us`},
	} {
		r, f := one(c.in)
		if _, err := r.Rate(f, "rate", sim.Gbps); c.rate != "" && (err == nil || err.Error() != c.rate) {
			t.Errorf("Rate(%q): %v", c.in, err)
		}
		r, f = one(c.in)
		if _, err := r.Time(f, "delay", 10*sim.Second); c.time != "" && (err == nil || err.Error() != c.time) {
			t.Errorf("Time(%q): %v", c.in, err)
		}
	}
}
