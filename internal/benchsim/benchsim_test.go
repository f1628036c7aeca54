package benchsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/internal/need"
)

// The tests' own binary is the child.
func TestMain(m *testing.M) {
	if IsChild() {
		if err := Child(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// small makes any case quick.
var small = []string{"topology.kind=spine-leaf", "topology.hosts_per_leaf=2", "workload.0.bytes=100KB"}

// Every case, made small, finishes, keeps the rules, and counts hops as they
// must be: a flow across leaves has four a packet, one within a leaf two.
func TestCasesRunSmall(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			f, err := Measure(c.Name, small...)
			if err != nil {
				t.Fatal(err)
			}
			const packets = 100_000 / 1000
			if f.Hosts != 8 || f.Flows%8 != 0 || f.Flows == 0 {
				t.Errorf("%d hosts, %d flows", f.Hosts, f.Flows)
			}
			// Nothing is lost, so nothing is sent twice.
			if least, most := uint64(2*packets*f.Flows), uint64(4*packets*f.Flows); f.DataHops < least || f.DataHops > most {
				t.Errorf("%d data hops, want %d to %d", f.DataHops, least, most)
			}
			if f.AckEvery != 16 {
				t.Errorf("an ACK every %d packets", f.AckEvery)
			}
			if f.Drops != 0 {
				t.Errorf("%d drops", f.Drops)
			}
		})
	}
}

// The cases are what they say: everything on that the figures claim.
func TestCasesAreWhatTheyClaim(t *testing.T) {
	hosts := map[string]int{"perm64": 32, "perm1024": 1024, "perm11664": 11664}
	for _, c := range Cases() {
		sc, err := load(c.Name)
		if err != nil {
			t.Fatal(err)
		}
		g, err := sc.Graph(nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(g.Endpoints); n != hosts[strings.SplitN(c.Name, "_", 2)[0]] {
			t.Errorf("%s: %d hosts", c.Name, n)
		}
		for i := range g.Links {
			if g.Links[i].Rate != 100*sim.Gbps {
				t.Fatalf("%s: link of %v", c.Name, g.Links[i].Rate)
			}
		}
		if sc.Switch.Buffer.Total != 32e6 || !sc.Switch.PFC.Priorities.Has(3) || sc.Host.DCQCN.Off() || sc.Name != c.Name {
			t.Errorf("%s: buffer %d, PFC %v, DCQCN %q, name %s", c.Name, sc.Switch.Buffer.Total, sc.Switch.PFC.Priorities, sc.Host.DCQCN.Preset, sc.Name)
		}
	}
	for _, r := range Rows() {
		if _, err := files.Open(path.Join("cases", r.Case+".yaml")); err != nil {
			t.Error(err)
		}
	}
}

func TestFlowsThatDoNotFinishAreAnError(t *testing.T) {
	_, err := Measure("perm64_10m", append(small, "duration=3us")...)
	if err == nil || !strings.Contains(err.Error(), "perm64_10m: flow 0 is ") {
		t.Error(err)
	}
}

func TestJudge(t *testing.T) {
	more, less, aim := Row{Metric: HopRate, Goal: 2, Floor: 1}, Row{Metric: PeakRSS, Goal: 100, Floor: 200}, Row{Metric: Processor, Goal: 300}
	for _, c := range []struct {
		row    Row
		v      float64
		want   Verdict
		passes bool
	}{
		{more, 2, OK, true},
		{more, 1.99, BelowGoal, true},
		{more, 1, BelowGoal, true},
		{more, 0.99, BelowFloor, true},
		{more, 0.79, BelowFloor, false},
		{less, 100, OK, true},
		{less, 101, BelowGoal, true},
		{less, 201, BelowFloor, true},
		{less, 251, BelowFloor, false},
		{aim, 299, OK, true},
		{aim, 3000, BelowGoal, true},
		{more, 0, NotKnown, true},
		{more, math.NaN(), NotKnown, true},
	} {
		if v, ok := c.row.Judge(c.v); v != c.want || ok != c.passes {
			t.Errorf("%s of %v: %q, %t; want %q, %t", c.row.Metric, c.v, v, ok, c.want, c.passes)
		}
	}
}

// Two runs that differ are a fault of the simulator, not a figure.
func TestRunsThatDiffer(t *testing.T) {
	var r Result
	a := Figures{Case: "x", Digest: "1", Events: 5, CPUSeconds: 2, PeakBytes: 10}
	b := a
	b.CPUSeconds, b.PeakBytes = 1, 20
	r.add(&a)
	r.add(&b)
	if r.Failed != "" || r.Best.CPUSeconds != 1 || r.Best.PeakBytes != 20 || median(r.All) != 1.5 {
		t.Errorf("%+v", r)
	}
	b.Digest = "2"
	r.add(&b)
	if r.Failed != "x: two runs differ: digests 1 and 2" || (&Report{Cases: []Result{r}}).Passes() {
		t.Errorf("%+v", r)
	}
}

func TestReport(t *testing.T) {
	rep := &Report{Rivals: Rivals(), Cases: []Result{
		{Best: Figures{Case: "perm64_10m", DataHops: 2_560_000, Events: 5_000_000, CPUSeconds: 1.6, PeakBytes: 21e6, Digest: "x"}, All: []float64{1.6, 2}},
		{Best: Figures{Case: "perm64_10m_series", DataHops: 2_560_000, CPUSeconds: 2.4}, All: []float64{2.4}},
		{Best: Figures{Case: "perm1024_1m"}, Failed: "perm1024_1m: flow 7 is failed"},
	}}
	rep.judge()
	var out bytes.Buffer
	write(&out, rep)
	for _, want := range []string{
		`1\.60 \(1\.80\) +0\.00 +1\.60 +3\.1[23] +21 `,
		`perm64_10m, M hops/s +1\.60 +≥ 2 +≥ 1 +0\.80 +below goal`,
		`perm64_10m_series, × CPU of perm64_10m +1\.50 +≤ 1\.1 +≤ 1\.25 +1\.36 +BELOW FLOOR`,
		`FAILED perm1024_1m: flow 7 is failed`,
		`csg-htsim, RoCE +0\.830 +1\.9 `,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "perm1024_1m: csg") || rep.Passes() {
		t.Errorf("a failed case has figures\n%s", &out)
	}
	b, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(b, &again); err != nil || again.Cases[0].Best != rep.Cases[0].Best {
		t.Errorf("%v\n%s", err, b)
	}
}

// A child runs the case that it is told, and a parent tells one that cannot.
func TestChild(t *testing.T) {
	if _, err := spawn(t.Context(), "nothing"); err == nil || !strings.Contains(err.Error(), "nothing.yaml") {
		t.Error(err)
	}
}

// Peak memory is known where there is a /proc.
func TestPeakRSS(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		need.Missing(t, "no /proc here: %v", err)
	}
	if n := peakRSS(); n < 1<<20 || n > 1<<40 {
		t.Errorf("%d bytes", n)
	}
}
