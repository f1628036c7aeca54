package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/internal/play"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = `title: some into one
topology: {kind: star, hosts: 5}
host: {dcqcn: {preset: "off"}}
workload: [{name: in, kind: incast, src: host1..host4, dst: host0, bytes: 100KB}]
`

func source(t *testing.T) *play.Source {
	t.Helper()
	name := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(name, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := play.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func config(t *testing.T, sets ...string) Config {
	t.Helper()
	fixed, axes, err := ParseSets(sets)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Source: source(t), Change: play.Change{Sets: fixed}, Axes: axes, Version: "v1", Dir: filepath.Join(t.TempDir(), "out")}
}

func sweep(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// numbers returns the medians of all points.
func numbers(r *Result) map[string]float64 {
	out := map[string]float64{}
	for _, p := range r.Points {
		for _, m := range r.Metrics {
			mid, _, _ := p.Cell(m)
			out[strings.Join(p.Values, " ")+" "+m] = mid.V
		}
	}
	return out
}

// A sweep's numbers are those of single runs, in the order of the grid, however
// many go at a time.
func TestSweepIsSingleRuns(t *testing.T) {
	c := config(t, "workload.in.bytes=10KB,100KB,200KB", "topology.delay=1us,2us", "seed=7")
	one, many := c, c
	one.Jobs, many.Jobs, one.Dir, many.Dir = 1, 7, "", ""
	a, b := sweep(t, one), sweep(t, many)
	if d := cmp.Diff(numbers(a), numbers(b)); d != "" || len(a.Points) != 6 || a.Ran != 6 || a.Stopped {
		t.Errorf("%s %+v", d, a)
	}
	if got := strings.Join(a.Points[1].Values, " "); got != "10KB 2us" {
		t.Errorf("the second point is %s", got)
	}
	for _, p := range a.Points {
		sc, err := c.Source.Scenario(play.Change{Sets: append([]string{"seed=7"}, p.sets(c.Axes)...)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := sc.Run(t.Context(), &play.Files{}, play.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range a.Metrics {
			want, err := metric.Of(o.Result, m)
			mid, _, _ := p.Cell(m)
			if err != nil || mid.Value != want || p.Runs[0].Digest != o.Result.Digest {
				t.Errorf("%v %s: %+v, want %+v, %v", p.Values, m, mid, want, err)
			}
		}
	}
	// Larger messages take longer: the rows are not mixed up.
	if n := numbers(a); n["10KB 1us flow.in.fct.p99"] >= n["100KB 1us flow.in.fct.p99"] {
		t.Error(n)
	}
}

// Of what was interrupted the rest is run, and the whole is as if it had not
// been.
func TestResume(t *testing.T) {
	c := config(t, "workload.in.bytes=10KB,20KB,30KB,40KB,50KB", "seed=1,2")
	c.Jobs = 2
	whole := sweep(t, Config{Source: c.Source, Axes: c.Axes, Version: c.Version})
	got := 0
	for rounds := 0; ; rounds++ {
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(8)
		r, err := Run(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Stored != got || r.Total != 10 || rounds > 20 {
			t.Fatalf("round %d: %d stored, %d before, %d in all", rounds, r.Stored, got, r.Total)
		}
		got = r.Stored + r.Ran
		if !r.Stopped {
			if d := cmp.Diff(numbers(whole), numbers(r)); d != "" || rounds == 0 {
				t.Errorf("after %d rounds: %s", rounds, d)
			}
			break
		}
	}
	if r := sweep(t, c); r.Stored != 10 || r.Ran != 0 {
		t.Errorf("%d stored, %d run", r.Stored, r.Ran)
	}
	c.Fresh = true
	if r := sweep(t, c); r.Ran != 10 {
		t.Errorf("fresh: %d run", r.Ran)
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// What decides a run is in its key: nothing that was computed otherwise counts.
func TestKeys(t *testing.T) {
	base := config(t, "workload.in.bytes=10KB,20KB")
	sweep(t, base)
	for name, change := range map[string]func(c *Config){
		"version": func(c *Config) { c.Version = "v2" },
		"setting": func(c *Config) { c.Change.Sets = []string{"topology.delay=3us"} },
		"seed":    func(c *Config) { c.Change.Sets = []string{"seed=9"} },
	} {
		c := base
		change(&c)
		if r := sweep(t, c); r.Ran != 2 || r.Stored != 0 {
			t.Errorf("%s: %d run, %d stored", name, r.Ran, r.Stored)
		}
	}
	// Another metric that was not kept needs the runs again; one that was does not.
	c := base
	c.Metrics = []string{"marks", "end"}
	if r := sweep(t, c); r.Stored != 2 {
		t.Errorf("kept metrics: %d stored", r.Stored)
	}
	c.Metrics = []string{"flow.in.goodput.max"}
	if r := sweep(t, c); r.Ran != 2 {
		t.Errorf("a new metric: %d run", r.Ran)
	}
}

// A trace that has changed makes other runs of the same scenario.
func TestFilesAreInTheKey(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "trace.yaml")
	trace := filepath.Join(dir, "flow.txt")
	text := "topology: {kind: star, hosts: 3}\nworkload: [{name: t, kind: trace, file: flow.txt, format: hpcc}]\n"
	for name, s := range map[string]string{scenario: text, trace: "1\n0 1 3 100 20000 0.0\n"} {
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := play.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Source: src, Axes: []Axis{{[]string{"seed"}, []string{"1", "2"}}}, Version: "v1", Dir: filepath.Join(dir, "out")}
	if r := sweep(t, c); r.Ran != 2 {
		t.Fatalf("%+v", r)
	}
	if r := sweep(t, c); r.Stored != 2 {
		t.Fatalf("%+v", r)
	}
	if err := os.WriteFile(trace, []byte("1\n0 1 3 100 90000 0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(trace, later, later); err != nil {
		t.Fatal(err)
	}
	if r := sweep(t, c); r.Ran != 2 {
		t.Fatalf("%+v", r)
	}
}

// A file that a crash has torn loses the line, no more.
func TestTornFile(t *testing.T) {
	c := config(t, "workload.in.bytes=10KB,20KB,30KB")
	sweep(t, c)
	name := filepath.Join(c.Dir, StoreName)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	torn := bytes.Join([][]byte{[]byte("junk\n"), lines[0], []byte("{}\n\n"), lines[1], lines[2][:len(lines[2])/2]}, nil)
	if err := os.WriteFile(name, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := sweep(t, c); r.Stored != 2 || r.Ran != 1 {
		t.Errorf("%d stored, %d run", r.Stored, r.Ran)
	}
	if r := sweep(t, c); r.Stored != 3 {
		t.Errorf("%d stored", r.Stored)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), StoreName) {
		t.Error(err)
	}
}

// What cannot be is named and left out; if nothing can be, that is the error.
func TestImpossiblePoints(t *testing.T) {
	c := config(t, "ecn.kmin=10KB,90KB,20KB", "ecn.kmax=50KB,100KB")
	r := sweep(t, c)
	n := 0
	for _, p := range r.Points {
		if p.Impossible != "" {
			n++
			if !strings.Contains(p.Impossible, "--set ecn.kmin=90KB") {
				t.Error(p.Impossible)
			}
		}
	}
	var b bytes.Buffer
	if err := r.Tell(&b); err != nil || n != 1 || r.Ran != 5 || r.Stopped || !strings.Contains(b.String(), "impossible: --set") {
		t.Errorf("%v %d impossible, %d run\n%s", err, n, r.Ran, &b)
	}
	// Found only when the network is built: no such host.
	if r = sweep(t, config(t, "workload.in.dst=host0,host77")); r.Ran != 1 || r.Total != 1 || r.Stopped || r.Points[1].Impossible == "" {
		t.Errorf("%+v", r)
	}
	for _, sets := range [][]string{{"no_such_key=1,2"}, {"ecn.kmin=9MB,8MB", "ecn.kmax=1KB"}} {
		if _, err := Run(t.Context(), config(t, sets...)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", sets, err)
		}
	}
}

func TestMetricsAreCheckedFirst(t *testing.T) {
	for _, m := range []string{"flow.in.speed", "flow.out.goodput", "nonsense", "port.sw0.Ethernet9.p3.marks", "flow.in.fct.p0"} {
		c := config(t, "seed=1,2")
		c.Metrics = []string{"marks", m}
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--metric") {
			t.Errorf("%s: %v", m, err)
		}
	}
	c := config(t, "seed=1,2")
	c.Metrics = []string{"flow.in.fct.p99", "flow.*.jain", "queue.sw0.Ethernet0.p3.max", "nic.host0.rcvd_pkts", "drops.no_buffer", "headroom.used"}
	sweep(t, c)
}

// Several seeds give a median between the least and the greatest.
func TestSeeds(t *testing.T) {
	c := config(t, "workload.in.bytes=10KB,100KB", "workload.in.jitter=50us")
	c.Seeds = 5
	r := sweep(t, c)
	if r.Ran != 10 || len(r.Points) != 2 {
		t.Fatalf("%+v", r)
	}
	mid, low, high := r.Points[0].Cell("flow.in.fct.p99")
	if low.V > mid.V || mid.V > high.V || low.V == high.V {
		t.Errorf("%v %v %v", low, mid, high)
	}
	if r.Points[0].Runs[0].Seed != 1 || r.Points[0].Runs[4].Seed != 5 {
		t.Errorf("%+v", r.Points[0].Runs[4])
	}
	var b bytes.Buffer
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 || len(rows[0]) != 1+1+3*len(r.Metrics)+2 {
		t.Errorf("%v %q", err, rows)
	}
}

// The table marks the knee; CSV and JSON say the same; a chart has the curve.
func TestOutputs(t *testing.T) {
	// FCT = T + 4·delay. On a logarithmic axis of four decades the line through
	// the ends is above the curve by 25 − 0.1, 50 − 1 and 75 − 10 % of its height
	// at the points between: the fourth, 10 us, is farthest.
	r := sweep(t, config(t, "topology.delay=10ns,100ns,1us,10us,100us"))
	var b bytes.Buffer
	if err := r.Tell(&b); err != nil || !strings.Contains(b.String(), "◀ knee of flow.in.fct.p50") || !strings.Contains(b.String(), "Knee of flow.in.fct.p50 over topology.delay: 10us.") {
		t.Errorf("%v\n%s", err, &b)
	}
	b.Reset()
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Axes   []string
		Points []struct {
			Set    map[string]string
			Median map[string]*float64
			KneeOf []string `json:"knee_of"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Points) != 5 || doc.Points[3].Set["topology.delay"] != "10us" || len(doc.Points[3].KneeOf) == 0 {
		t.Errorf("%v %+v", err, doc)
	}
	// Nothing is faster than four link delays, there and back.
	for i, d := range []sim.Time{10 * sim.Nanosecond, 100 * sim.Nanosecond, sim.Microsecond, 10 * sim.Microsecond, 100 * sim.Microsecond} {
		if v := doc.Points[i].Median["flow.in.fct.p50"]; v == nil || *v < float64(4*d) {
			t.Errorf("delay %v: %v", d, v)
		}
	}
	charts := r.Charts()
	if len(charts) == 0 || charts[0].Name != "sweep-flow.in.fct.p50" {
		t.Fatalf("%+v", charts)
	}
	b.Reset()
	if err := charts[0].Drawing.WriteSVG(&b); err != nil || !strings.Contains(b.String(), "topology.delay") {
		t.Error(err)
	}
	// Words on an axis: a table, no knee, no chart.
	r = sweep(t, config(t, "switch.ecmp.seed=per-switch,same"))
	if len(r.Charts()) != 0 {
		t.Error("a chart over words")
	}
	b.Reset()
	if err := r.Tell(&b); err != nil || strings.Contains(b.String(), "knee") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// The file cannot be written: one error, and no goroutine is left.
func TestUnwritable(t *testing.T) {
	c := config(t, "seed=1,2,3")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Dir = file
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("written into a file as a directory")
	}
}
