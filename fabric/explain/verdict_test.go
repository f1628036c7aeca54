package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// A run in which all is well says so, and proposes nothing.
func TestAllWell(t *testing.T) {
	f := star(4)
	f.flow("", 1, 0, 0, mb, 0, f.flow("", 2, 3, 0, mb, 0, 0).Base)
	f.r.Flows[0].Finish = f.r.Flows[0].Base
	f.r.Lossless = []result.Lossless{{Node: f.leaf[0], Port: 1, Prio: 3, Need: 30000, Have: 30000}}
	s := Explain(&f.r)
	if s.Verdict.Main != AllWell || len(s.Advice) != 0 || s.Spreading.Count != 0 || len(s.Readings) != 0 {
		t.Errorf("%+v", s)
	}
	golden(t, "allwell", text(t, s))
}

// Flows that share a link, as they must, are no fault; nothing is proposed.
func TestContention(t *testing.T) {
	f := star(4)
	u := (100 * g).For(int(wire(mb)))
	f.flow("", 1, 0, 0, mb, 0, 3*u)
	f.flow("", 2, 0, 0, mb, 0, 3*u)
	f.flow("", 3, 0, 0, mb, 0, 3*u)
	s := Explain(&f.r)
	if s.Verdict.Main != MainContention || s.Verdict.At.Name != "leaf0:Ethernet0" || len(s.Advice) != 0 {
		t.Errorf("main %v at %s, advice %v", s.Verdict.Main, s.Verdict.At, s.Advice)
	}
}

// Unfinished flows that have their fair share of too little are slow all the same.
func TestUnfinishedContention(t *testing.T) {
	f := star(4)
	f.r.End = ms
	for i := range 3 {
		fl := f.flow("", 1+i, 0, 0, 100*mb, 0, 0)
		fl.State, fl.Finish, fl.Delivered = result.Running, sim.Never, 12500*kb/3*1000/1048
	}
	if s := Explain(&f.r); s.Verdict.Main != MainContention {
		t.Errorf("main %v", s.Verdict.Main)
	}
	for i := range f.r.Flows {
		f.r.Flows[i].RateLimit = 34 * g
	}
	if s := Explain(&f.r); s.Verdict.Main != AllWell {
		t.Errorf("as fast as they want: main %v", s.Verdict.Main)
	}
}

// What comes first hides what comes later.
func TestPrecedence(t *testing.T) {
	f := spread()
	s := Explain(f.sorted())
	if s.Verdict.Main != MainSpread {
		t.Fatalf("main %v", s.Verdict.Main)
	}
	f.r.Drops = []result.Drop{{At: us, Node: f.leaf[0], Port: 8, Flow: 0, Prio: 3, Reason: result.DropHeadroom, Bytes: 1048}}
	f.r.Flows[0].Retransmitted = 5
	if s = Explain(&f.r); s.Verdict.Main != MainOverflow {
		t.Errorf("main %v, want headroom", s.Verdict.Main)
	}
	f.r.Storms = []result.Storm{{From: 0, To: sim.Never, Node: f.leaf[0], Port: 0, Prio: 3}}
	if s = Explain(&f.r); s.Verdict.Main != MainStorm {
		t.Errorf("main %v, want storm", s.Verdict.Main)
	}
	f.r.Breaches = []result.Breach{{At: us, Rule: "no drop in a lossless class", Node: 0, Detail: "leaf0 dropped"}}
	if s = Explain(&f.r); s.Verdict.Main != MainStorm || len(s.Breaches) != 0 {
		t.Errorf("main %v, want storm: the drop is the network's fault", s.Verdict.Main)
	}
	f.r.Breaches = []result.Breach{{At: us, Rule: "bytes conserved", Node: -1, Detail: "1 B too many"}}
	if s = Explain(&f.r); s.Verdict.Main != BrokenRule || !strings.Contains(text(t, s), "bytes conserved: 1 B too many") {
		t.Errorf("main %v, want a broken rule", s.Verdict.Main)
	}
}

// Unfinished runs say what flows were silent for.
func TestInterrupted(t *testing.T) {
	f := star(4)
	f.r.Interrupted, f.r.Why, f.r.End = true, "interrupted", 100*us
	for i := range 3 {
		fl := f.flow("", 1+i, 0, 0, mb, 0, 0)
		fl.State, fl.Finish, fl.Delivered, fl.Silent = result.Running, sim.Never, 300*kb, fmt.Sprintf("paced until %d ns", 1000+i)
	}
	f.r.Flows[2].State = result.Waiting
	out := text(t, Explain(&f.r))
	for _, want := range []string{"0 of 3 flows finished by 100 us (interrupted)", "2 flows still running: paced (2); 1 flow not started", "The run ended: interrupted."} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestEmpty(t *testing.T) {
	for _, r := range []*result.Run{nil, {}} {
		if s := Explain(r); s.Line() != "no flows; nothing to explain" {
			t.Error(s.Line())
		}
	}
}

func TestFormat(t *testing.T) {
	tests := []struct{ got, want string }{
		{size(0), "0 B"},
		{size(999), "999 B"},
		{size(8000), "8 KB"},
		{size(8192), "8 KiB"},
		{size(18200), "18.2 KB"},
		{size(128000), "128 KB"},
		{size(131072), "128 KiB"},
		{size(1 << 20), "1 MiB"},
		{size(1200000), "1.2 MB"},
		{size(3e9), "3 GB"},
		{size(-5), "-5 B"},
		{speed(9800 * sim.Mbps), "9.8 Gb/s"},
		{speed(100 * g), "100 Gb/s"},
		{speed(5 * sim.Mbps), "5 Mb/s"},
		{speed(1500), "1.5 Kb/s"},
		{when(sim.Never), "never"},
		{when(0), "0 us"},
		{when(1280), "1.28 ns"},
		{when(5400 * ms), "5.4 s"},
		{when(ms), "1 ms"},
		{when(7), "7 ps"},
		{percent(0), "0 %"},
		{percent(0.00001), "< 0.01 %"},
		{percent(0.026), "2.6 %"},
		{percent(0.95), "95 %"},
		{percent(1), "100 %"},
		{digits(1234.5), "1234"},
		{digits(999.96), "1000"},
		{digits(0.004), "0.004"},
		{digits(100), "100"},
		{digits(0), "0"},
		{count(1234567), "1,234,567"},
		{count(12), "12"},
		{plural(1, "egress"), "1 egress"},
		{plural(2, "egress"), "2 egresses"},
		{plural(3, "flow"), "3 flows"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	p := para{indent: 2, mark: "- ", text: strings.Repeat("word ", 20) + strings.Repeat("x", 60)}
	for i, line := range p.lines(50) {
		want := "    "
		if i == 0 {
			want = "  - "
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("line %d: %q", i, line)
		}
		if len(line) > 50 && !strings.Contains(line, "xxx") {
			t.Errorf("line %d has %d columns", i, len(line))
		}
	}
}

// Names from files cannot move the cursor.
func TestHostileNames(t *testing.T) {
	f := spread()
	f.r.Name = "a\x1b[2Jb\n"
	f.r.Flows[16].Group = "victim\r\x9b31m"
	f.r.Nodes[0].Name = "leaf\x070"
	if out := text(t, Explain(f.sorted())); strings.ContainsAny(out, "\x1b\r\x07\u009b") {
		t.Errorf("%q", out)
	}
}
