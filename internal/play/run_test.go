package play

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func read(t *testing.T, s string, sets ...string) *Reading {
	t.Helper()
	r, err := text("small.yaml", s).Scenario(Change{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, s string, sets ...string) *Outcome {
	t.Helper()
	o, err := read(t, s, sets...).Run(t.Context(), &Files{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRunToTheEnd(t *testing.T) {
	o := run(t, small)
	if o.Stopped || o.Result.Interrupted || len(o.Checks) != 1 || o.Failed() != 0 || o.Result.Name != "small" {
		t.Errorf("%+v", o)
	}
	// Its text reads back as what was run.
	if again := run(t, o.Result.Source); again.Result.Digest != o.Result.Digest {
		t.Errorf("digest %x, again %x", o.Result.Digest, again.Result.Digest)
	}
	if o = run(t, small, "expect[0].min=4"); o.Failed() != 1 {
		t.Errorf("%+v", o.Checks)
	}
}

// A run that is stopped is told as far as it has come, judged by nothing, and
// was the beginning of the whole one.
func TestRunThatIsStopped(t *testing.T) {
	long := strings.Replace(small, "50KB", "20MB", 1)
	o, err := read(t, long).Run(&countdown{t.Context(), 2}, &Files{}, Options{})
	if err != nil || !o.Stopped || !o.Result.Interrupted || o.Result.Why != "interrupted" || len(o.Checks) != 0 {
		t.Fatalf("%v %+v", err, o)
	}
	if n := o.Result.Events; n < chunk || n > 3*chunk {
		t.Errorf("%d events", n)
	}
	var b bytes.Buffer
	if err := o.Tell(&b, Short); err != nil || !strings.Contains(b.String(), "INTERRUPTED at ") {
		t.Errorf("%v\n%s", err, &b)
	}
	for _, n := range o.Result.Breaches {
		t.Errorf("%+v", n)
	}
	// Before anything has happened.
	if o, err = read(t, long).Run(&countdown{t.Context(), 0}, &Files{}, Options{}); err != nil || !o.Stopped || o.Result.Events != 0 {
		t.Errorf("%v %+v", err, o)
	}
	if err := o.Tell(&b, Long); err != nil {
		t.Error(err)
	}
}

func TestShareNeverGoesBackAndComesToItsEnd(t *testing.T) {
	for name, s := range map[string]string{
		"flows":    strings.Replace(small, "50KB", "20MB", 1),
		"duration": "until: duration\nduration: 200us\n" + strings.Replace(small, "50KB", "20MB", 1),
		"arrivals": strings.Replace(small, "incast, src: host1..host3", "bursts, every: 20us, count: 50, src: host1", 1),
	} {
		r := read(t, s)
		sim, _, err := r.Load(&Files{})
		if err != nil {
			t.Fatal(err)
		}
		var f fraction
		last, looks := 0.0, 0
		for over := false; !over; looks++ {
			if over, err = sim.Advance(500); err != nil {
				t.Fatal(err)
			}
			now := f.of(sim)
			if now < last || now > 1 {
				t.Fatalf("%s: %v after %v", name, now, last)
			}
			last = now
		}
		if last < 0.98 || looks < 5 {
			t.Errorf("%s: ends at %v after %d looks", name, last, looks)
		}
	}
}

func TestBarSaysHowFast(t *testing.T) {
	first := time.Unix(100, 0)
	b := &Bar{what: "incast", first: first, at: first}
	// In half a second 2 ms happened, and 600,000 hops: a quarter of it all.
	got := b.text(first.Add(500*time.Millisecond), 2e9, 600_000, 0.25)
	if want := "incast 2000 us, 4,000 us/s, 1,200,000 hops/s, 2 s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "2 min", 90 * time.Minute: "1.5 h",
	} {
		if got := LeftText(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// Without a terminal nothing is drawn; what is no terminal is none.
func TestNoBarWithoutATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if NewBar(&bytes.Buffer{}) != nil || NewBar(f) != nil || NewBar(null) != nil {
		t.Error("a bar where nobody looks")
	}
}

// What goes out can be read again: the result as JSON, topology and flows as
// HPCC's files.
func TestFilesReadBack(t *testing.T) {
	o := run(t, small)
	dir := filepath.Join(t.TempDir(), "new", "dir")
	names, err := o.WriteDir(dir, o.Page(nil, "again", "v1"))
	if err != nil || len(names) < 12 {
		t.Fatalf("%v %q", err, names)
	}
	saved, err := Find(filepath.Join(dir, "run.json"))
	if err != nil || saved.Kind != Saved {
		t.Fatalf("%v %+v", err, saved)
	}
	if d := cmp.Diff(o.Result.Flows, saved.Run.Flows); d != "" {
		t.Error(d)
	}
	src, err := Find(filepath.Join(dir, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.Scenario(Change{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Run(t.Context(), src.Files(), Options{}); err != nil || again.Result.Digest != o.Result.Digest {
		t.Errorf("%v: not the same run", err)
	}

	if names, err = o.WriteHPCC(dir); err != nil || len(names) != 6 {
		t.Fatalf("%v %q", err, names)
	}
	f, err := os.Open(filepath.Join(dir, "topology.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := topo.ReadHPCC(f, "topology.txt")
	if err != nil || len(g.Nodes) != 5 || len(g.Links) != 4 {
		t.Fatalf("%v %+v", err, g)
	}
	routes, err := g.Routes()
	if err != nil {
		t.Fatal(err)
	}
	h, err := os.Open(filepath.Join(dir, "flow.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	flows, err := work.Collect(work.Reader{Find: topo.NewResolver(routes).ByNode}.HPCC(h, "flow.txt"), 10)
	if err != nil || len(flows) != 3 {
		t.Fatalf("%v %+v", err, flows)
	}
	for i := range flows {
		if w := &o.Result.Flows[i]; flows[i].Src != w.Src || flows[i].Dst != w.Dst || flows[i].Bytes != w.Bytes || flows[i].Start != w.Start {
			t.Errorf("flow %d: %+v, was %+v", i, flows[i], w)
		}
	}
}

func TestCanWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	fresh, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fresh, old, os.DevNull} {
		if err := CanWrite(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "kept" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file is left behind")
	}
	for _, name := range []string{dir, filepath.Join(dir, "no", "file"), filepath.Join(old, "file")} {
		if err := CanWrite(name); err == nil {
			t.Errorf("%s: can be written", name)
		}
	}
	full := "/dev/full"
	if _, err := os.Stat(full); err == nil {
		err := WriteFile(full, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err })
		if err == nil || strings.Count(err.Error(), full) != 1 {
			t.Errorf("%v", err)
		}
	}
}

// The short form of a bad case is two screens.
func TestTwoScreens(t *testing.T) {
	for _, name := range []string{"pfc-storm", "rss-off"} {
		if _, _, err := lab.Source(name); err != nil {
			continue
		}
		src, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := src.Scenario(Change{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := r.Run(t.Context(), src.Files(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var short, long bytes.Buffer
		if err := o.Tell(&short, Short); err != nil {
			t.Fatal(err)
		}
		if err := o.Tell(&long, Long); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(short.Bytes(), []byte("\n")); n > 90 {
			t.Errorf("%s: %d lines:\n%s", name, n, &short)
		}
		for l := range strings.Lines(short.String()) {
			if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > width+8 {
				t.Errorf("%s: a line of %d: %q", name, n, l)
			}
		}
		if long.Len() < short.Len() {
			t.Errorf("%s: the long form is shorter", name)
		}
	}
}

// The page has the expectations and the other side as lists, which fit a phone: no text
// that keeps its lines.
func TestPageHasLists(t *testing.T) {
	o := run(t, small, "expect[0].min=4")
	other := run(t, small)
	beside := Beside("THE OTHER SIDE", []string{"b: what differs"}, []Side{{"as it is", o.Result}, {"b", other.Result}})
	var b bytes.Buffer
	if err := report.WriteHTML(&b, o.Result, o.Page([]report.Section{beside}, "again", "v")); err != nil {
		t.Fatal(err)
	}
	told, _, _ := strings.Cut(b.String(), `<section id="tables"`)
	if strings.Contains(told, "<pre") {
		t.Error("a section keeps its lines")
	}
	for _, want := range []string{
		"<h2>EXPECTED</h2>", "<span>FAILED</span><span>" + o.Checks[0].What + ": " + o.Checks[0].text() + "; expected " + o.Checks[0].Bound + "</span>",
		"<h2>THE OTHER SIDE</h2>\n<p>b: what differs</p>", "<span>-</span><span>end of the run: as it is ",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
