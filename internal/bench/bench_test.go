package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The tests' own binary is the child.
func TestMain(m *testing.M) {
	if IsChild() {
		if err := Child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, 3, 3}},
		{[]float64{5, 1, 3, 2, 4}, Spread{3, 2, 4, 1, 5}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1.75, 3.25, 1, 4}},
	} {
		if got := spreadOf(c.in); got != c.want {
			t.Errorf("spread of %v: %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	more := Row{Metric: Gbps, Goal: 2, Floor: 1.5}
	less := Row{Metric: P50, Goal: 1.35, Floor: 1.8}
	for _, c := range []struct {
		row    Row
		ratio  float64
		want   Verdict
		passes bool
	}{
		{more, 2, OK, true},
		{more, 1.99, BelowGoal, true},
		{more, 1.5, BelowGoal, true},
		{more, 1.49, BelowFloor, true},
		{more, 1.19, BelowFloor, false},
		{more, math.NaN(), NoGoal, false},
		{less, 1.35, OK, true},
		{less, 1.8, BelowGoal, true},
		{less, 1.81, BelowFloor, true},
		{less, 2.3, BelowFloor, false},
		{Row{Metric: Gbps}, 0.1, NoGoal, true},
	} {
		v, passes := c.row.Judge(c.ratio)
		if v != c.want || passes != c.passes {
			t.Errorf("%v %v: %q %v, want %q %v", c.row.Metric, c.ratio, v, passes, c.want, c.passes)
		}
	}
}

// Every row has a name of its own and subjects that its group has; a floor is
// never beyond its goal.
func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range Plan() {
		for _, r := range g.Rows {
			if seen[r.Name] {
				t.Errorf("two rows %q", r.Name)
			}
			seen[r.Name] = true
			for _, s := range []string{r.A, r.B} {
				if _, ok := g.Subjects[s]; !ok && s != "" {
					t.Errorf("%q: no subject %q", r.Name, s)
				}
			}
			if (r.Goal == 0) != (r.Floor == 0) || r.Metric.LessIsBetter() && r.Goal > r.Floor || !r.Metric.LessIsBetter() && r.Goal < r.Floor {
				t.Errorf("%q: goal %v, floor %v", r.Name, r.Goal, r.Floor)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d rows", len(seen))
	}
}

func TestSelect(t *testing.T) {
	got := Select(Plan(), regexp.MustCompile(`^lo mtu4096 qp1 64K read ÷ write$`))
	if len(got) != 1 || len(got[0].Rows) != 1 || len(got[0].Subjects) != 2 {
		t.Errorf("%+v", got)
	}
}

// Every kind of subject runs, for a moment, on loopback.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	only := regexp.MustCompile(`^lo (mtu1024 qp2 64K (write|read|send) ÷ (TCP|GSO)|spin|block|rate|rcvbuf)|^copy|^adapters`)
	rep, err := Run(Config{Rounds: 1, Slot: 10 * time.Millisecond, Only: only, Seed: 1 + uint64(os.Getpid()), Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) < 15 {
		t.Errorf("%d rows", len(rep.Rows))
	}
	for _, r := range rep.Rows {
		if r.Skipped != "" || strings.Contains(r.Failed, errLinux.Error()) {
			continue
		}
		if r.Failed != "" || r.Ours.Median <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if _, err := json.Marshal(rep); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
