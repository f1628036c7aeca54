package snapshot

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// asPlain is what encoding/json alone writes of a reading: the judge of what is written
// by hand.
func asPlain[T any](t *testing.T, v T) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sameValue[T any](t *testing.T, all ...T) {
	t.Helper()
	for _, v := range all {
		want := asPlain(t, v)
		got, err := json.Marshal(Known(v))
		if err != nil || string(got) != want {
			t.Errorf("%#v is %s, %v; encoding/json writes %s", v, got, err, want)
		}
		var back Value[T]
		var plain T
		errPlain := json.Unmarshal([]byte(want), &plain)
		if err := json.Unmarshal(got, &back); err != nil || errPlain != nil || !reflect.DeepEqual(back, Known(plain)) {
			t.Errorf("%s is read as %v, %v; encoding/json reads %v", got, back, err, plain)
		}
	}
}

func TestValuesAreWrittenAsEncodingJSONDoes(t *testing.T) {
	texts := []string{"", "mlx5_0", `a"b`, `a\b`, "<&>", "ü", "\u2028", "\xff\xfe", "\x00\n\t\x7f", strings.Repeat("x", 100)}
	for c := range 256 {
		texts = append(texts, string([]byte{'a', byte(c), 'b'}))
	}
	sameValue(t, texts...)
	sameValue(t, 0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64)
	sameValue[int64](t, 0, 7, -7, math.MaxInt64, math.MinInt64)
	sameValue[uint64](t, 0, 9, 10, 1e18, 9_999_999_999_999_999_999, 1e19, math.MaxUint64)
	sameValue[uint32](t, 0, math.MaxUint32)
	sameValue(t, true, false)
	sameValue(t, 1.5, 1e300)
	sameValue(t, []string{"a"}, []string{})
}

// What is read by hand is read, or refused, as encoding/json does it.
func TestValuesAreReadAsEncodingJSONDoes(t *testing.T) {
	for _, text := range []string{
		`0`, `00`, `01`, `-0`, `-1`, `1.0`, `1e2`, `1E2`, `12345678901234567890`, `18446744073709551615`, `18446744073709551616`,
		`2147483647`, `2147483648`, `4294967295`, `4294967296`, `9223372036854775807`, `9223372036854775808`, ` 5 `, `"5"`, `true`, `[]`, `{}`,
		`""`, `"a"`, `"\u0041"`, `"\n"`, `"ü"`, `"a`, `"a""`, `{"unreadable":"x"}`, `null`, "\"\xff\"", "\"\x7f\"", "\"\x01\"",
	} {
		readBoth[string](t, text)
		readBoth[int](t, text)
		readBoth[int64](t, text)
		readBoth[uint64](t, text)
		readBoth[uint32](t, text)
		readBoth[bool](t, text)
	}
}

func readBoth[T any](t *testing.T, text string) {
	t.Helper()
	if text == "null" || strings.HasPrefix(text, `{"unreadable"`) {
		return // a Value's own
	}
	var plain T
	var v Value[T]
	want, got := json.Unmarshal([]byte(text), &plain), json.Unmarshal([]byte(text), &v)
	if (want == nil) != (got == nil) || want == nil && !reflect.DeepEqual(v, Known(plain)) {
		t.Errorf("%q as %T: %v, %v; encoding/json reads %v, %v", text, plain, v, got, plain, want)
	}
}

func TestCountersAreWrittenAndReadAsEncodingJSONDoes(t *testing.T) {
	count := func(name string, v uint64) Counter { return Counter{name, Known(v)} }
	for _, c := range []Counters{
		nil,
		{},
		{count("a", 1)},
		{count("a", 0), count("b", math.MaxUint64), count("c", 1e18)},
		{count("a", 1), {"b", Unreadable[uint64]("N/A (no PMA)")}, count("c", 3)},
		{{"a", Value[uint64]{}}},
		{count(`odd "name"`, 1)},
		{count("ü<", 2)},
		{count("", 3)},
	} {
		want, got := asPlain(t, plainCounters(c)), asPlain(t, c)
		if got != want {
			t.Errorf("%v is %s, encoding/json writes %s", c, got, want)
		}
	}
	for _, text := range []string{
		`null`, `[]`, `[ ]`, `[{"name":"a","value":1}]`, `[{"name":"a","value":1},{"name":"b","value":2}]`,
		`[ {"name":"a","value":1}]`, `[{"name":"a","value":1 }]`, `[{"value":1,"name":"a"}]`, `[{"name":"a"}]`, `[{"name":"a","value":null}]`,
		`[{"name":"a","value":{"unreadable":"x"}}]`, `[{"name":"a","value":1.5}]`, `[{"name":"a","value":-1}]`, `[{"name":"a","value":"1"}]`,
		`[{"name":"a","value":18446744073709551615}]`, `[{"name":"a","value":18446744073709551616}]`, `[{"name":1,"value":1}]`,
		`[{"name":"a","value":1,"more":2}]`, `[{"name":"a","value":1},]`, `[{"name":"a","value":1}`, `[{"name":"a","value":1}]]`,
		`[{"name":"a\u0041","value":1}]`, `[null]`, `{}`, `7`, `[[]]`,
	} {
		var plain plainCounters
		var c Counters
		want, got := json.Unmarshal([]byte(text), &plain), json.Unmarshal([]byte(text), &c)
		if (want == nil) != (got == nil) || want == nil && !reflect.DeepEqual(c, Counters(plain)) {
			t.Errorf("%s: %#v, %v; encoding/json reads %#v, %v", text, c, got, plain, want)
		}
	}
}

func FuzzCounters(f *testing.F) {
	f.Add([]byte(`[{"name":"a","value":1},{"name":"b","value":2}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return // encoding/json never passes such
		}
		var plain plainCounters
		var c Counters
		want, got := json.Unmarshal(b, &plain), json.Unmarshal(b, &c)
		if (want == nil) != (got == nil) || want == nil && !reflect.DeepEqual(c, Counters(plain)) {
			t.Errorf("%s: %#v, %v; encoding/json reads %#v, %v", b, c, got, plain, want)
		}
	})
}
