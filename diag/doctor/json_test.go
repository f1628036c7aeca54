package doctor_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/source"
)

// The names in the doctor's JSON, as docs/doctor.md promises them: always there, and
// those that may be left out.
var (
	reportNames   = [2]string{"findings host passed skipped window_seconds", "faults peer problems program"}
	findingNames  = [2]string{"places rule status step title where", "cause condition confidence evidence explained_by fix missing processes verify why"}
	programNames  = [2]string{"matching name processes", ""}
	evidenceNames = [2]string{"value what", "before place rate unit where"}
)

func namesAre(t *testing.T, what string, have map[string]any, want [2]string) {
	t.Helper()
	must, may := strings.Fields(want[0]), strings.Fields(want[1])
	for _, n := range must {
		if _, ok := have[n]; !ok {
			t.Errorf("%s has no %s: %v", what, n, slices.Sorted(maps.Keys(have)))
		}
	}
	for n := range have {
		if !slices.Contains(must, n) && !slices.Contains(may, n) {
			t.Errorf("%s has %s, which docs/doctor.md does not know", what, n)
		}
	}
}

// The JSON of two public cases has the names that the documentation has, and the values
// that the cases tell.
func TestJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range [][2]string{reportNames, programNames, findingNames, evidenceNames} {
		for _, n := range strings.Fields(set[0] + " " + set[1]) {
			if !strings.Contains(string(doc), "`"+n+"`") {
				t.Errorf("docs/doctor.md does not tell of %s", n)
			}
		}
	}
	for _, c := range []struct {
		name  string
		first map[string]any    // of the first finding
		value map[string]string // of its evidence, by what
	}{
		{
			// The interface has an MTU of 1500: the largest MTU of RoCE that fits is 1024.
			"09-dgx-spark-103",
			map[string]any{"rule": "L11", "status": "WARN", "step": 3.0, "where": "rocep1s0f0/1", "places": []any{"rocep1s0f0/1"}},
			map[string]string{"port.active_mtu": "1024", "netdev.mtu": "1500"},
		},
		{
			// ulimit -l in the job says 8192, in KB: 8,388,608 bytes.
			"10-nccl-tests-206",
			map[string]any{"rule": "A01", "status": "FAIL", "step": 4.0},
			map[string]string{"app.memlock": "8388608"},
		},
	} {
		rec, err := source.Open(filepath.Join("testdata", "cases", c.name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := read.Window(rec, read.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(doctor.Examine(doctor.Input{Host: w, Prio: -1}, builtin(t)))
		if err != nil {
			t.Fatal(err)
		}
		var r map[string]any
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		namesAre(t, c.name, r, reportNames)
		for _, list := range []string{"findings", "skipped", "passed"} {
			all, ok := r[list].([]any)
			if !ok {
				t.Fatalf("%s: %s is no list: %v", c.name, list, r[list])
			}
			for _, f := range all {
				f := f.(map[string]any)
				namesAre(t, c.name+" "+f["rule"].(string), f, findingNames)
				if evidence, ok := f["evidence"].([]any); ok {
					for _, e := range evidence {
						namesAre(t, c.name+" evidence", e.(map[string]any), evidenceNames)
					}
				}
			}
		}
		first := r["findings"].([]any)[0].(map[string]any)
		for n, want := range c.first {
			if d := cmp.Diff(want, first[n]); d != "" {
				t.Errorf("%s: %s: %s", c.name, n, d)
			}
		}
		values := map[string]string{}
		for _, e := range first["evidence"].([]any) {
			e := e.(map[string]any)
			values[e["what"].(string)] = e["value"].(string)
		}
		for what, want := range c.value {
			if values[what] != want {
				t.Errorf("%s: %s is %q, want %q", c.name, what, values[what], want)
			}
		}
	}
}
