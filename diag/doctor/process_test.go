package doctor_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// ranks gives the program of a world n processes, 42 and on, that are like its first.
func (w *world) ranks(n int) {
	for _, h := range []*snapshot.Snapshot{w.before, w.after} {
		first := *h.App
		first.Log, first.Events = nil, nil
		for i := 1; i < n; i++ {
			other := first
			other.PID = snapshot.Known(42 + i)
			h.App.Others = append(h.App.Others, other)
		}
		h.App.Matching = n
	}
}

// Each process of a job is judged: the one that is not like the others is named.
func TestProcesses(t *testing.T) {
	low := snapshot.Known(int64(65536))
	for _, c := range []struct {
		name   string
		set    func(*world)
		rule   string
		want   []int // processes that the finding names; nil for no finding
		where  string
		others []int // that pass
	}{
		{"all are well", func(*world) {}, "A01", nil, "", []int{42, 43, 44, 45}},
		{"one rank has a low limit", func(w *world) { w.app().Others[1].Memlock = low }, "A01", []int{44}, "host, process 44", []int{42, 43, 45}},
		{"the first has it", func(w *world) { w.app().Memlock = low }, "A01", []int{42}, "host, process 42", []int{43, 44, 45}},
		{"two have it", func(w *world) { w.app().Others[0].Memlock, w.app().Others[2].Memlock = low, low }, "A01", []int{43, 45}, "host, processes 43, 45", []int{42, 44}},
		{"all have it", func(w *world) {
			w.app().Memlock = low
			for i := range w.app().Others {
				w.app().Others[i].Memlock = low
			}
		}, "A01", []int{42, 43, 44, 45}, "host", nil},
		{"a rank may lock all", func(w *world) {
			w.app().Others[1].Memlock, w.app().Others[1].CapEff = low, snapshot.Known(uint64(1<<14))
		}, "A01", nil, "", []int{42, 43, 44, 45}},
		{"one rank runs on far CPUs", func(w *world) {
			w.app().Device = snapshot.Known("mlx5_0")
			w.app().Others[2].CPUs = snapshot.Known("16-31")
		}, "P10", []int{45}, "mlx5_0, process 45", []int{42, 43, 44}},
		{"one rank has another traffic class", func(w *world) {
			w.app().TrafficClass = snapshot.Value[int]{}
			for i := range w.app().Others {
				w.app().Others[i].Env = map[string]string{"NCCL_IB_TC": "106"}
			}
			w.app().Env = map[string]string{"NCCL_IB_TC": "0"}
		}, "L05", []int{42}, "process 42", []int{43, 44, 45}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.ranks(4)
			c.set(w)
			r := doctor.Examine(w.input(), builtin(t))
			found := findingsOf(r, c.rule)
			if len(c.want) == 0 && len(found) > 0 || len(c.want) > 0 && len(found) != 1 {
				t.Fatalf("%d findings of %s: %+v", len(found), c.rule, found)
			}
			if len(found) > 0 && (!slices.Equal(found[0].Processes, c.want) || !strings.HasSuffix(found[0].Where, c.where)) {
				t.Errorf("%s names %v, where %q; want %v, %q", c.rule, found[0].Processes, found[0].Where, c.want, c.where)
			}
			for _, pid := range c.others {
				if !slices.ContainsFunc(r.Passed, func(f doctor.Finding) bool { return f.Rule == c.rule && slices.Contains(f.Processes, pid) }) {
					t.Errorf("%s does not pass for %d", c.rule, pid)
				}
			}
		})
	}
}

// The report says which processes were looked at, and how many of the name were not.
func TestProgramInReport(t *testing.T) {
	for _, c := range []struct {
		ranks, matching int
		want            string
	}{
		{1, 0, "program: job, process 42\n"},
		{3, 3, "program: job, processes 42, 43, 44\n"},
		{64, 200, "and 48 more; 136 more of this name were not looked at"},
		{100, 100, "and 48 more; 36 more of this name were not looked at"},
	} {
		w := newWorld()
		w.ranks(c.ranks)
		w.app().Matching = c.matching
		r := doctor.Examine(w.input(), builtin(t))
		var b bytes.Buffer
		if err := r.Text(&b, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) || len(r.Program.Processes) != min(c.ranks, 64) || r.Program.Matching != max(c.matching, 1) {
			t.Errorf("%d ranks: %+v, %.200q", c.ranks, r.Program, b.String())
		}
	}
	w := newWorld()
	w.after.App = nil
	if r := doctor.Examine(w.input(), builtin(t)); r.Program != nil {
		t.Errorf("%+v", r.Program)
	}
}

// Sixty-four ranks, each different, cost a bounded number of words.
func TestManyKindsOfProcesses(t *testing.T) {
	w := newWorld()
	w.ranks(64)
	w.app().Memlock = snapshot.Known(int64(1))
	for i := range w.app().Others {
		w.app().Others[i].Memlock, w.app().Others[i].Comm = snapshot.Known(int64(1024*i)), snapshot.Known(fmt.Sprint("rank", i))
	}
	r := doctor.Examine(w.input(), builtin(t))
	found := findingsOf(r, "A01")
	if len(found) != 1 || len(found[0].Processes) != 64 || len(found[0].Where) > 1000 {
		t.Errorf("%d findings: %+v", len(found), found)
	}
}
