package doctor_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// large is a host of some devices with many queue pairs and regions each, and a peer of
// the same size. With distinct, no two queue pairs are alike.
func large(devices, qps int, distinct bool) *world {
	w := newWorld()
	q := make([]snapshot.QP, qps)
	m := make([]snapshot.MR, qps)
	for j := range q {
		q[j] = snapshot.QP{Port: 1, LQPN: uint32(j + 16), Type: "RC", State: "INIT", PathMTU: snapshot.Known(4096), GIDIndex: snapshot.Known(3)}
		m[j] = snapshot.MR{MRN: uint32(j), Length: 4096}
		if distinct {
			q[j].Comm = fmt.Sprint("p", j)
		}
	}
	for _, h := range []*snapshot.Snapshot{w.before, w.after, w.peerBefore, w.peerAfter} {
		h.Devices, h.Netdevs = h.Devices[:1], h.Netdevs[:1]
		for i := range devices {
			if i > 0 {
				h.Devices = append(h.Devices, goodDevice(i, 1))
				h.Netdevs = append(h.Netdevs, goodNetdev(i, 1))
			}
			h.Devices[i].QPs, h.Devices[i].MRs = snapshot.Known(q), snapshot.Known(m)
		}
	}
	return w
}

// Queue pairs that are alike are judged once, and said to be many.
func TestManyQueuePairs(t *testing.T) {
	r := doctor.Examine(large(16, 10_000, false).input(), builtin(t))
	n := 0
	for _, f := range r.Passed {
		for _, place := range f.Places {
			if f.Rule == "L13" && strings.HasSuffix(place, " QP 16 and 9999 more like it") {
				n++
			}
		}
	}
	if n != 16 {
		t.Errorf("%d groups of queue pairs judged, want 16", n)
	}
}

// The work grows with the queue pairs and not with their square, also where no two are
// alike: ten times as many cost about ten times as much. Memory stands for time here.
func TestWorkIsLinear(t *testing.T) {
	rules := builtin(t)
	cost := func(n int) float64 {
		in := large(4, n, true).input()
		return testing.AllocsPerRun(1, func() { doctor.Examine(in, rules) })
	}
	few, many := cost(200), cost(2000)
	if many > 12*few {
		t.Errorf("%v allocations for 200 queue pairs a device, %v for 2,000", few, many)
	}
}

// Files of rules that are made to cost time or memory are refused, in one line.
func TestHostileRules(t *testing.T) {
	deep := func(s string) string { return strings.Repeat(s, doctor.MaxRuleFile/len(s)) }
	for _, text := range []string{
		deep("["), deep("{"), deep("- "), deep("{a: "), deep("? "), deep("[a,"), deep("&a [*a,"), deep("!!x "), deep("'${"), deep(`"`), deep("- id: U01\n"), deep("\x00"),
		deep("[ 'it' # ["), strings.Repeat("- ", 19) + "x",
		strings.Replace(goodRule, "port.state != 4", strings.Repeat("(", 1000)+"true"+strings.Repeat(")", 1000)+" && "+deep("!")[:100_000]+"true", 1),
		strings.Replace(goodRule, "port.state != 4", "all(1..1000000, all(1..1000000, true))", 1),
		strings.Replace(goodRule, "port.state != 4", strings.Repeat("true || ", 600)+"true", 1),
		strings.Replace(goodRule, "  warn:", "  let:\n"+strings.Repeat("    - {name: x, expr: '1'}\n", 51)+"  warn:", 1),
	} {
		_, err := doctor.Parse("f.yaml", []byte(text))
		if err == nil {
			t.Errorf("%.60q… is taken", text)
		} else if s := err.Error(); strings.Contains(s, "\n") || len(s) > 500 {
			t.Errorf("%.60q…: not one short line: %.600q", text, s)
		}
	}
	// Quoted brackets are no nesting.
	if _, err := doctor.Parse("f.yaml", []byte(strings.Replace(goodRule, "cause: c", "cause: \"don't [[[[[[[[[[[[[[[[[[[[[[[ \\\" [\" # it's [[[[[[[[[[[[[[[[[[[[[[[[[", 1))); err != nil {
		t.Error(err)
	}
}

// Names that use each other are evaluated once each, and texts made so are bounded.
func TestHostileNames(t *testing.T) {
	for _, c := range []struct {
		seed, join string
		want       doctor.Status
	}{{"1", "x%d + x%d > 0 ? 1 : 1", doctor.Warn}, {"\"0123456789\"", "x%d + x%d", doctor.Skip}} {
		lets := "    - {name: x0, expr: '" + c.seed + "'}\n"
		for i := range 45 {
			lets += fmt.Sprintf("    - {name: x%d, expr: '"+c.join+"'}\n", i+1, i, i)
		}
		rules, err := doctor.Parse("f.yaml", []byte(strings.Replace(goodRule, "  warn: 'port.state != 4'", "  let:\n"+lets+"  warn: 'x45 != \"\"'", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if f := judge(newWorld(), rules[0]); f.Status != c.want {
			t.Errorf("%s: %s %s, want %s", c.seed, f.Status, f.Missing, c.want)
		}
	}
}

// FuzzExamine: whatever a snapshot holds, the rules judge it and the report is printed.
func FuzzExamine(f *testing.F) {
	rules, err := doctor.Builtin()
	if err != nil {
		f.Fatal(err)
	}
	for _, h := range []*snapshot.Snapshot{newWorld().after, {}} {
		b, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, -1)
		f.Add([]byte(strings.NewReplacer(`"priority":3`, `"priority":-77`, `"prio_tc":[0,1,2,3`, `"prio_tc":[0,1,2,99`, `"prio_buffer":[0,0,0,1`, `"prio_buffer":[0,0,0,-1`).Replace(string(b))), 3)
		f.Add([]byte(strings.ReplaceAll(string(b), `:`, `: `)), 99)
	}
	f.Fuzz(func(t *testing.T, text []byte, prio int) {
		h := &snapshot.Snapshot{}
		if len(text) > 1<<18 || json.Unmarshal(text, h) != nil {
			return
		}
		before := *h
		before.Taken = h.Taken.Add(-10 * time.Second)
		w := snapshot.Window{Before: &before, After: h}
		for _, in := range []doctor.Input{{Host: w, Peer: &w, Prio: prio}, {Host: snapshot.Window{After: h}, Prio: prio}} {
			r := doctor.Examine(in, rules)
			if err := r.Text(io.Discard, true); err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkExamine(b *testing.B) {
	rules, err := doctor.Builtin()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("16x%d", n), func(b *testing.B) {
			in := large(16, n, false).input()
			for b.Loop() {
				doctor.Examine(in, rules)
			}
		})
	}
}
