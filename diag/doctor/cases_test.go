package doctor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// publicCase is case.yaml of a case, and the hosts.
type publicCase struct {
	Title   string `yaml:"title"`
	Source  string `yaml:"source"`
	Quality string `yaml:"quality"`
	Given   string `yaml:"given"`
	Answer  struct {
		Root       []string `yaml:"root"`
		Acceptable []string `yaml:"acceptable"`
		MustNot    []string `yaml:"must_not"`
	} `yaml:"answer"`

	name string
	in   doctor.Input
}

// Bars of the whole set: the root cause first, and within the first three.
const (
	wantFirst = 0.80
	wantThree = 0.95
)

// Public cases are told apart by the rules as their sources told them.
func TestPublicCases(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	cases := load(t, "testdata/cases")
	if len(cases) < 37 {
		t.Fatalf("%d cases", len(cases))
	}
	first, three := 0, 0
	for i := range cases {
		c := &cases[i]
		r := doctor.Examine(c.in, rules)
		if len(r.Faults) > 0 {
			t.Errorf("%s: %+v", c.name, r.Faults)
		}
		at := position(r.Findings, c.Answer.Root)
		if at == 0 {
			first++
		}
		if at >= 0 && at < 3 {
			three++
		}
		if at != 0 {
			t.Logf("%s: want %v first, have %s", c.name, c.Answer.Root, list(r.Findings))
		}
		for _, f := range r.Findings {
			if f.Status == doctor.Fail && slices.Contains(c.Answer.MustNot, f.Rule) {
				t.Errorf("%s: %s must not fail", c.name, f.Rule)
			}
			allowed := append(slices.Clone(c.Answer.Root), c.Answer.Acceptable...)
			if f.Status == doctor.Fail && !slices.Contains(allowed, f.Rule) {
				t.Errorf("%s: %s fails and is neither the cause nor a symptom: %v", c.name, f.Rule, f.Evidence)
			}
			if len(f.Evidence) == 0 || f.Cause == "" || f.Why == "" || len(f.Fix) == 0 || f.Confidence <= 0 {
				t.Errorf("%s: %s lacks evidence, cause, reason, fix or confidence: %+v", c.name, f.Rule, f)
			}
		}
	}
	figures(t, fmt.Sprintf("It was held against %d hosts", len(cases)), fmt.Sprintf("The root cause comes first in\n%d of %d.", first, len(cases)), fmt.Sprintf("It has %d rules.", len(rules)))
	readme(t, "README.md", fmt.Sprintf("the root cause first on %d of %d hosts", first, len(cases)))
	readme(t, "README.zh-CN.md", fmt.Sprint(len(cases)), fmt.Sprint(first))
	if got := float64(first) / float64(len(cases)); got < wantFirst {
		t.Errorf("the root cause is first in %.0f %% of the cases, want %.0f %%", got*100, wantFirst*100)
	}
	if got := float64(three) / float64(len(cases)); got < wantThree {
		t.Errorf("the root cause is within the first three in %.0f %% of the cases, want %.0f %%", got*100, wantThree*100)
	}
}

// A rule's confidence could have been chosen to suit the cases. Here each case is
// judged with confidences that all the others give: how often a rule that fired was
// the cause, smoothed by one of each.
func TestPublicCasesLeaveOneOut(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	cases := load(t, "testdata/cases")
	type count struct{ cause, fired float64 }
	fired := make([]map[string]bool, len(cases))
	total := map[string]count{}
	for i := range cases {
		fired[i] = map[string]bool{}
		for _, f := range doctor.Examine(cases[i].in, rules).Findings {
			fired[i][f.Rule] = true
		}
		for id := range fired[i] {
			c := total[id]
			c.fired++
			if slices.Contains(cases[i].Answer.Root, id) {
				c.cause++
			}
			total[id] = c
		}
	}
	first, three := 0, 0
	for i := range cases {
		c := &cases[i]
		confidence := map[string]float64{}
		for id, n := range total {
			if fired[i][id] {
				n.fired--
				if slices.Contains(c.Answer.Root, id) {
					n.cause--
				}
			}
			confidence[id] = (n.cause + 1) / (n.fired + 2)
		}
		at := position(doctor.Examine(c.in, doctor.WithConfidence(rules, confidence)).Findings, c.Answer.Root)
		if at == 0 {
			first++
		}
		if at >= 0 && at < 3 {
			three++
		}
	}
	figures(t, fmt.Sprintf("(leave-one-out) it is first in %d of %d and within the first three in %d.", first, len(cases), three))
	if float64(first) < wantFirst*float64(len(cases)) || float64(three) < wantThree*float64(len(cases)) {
		t.Errorf("leave-one-out: first in %d, within three in %d of %d", first, three, len(cases))
	}
}

// builtin are the rules, compiled once for all tests.
func builtin(t *testing.T) []*doctor.Rule {
	t.Helper()
	rules, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(rules)
}

var builtinRules = sync.OnceValues(doctor.Builtin)

// position is where the first finding of a set of rules stands, each rule counted
// once; -1 if it is not there.
func position(all []doctor.Finding, ids []string) int {
	var seen []string
	for _, f := range all {
		if slices.Contains(ids, f.Rule) {
			return len(seen)
		}
		if !slices.Contains(seen, f.Rule) {
			seen = append(seen, f.Rule)
		}
	}
	return -1
}

func list(all []doctor.Finding) string {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf("%s %s %.2f", f.Status, f.Rule, f.Confidence))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// load reads the archives of a directory, once for all tests: nothing changes them.
func load(t *testing.T, dir string) []publicCase {
	t.Helper()
	cases, err := loaders[dir]()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

var loaders = map[string]func() ([]publicCase, error){
	"testdata/cases":       sync.OnceValues(func() ([]publicCase, error) { return loadAll("testdata/cases") }),
	"testdata/constructed": sync.OnceValues(func() ([]publicCase, error) { return loadAll("testdata/constructed") }),
	"testdata/healthy":     sync.OnceValues(func() ([]publicCase, error) { return loadAll("testdata/healthy") }),
}

func loadAll(dir string) ([]publicCase, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []publicCase
	for _, name := range files {
		c, err := loadCase(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// loadCase reads an archive in memory: the host and, under peer/, the other end.
func loadCase(name string) (publicCase, error) {
	c := publicCase{name: strings.TrimSuffix(filepath.Base(name), ".txtar")}
	a, err := txtar.ParseFile(name)
	if err != nil {
		return c, err
	}
	var host, peer txtar.Archive
	found := false
	for _, f := range a.Files {
		if rest, ok := strings.CutPrefix(f.Name, "peer/"); ok {
			peer.Files = append(peer.Files, txtar.File{Name: rest, Data: f.Data})
			continue
		}
		if f.Name == "case.yaml" {
			found = true
			if err := yaml.UnmarshalWithOptions(f.Data, &c, yaml.Strict()); err != nil {
				return c, err
			}
		}
		host.Files = append(host.Files, f)
	}
	if !found {
		return c, errors.New("no case.yaml")
	}
	c.in.Prio = -1
	if c.in.Host, err = archived(&host); err != nil || len(peer.Files) == 0 {
		return c, err
	}
	w, err := archived(&peer)
	c.in.Peer = &w
	return c, err
}

func archived(a *txtar.Archive) (snapshot.Window, error) {
	rec, err := source.ParseArchive("case", txtar.Format(a))
	if err != nil {
		return snapshot.Window{}, err
	}
	return read.Window(rec, read.Options{})
}

func window(t *testing.T, dir string) snapshot.Window {
	t.Helper()
	rec, err := source.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := read.Window(rec, read.Options{})
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return w
}

// A recording in one text file says the same as its directory.
func TestArchivesAreRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for i, name := range files {
		if i%6 != 0 {
			continue
		}
		dir := window(t, unpack(t, name))
		rec, err := source.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := read.Window(rec, read.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(asJSON(t, dir), asJSON(t, file)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// figures are sentences of docs/doctor.md with what the tests have found.
func figures(t *testing.T, want ...string) {
	t.Helper()
	readme(t, filepath.Join("docs", "doctor.md"), want...)
}

// readme holds a document against sentences that it must have.
func readme(t *testing.T, name string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(string(text), w) {
			t.Errorf("%s does not say %q", name, w)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unpack writes the files of an archive into a new directory.
func unpack(t *testing.T, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		p := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Nothing fails on a host where nothing is wrong.
func TestHealthyHosts(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	cases := load(t, "testdata/healthy")
	if len(cases) < 10 {
		t.Fatalf("%d healthy hosts, want 10", len(cases))
	}
	figures(t, fmt.Sprintf("On %d healthy hosts no rule fails.", len(cases)))
	readme(t, "README.md", fmt.Sprintf("none of %d healthy ones", len(cases)))
	readme(t, "README.zh-CN.md", fmt.Sprintf("%d 台健康主机", len(cases)))
	for i := range cases {
		r := doctor.Examine(cases[i].in, rules)
		if len(r.Faults) > 0 {
			t.Errorf("%s: %+v", cases[i].name, r.Faults)
		}
		for _, f := range r.Findings {
			if f.Status == doctor.Fail {
				t.Errorf("%s: %s fails at %s: %v", cases[i].name, f.Rule, f.Where, f.Evidence)
			}
		}
		if len(r.Passed) < 5 {
			t.Errorf("%s: only %d checks passed: too little is recorded to call it healthy", cases[i].name, len(r.Passed))
		}
	}
}
