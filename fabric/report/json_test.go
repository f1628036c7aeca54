package report_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func roundTrip(t interface{ Fatal(...any) }, r *result.Run) *result.Run {
	var b bytes.Buffer
	if err := report.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	got, err := report.ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestJSONRoundTrip(t *testing.T) {
	for _, r := range []*result.Run{sample(), {}, {Interrupted: true, Nodes: fabric()}, {Series: []result.Series{{Flow: -1, Kind: 200}}}} {
		if diff := cmp.Diff(r, roundTrip(t, r), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Name, diff)
		}
	}
}

// Every field of package result is in the file, those of later days too: each
// gets a value of its own and must come back.
func TestJSONHasEveryField(t *testing.T) {
	var r result.Run
	n := int64(0)
	fill(reflect.ValueOf(&r).Elem(), &n)
	// What refers to something must refer to what is there: one node with one
	// port, one flow.
	r.Nodes[0].Ports[0].Peer, r.Nodes[0].Ports[0].PeerPort = 0, 0
	zeroRefs(reflect.ValueOf(&r).Elem())
	if diff := cmp.Diff(&r, roundTrip(t, &r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fill sets every field to a value that no other has; lists get one element.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Uint8:
		v.SetUint(uint64(*n%3 + 1))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(uint64(*n))
	default:
		v.SetInt(*n)
	}
}

func zeroRefs(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Node", "Port", "Flow", "SrcNode", "DstNode", "Egress", "Peer", "PeerPort":
				v.Field(i).SetZero()
			default:
				zeroRefs(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			zeroRefs(v.Index(i))
		}
	default:
	}
}

// A name that was in a file once stays: the list of testdata may grow, not
// shrink.
func TestJSONNamesAreStable(t *testing.T) {
	var r result.Run
	n := int64(0)
	fill(reflect.ValueOf(&r).Elem(), &n)
	zeroRefs(reflect.ValueOf(&r).Elem())
	b := string(written(t, writeWith(&r, report.WriteJSON)))
	var names []string
	for _, m := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(b, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	file := filepath.Join("testdata", "names.txt")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(old)) {
		if !slices.Contains(names, name) {
			t.Errorf("%q is gone: a reader of older files needs it, or a new JSONVersion", name)
		}
	}
}

// Numbers that JSON readers lose, and instants that never come.
func TestJSONLargeNumbers(t *testing.T) {
	r := sample()
	r.Seed, r.Digest = 1<<64-1, 1<<63
	b := written(t, writeWith(r, report.WriteJSON))
	for _, want := range []string{`"seed": "18446744073709551615"`, `"digest": "0x8000000000000000"`, `"finish_ps":null`, `"state":"running"`, `"rate_bps":100000000000`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s", want)
		}
	}
	if got := roundTrip(t, r); got.Seed != r.Seed || got.Digest != r.Digest || got.Flows[5].Finish != sim.Never {
		t.Errorf("seed %d, digest %x, finish %v", got.Seed, got.Digest, got.Flows[5].Finish)
	}
}

// Each complaint is one line that begins with line and column and names the
// field, the value and what is allowed.
func TestJSONErrors(t *testing.T) {
	const head = `{"format": "verbena-run", "version": 1, "run": `
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "1:1: the file ends early"},
		{"no JSON", "hello", "1:1: not JSON: invalid character 'h' looking for beginning of value"},
		{"a list", "[]", "1:1: a list where an object is needed"},
		{"another file", `{"format": "other"}`, `1:18: format: "other": must be "verbena-run"`},
		{"no head", `{"a": 1}`, "1:1: no file of a run: format and version are missing"},
		{"later", `{"format": "verbena-run", "version": 99}`, "1:39: version: 99: this program reads 1 to 1"},
		{"run first", `{"run": {}, "format": "verbena-run"}`, "1:6: run: format and version must be before it"},
		{"cut off", head + "{\"flows\": [\n{\"bytes\":", "2:10: flows[0].bytes: the file ends early"},
		{"text for number", head + "{\"flows\": [\n{\"bytes\":\"x\"}]}}", "2:12: flows[0].bytes: a text where a number is needed"},
		{"number for text", head + `{"name": 5}}`, "1:57: name: the number 5 where a text is needed"},
		{"fraction", head + `{"events": 1.5}}`, "1:61: events: 1.5: must be a whole number of 64 bits, not negative"},
		{"too large", head + `{"flows": [{"prio": 256}]}}`, "1:70: flows[0].prio: 256: must be a whole number of 8 bits, not negative"},
		{"too large for int32", head + `{"flows": [{"id": 3000000000}]}}`, "1:75: flows[0].id: 3000000000: must be a whole number of 32 bits"},
		{"no such state", head + `{"flows": [{"state": "asleep"}]}}`, `1:76: flows[0].state: "asleep": must be one of waiting, running, finished, failed`},
		{"prio", head + `{"nodes": [{"ports": [{"prio": [{"prio": 8}]}]}]}}`, "1:89: nodes[0].ports[0].prio.prio: 8: must be 0 to 7"},
		{"prio late", head + `{"nodes": [{"ports": [{"prio": [{"marked": 8}]}]}]}}`, `1:88: nodes[0].ports[0].prio: "marked" where "prio" must be first`},
		{"node", head + "{\"nodes\": [{}],\n\"flows\": [\n{\"id\":0},\n{\"src_node\":7}\n]}}", "4:14: flows[1].src_node: 7: there are 1 nodes"},
		{"port", head + `{"nodes": [{"name": "a"}], "pauses": [{"node": 0, "port": 0}]}}`, "1:107: pauses[0].port: 0: there are 0 ports of a"},
		{"step", head + `{"nodes": [{}], "series": [{"kind": "buffer_shared_bytes", "flow": -1, "step_ps": -1}]}}`, "1:132: series[0].step_ps: -1: there are 0 such steps: it must not be negative"},
		{"more", head + `{}} x`, "1:52: something follows the end of the run"},
		{"bool", head + `{"interrupted": 1}}`, "1:64: interrupted: the number 1 where true or false is needed"},
		{"null", head + `{"end_ps": null, "events": null}}`, "1:78: events: null where a number is needed"},
		{"values", head + `{"series": [{"values": [1, "x", 3]}]}}`, "1:81: series[0].values: a list in which string is not a whole number of 64 bits"},
		{"fraction of a value", head + `{"series": [{"values": [1.5]}]}}`, "1:75: series[0].values: a list in which number 1.5 is not a whole number of 64 bits"},
		{"broken values", head + "{\"series\": [\n{\"values\": [1, z]}]}}", "2:10: series[0].values: not JSON: invalid character 'z' looking for beginning of value"},
		{"values cut off", head + `{"series": [{"values": [1, `, "1:75: series[0].values: the file ends early"},
		{"digest", head + `{"digest": "0xg"}}`, "1:63: digest: g: must be a whole number of 64 bits, not negative"},
	} {
		_, err := report.ReadJSON(strings.NewReader(c.text))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%s: got\n  %s, want\n  %s", c.name, err, c.want)
		}
	}
}

// What this version does not know is left out, however deep.
func TestJSONIgnoresNewFields(t *testing.T) {
	got, err := report.ReadJSON(strings.NewReader(
		`{"format": "verbena-run", "version": 1, "by": {"a": [1, {"b": null}]}, "run": {"name": "x", "later": [[{}], 3], "nodes": [{"name": "n", "weight": 4}]}}`))
	if err != nil || got.Name != "x" || got.Nodes[0].Name != "n" {
		t.Errorf("%v, %v", got, err)
	}
}

// Names of the file do not break the line that says what is wrong with it.
func TestJSONErrorsAreOneLine(t *testing.T) {
	for _, text := range []string{
		"{\"a\\nb\", 1}",
		"{\"a\\u001b[31m\", 1}",
		`{"format": "verbena-run", "version": 1, "run": {"a\nb", 1}}`,
		`{"format": "verbena\nrun"}`,
		`{"format": "verbena-run", "version": 1, "run": {"nodes": [{"name": "n\n", "name": 4}]}}`,
	} {
		_, err := report.ReadJSON(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: %q", text, err)
		}
	}
}

// No file makes the reader panic; what it takes it can report.
func TestJSONSurvivesDamage(t *testing.T) {
	whole := written(t, writeWith(sample(), report.WriteJSON))
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(whole)
		for range rapid.IntRange(1, 4).Draw(rt, "n") {
			i := rapid.IntRange(0, len(b)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 2).Draw(rt, "how") {
			case 0:
				b[i] = rapid.Byte().Draw(rt, "byte")
			case 1:
				b = b[:i+1]
			case 2:
				b = slices.Delete(b, i, min(len(b)-1, i+rapid.IntRange(1, 40).Draw(rt, "cut")))
			}
		}
		r, err := report.ReadJSON(bytes.NewReader(b))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				rt.Fatalf("more than a line: %q", err)
			}
			return
		}
		var out bytes.Buffer
		if err := report.WriteText(&out, r); err != nil {
			rt.Fatal(err)
		}
		report.Charts(r)
	})
}

func FuzzReadJSON(f *testing.F) {
	var b bytes.Buffer
	if err := report.WriteJSON(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"format": "verbena-run", "version": 1, "run": {"nodes": [{"ports": [{"peer": 0}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := report.ReadJSON(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := report.WriteText(&out, r); err != nil {
			t.Fatal(err)
		}
		if err := report.WriteHTML(&out, r, report.Page{}); err != nil {
			t.Fatal(err)
		}
	})
}

// Text comes back as it was, but for broken UTF-8.
func TestJSONText(t *testing.T) {
	for _, s := range []string{"", "a\"b\\c", "\x00\x1b\x7f\u0085\u202e\ufeff", "\U000e0001\U0001f600漢", "</script>", "\u2028"} {
		if got := roundTrip(t, &result.Run{Name: s}).Name; got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	}
	if got := roundTrip(t, &result.Run{Name: "a\xffb"}).Name; got != "a\ufffdb" {
		t.Errorf("broken UTF-8: %q", got)
	}
}

// The embedded data of a page are a file of a run themselves.
func TestPageData(t *testing.T) {
	b := string(written(t, func(w writer) error { return report.WriteHTML(w, sample(), page()) }))
	_, data, _ := strings.Cut(b, `id="run">`)
	data, _, _ = strings.Cut(data, "</script>")
	got, err := report.ReadJSON(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
