package sweep

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/metric"
)

func TestParseSets(t *testing.T) {
	for _, c := range []struct {
		sets  []string
		fixed []string
		axes  []Axis
	}{
		{[]string{"a=1"}, []string{"a=1"}, nil},
		{[]string{"a=1,2, 3", "b=x"}, []string{"b=x"}, []Axis{{[]string{"a"}, []string{"1", "2", "3"}}}},
		{[]string{"ecn.kmin+ecn.kmax=8KB,16KB"}, nil, []Axis{{[]string{"ecn.kmin", "ecn.kmax"}, []string{"8KB", "16KB"}}}},
		{[]string{"a+b=1"}, []string{"a=1", "b=1"}, nil},
		{[]string{"p=[3, 4]"}, []string{"p=[3, 4]"}, nil},
		{[]string{"p=[3,4],[5]", `s="x,y",z`}, nil, []Axis{{[]string{"p"}, []string{"[3,4]", "[5]"}}, {[]string{"s"}, []string{`"x,y"`, "z"}}}},
		{[]string{"m={3: 1/8, 4: 1},{}"}, nil, []Axis{{[]string{"m"}, []string{"{3: 1/8, 4: 1}", "{}"}}}},
		{[]string{"seed=3..5"}, nil, []Axis{{[]string{"seed"}, []string{"3", "4", "5"}}}},
		{[]string{"seed=1..2,9"}, nil, []Axis{{[]string{"seed"}, []string{"1", "2", "9"}}}},
		{[]string{"src=host8..host23"}, []string{"src=host8..host23"}, nil}, // a selection, not a range
		{[]string{"a="}, []string{"a="}, nil},
		{[]string{"a=x=y"}, []string{"a=x=y"}, nil},
	} {
		fixed, axes, err := ParseSets(c.sets)
		if err != nil || !slices.Equal(fixed, c.fixed) || cmp.Diff(axes, c.axes) != "" {
			t.Errorf("%q: %q %+v %v", c.sets, fixed, axes, err)
		}
	}
}

func TestParseSetsErrors(t *testing.T) {
	many := "a=1.." + strconv.Itoa(999)
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"a"}, "no ="},
		{[]string{"=1"}, "a key is missing"},
		{[]string{"a+=1"}, "a key is missing"},
		{[]string{"a=1,,2"}, "empty value"},
		{[]string{"a=1,"}, "empty value"},
		{[]string{"a=1,2,1"}, "1 is there twice"},
		{[]string{"a=1,2", "a=3"}, "a is set twice"},
		{[]string{"a+a=1,2"}, "a is set twice"},
		{[]string{"a=5..2"}, "not a range"},
		{[]string{"a=1..5000"}, "not a range"},
		{[]string{many, "b=1..999"}, "more than 100000 points"},
		{[]string{"a=1..999,1000..1999"}, "more than 1000 values"},
	} {
		_, _, err := ParseSets(c.sets)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %q", c.sets, err, c.want)
		}
	}
}

// Whatever is on the command line is taken or refused, and what is taken is all
// of it.
func TestParseSetsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune(`ab1,.=+[]{}"' `))).Draw(t, "set")
		fixed, axes, err := ParseSets([]string{text})
		if err != nil {
			return
		}
		if (len(fixed) == 0) == (len(axes) == 0) {
			t.Fatalf("%q: %q %+v", text, fixed, axes)
		}
	})
}

func TestNumbersWithUnits(t *testing.T) {
	for s, want := range map[string]metric.Value{
		"8KB": {V: 8000, Unit: metric.Bytes}, "1KiB": {V: 1024, Unit: metric.Bytes}, "1.5MB": {V: 1.5e6, Unit: metric.Bytes}, "0B": {V: 0, Unit: metric.Bytes},
		"100Gbps": {V: 100e9, Unit: metric.Bits}, "5Mbps": {V: 5e6, Unit: metric.Bits}, "1us": {V: 1e6, Unit: metric.Time}, "1.5 ms": {V: 1.5e9, Unit: metric.Time},
		"2s": {V: 2e12, Unit: metric.Time}, "20%": {V: 0.2}, "1/8": {V: 0.125}, "-3": {V: -3}, "12": {V: 12}, "100m": {V: 5e5, Unit: metric.Time}, "1km": {V: 5e6, Unit: metric.Time},
	} {
		v, u, ok := number(s)
		if !ok || u != want.Unit || v < want.V-1e-9 || v > want.V+1e-9 {
			t.Errorf("%q: %v %v %v, want %+v", s, v, u, ok, want)
		}
	}
	for _, s := range []string{"", "x", "8XB", "KB", "1/0", "1/x", "per-switch", "[3]", "..", "Gbps"} {
		if v, _, ok := number(s); ok {
			t.Errorf("%q is %v", s, v)
		}
	}
	mixed := Axis{Keys: []string{"a"}, Values: []string{"1us", "8KB"}}
	zero := Axis{Keys: []string{"a"}, Values: []string{"0", "8KB"}}
	if _, _, ok := mixed.numbers(); ok {
		t.Error("times and sizes on one axis")
	}
	if _, u, ok := zero.numbers(); !ok || u != metric.Bytes {
		t.Error("0 goes with every unit")
	}
}
