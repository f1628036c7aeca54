package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/verbena-rdma/verbena/fabric/lab"
)

// The sim commands, as they are typed.
func TestSimScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/sim",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// json FILE KEY… wants one JSON document with the keys.
			"json": func(ts *testscript.TestScript, neg bool, args []string) {
				var v any
				if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); (err != nil) != neg {
					ts.Fatalf("%s as JSON: %v\n%s", args[0], err, ts.ReadFile(args[0]))
				}
				m, _ := v.(map[string]any)
				for _, k := range args[1:] {
					if _, ok := m[k]; !ok {
						ts.Fatalf("no %q in %s", k, ts.ReadFile(args[0]))
					}
				}
			},
			// oneline FILE wants exactly one line.
			"oneline": func(ts *testscript.TestScript, _ bool, args []string) {
				if s := ts.ReadFile(args[0]); strings.Count(s, "\n") != 1 || !strings.HasSuffix(s, "\n") {
					ts.Fatalf("not one line: %q", s)
				}
			},
			// status N PROGRAM ARG… wants the exit status.
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				got := 0
				err := ts.Exec(args[1], args[2:]...)
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					got = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if want, _ := strconv.Atoi(args[0]); got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
		},
	})
}

// sim runs a command line in this process.
func sim(ctx context.Context, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(ctx, app{in: strings.NewReader(""), out: &o, err: &e}, append([]string{"verbena", "sim"}, args...))
	return status, o.String(), e.String()
}

// Every scenario of the library can be listed, shown, checked and drawn, with
// its variants.
func TestSimLibrary(t *testing.T) {
	for _, name := range lab.Names() {
		for _, args := range [][]string{{"show", name}, {"show", name, "--full"}, {"show", name, "--graph"}, {"show", name, "--sonic"}, {"check", name}} {
			if status, out, errs := sim(t.Context(), args...); status != 0 || out == "" {
				t.Errorf("%q: status %d, %s", args, status, errs)
			}
		}
	}
}

// The documents of --json keep their shape: programs read them.
func TestSimJSONShape(t *testing.T) {
	f := file(t, "small.yaml", strings.Replace(big, "4MB", "40KB", 1))
	for name, c := range map[string]struct {
		args []string
		want string // paths of all keys, sorted; [] is an entry of a list
	}{
		"list": {[]string{"list"}, "[].duration_ps [].expected [].hosts [].links [].name [].rate_bps [].switches [].teaches [].title [].variants [].variants[] [].workloads [].workloads[]"},
		"check": {[]string{"check", f}, "file headroom headroom[].delay_ps headroom[].enough headroom[].from headroom[].have_bytes headroom[].need_bytes " +
			"headroom[].ports headroom[].rate_bps headroom[].to hosts links ok switches warnings"},
		"compare": {[]string{"compare", f, "--set", "seed=2", "--set", "workload.in.bytes=80KB"}, "a a.digest a.end_ps a.interrupted a.name a.seed a.title a.verdict a.warnings " +
			"b b.digest b.end_ps b.interrupted b.name b.seed b.title b.verdict b.warnings gain price rows rows[].a rows[].b rows[].factor rows[].group rows[].unit rows[].what same"},
		"sweep": {[]string{"sweep", f, "--set", "seed=1,2", "--metric", "marks", "-o", ""}, "axes axes[] interrupted metrics metrics[] points points[].median points[].median.marks points[].runs " +
			"points[].runs[].digest points[].runs[].metrics points[].runs[].metrics.marks points[].runs[].metrics.marks.unit points[].runs[].metrics.marks.value " +
			"points[].runs[].seed points[].runs[].why points[].set points[].set.seed scenario set"},
		"wrong": {[]string{"check", f + "x"}, "error program"},
	} {
		_, out, _ := sim(t.Context(), append(c.args, "--json")...)
		var doc any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		seen := map[string]bool{}
		paths(doc, "", seen)
		if got := strings.Join(slices.Sorted(maps.Keys(seen)), " "); got != c.want {
			t.Errorf("%s has\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// paths lists the keys of a document.
func paths(v any, at string, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			p := strings.TrimPrefix(at+"."+k, ".")
			seen[p] = true
			paths(x, p, seen)
		}
	case []any:
		for _, x := range v {
			if _, ok := x.(map[string]any); !ok {
				seen[at+"[]"] = true
			}
			paths(x, at+"[]", seen)
		}
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

func asked(t *testing.T, times int64) context.Context {
	c := &countdown{Context: t.Context()}
	c.left.Store(times)
	return c
}

// big is a scenario that takes many looks at the context: some million events.
const big = `topology: {kind: star, hosts: 9}
workload: [{name: in, kind: incast, src: host1..host8, dst: host0, bytes: 4MB}]
expect: [{what: flow.in.finished, min: 8, source: all}]
`

func file(t *testing.T, name, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// An interrupted run gives the partial report, and nothing is judged by it.
func TestSimRunInterrupted(t *testing.T) {
	f := file(t, "big.yaml", big)
	status, out, errs := sim(asked(t, 3), "run", f, "--expect")
	if status != simInterrupted || !strings.Contains(out, "INTERRUPTED at ") || !strings.Contains(out, "VERDICT") ||
		strings.Contains(out, "EXPECTED") || errs != "" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, out, errs = sim(asked(t, 3), "run", f, "--json")
	var doc struct{ Run struct{ Interrupted bool } }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != simInterrupted || !doc.Run.Interrupted || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, %v %+v\n%s", status, err, doc, errs)
	}
	if status, out, errs = sim(asked(t, 3), "compare", f, "--set", "seed=2"); status != simInterrupted || out != "" || strings.Count(errs, "\n") != 1 {
		t.Errorf("compare: status %d, %q, %q", status, out, errs)
	}
	// In the middle of the other side: the first run is told whole.
	const plenty = 1 << 40
	whole := &countdown{Context: t.Context()}
	whole.left.Store(plenty)
	sim(whole, "run", "incast", "--alone")
	status, out, _ = sim(asked(t, plenty-whole.left.Load()+3), "run", "incast")
	if status != simInterrupted || !strings.Contains(out, "INTERRUPTED before the other side") || strings.Contains(out, "INTERRUPTED at") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// An interrupted sweep goes on where it stopped.
func TestSimSweepInterrupted(t *testing.T) {
	f := file(t, "big.yaml", big)
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"sweep", f, "--set", "seed=1..4", "-o", dir, "-j", "1", "--set", "workload.in.bytes=200KB", "--metric", "pauses"}
	status, out, errs := sim(asked(t, 6), args...)
	if status != simInterrupted || !strings.Contains(out, "INTERRUPTED: ") || errs != "" {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	status, out, _ = sim(t.Context(), args...)
	if status != 0 || strings.Contains(out, "INTERRUPTED") || strings.Contains(out, " 0 earlier") || strings.Contains(out, "; 0 runs made now") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// closed is a pipe that nobody reads.
type closed struct{}

func (closed) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestSimBrokenPipeIsQuiet(t *testing.T) {
	f := file(t, "small.yaml", strings.Replace(big, "4MB", "40KB", 1))
	for _, args := range [][]string{
		{"run", f},
		{"run", f, "--json"},
		{"run", f, "--csv"},
		{"list"},
		{"list", "--json"},
		{"show", f},
		{"show", f, "--graph"},
		{"show", f, "--sonic"},
		{"show", "--schema"},
		{"check", f},
		{"check", f, "--json"},
		{"compare", f, "--set", "seed=2"},
		{"sweep", f, "--set", "seed=1,2", "-o", ""},
	} {
		var errs bytes.Buffer
		status := run(t.Context(), app{in: strings.NewReader(""), out: closed{}, err: &errs}, append([]string{"verbena", "sim"}, args...))
		if status != simBroken || errs.Len() > 0 {
			t.Errorf("%q: status %d, %q", args, status, &errs)
		}
	}
}

// What a file says is text, and never commands to a terminal.
func TestSimHostileNames(t *testing.T) {
	f := file(t, "hostile.yaml", `title: "a\e[31mb\r\u202ec"
topology: {kind: star, hosts: 4}
switch: {buffer: {headroom: 1KB}}
workload: [{name: "in\e]0;x\a", kind: incast, src: host1..host3, dst: host0, bytes: 40KB}]
expect: [{what: "flow.in\e[1m.goodput", min: 1, source: "x\e[2J"}]
`)
	for _, args := range [][]string{
		{"run", f},
		{"run", f, "-v"},
		{"check", f},
		{"show", f, "--graph"},
		{"compare", f, "--set", "seed=2"},
		{"sweep", f, "--set", "seed=1,2", "-o", ""},
		{"run", f, "--set", "title=[\x1b"},
		{"run", f, "--set", "workload[0].dst=\x1b[1m"},
	} {
		_, out, errs := sim(t.Context(), args...)
		if i := strings.IndexFunc(out+errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q prints %q", args, (out + errs)[max(0, i-20):i+5])
		}
	}
}

// Ctrl-C, from outside: the first is answered with the partial report.
func TestSimSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGINT")
	}
	// The warning is on standard error before the run begins; it takes minutes.
	f := file(t, "long.yaml", "switch: {buffer: {headroom: 1KB}}\n"+strings.Replace(big, "4MB", "200GB", 1))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// testscript.Main makes this binary the program where it has its name.
	link := filepath.Join(t.TempDir(), "verbena")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run"}, {"sweep", "--set", "seed=1..9", "-o", ""}} {
		cmd := exec.CommandContext(t.Context(), link, append(append([]string{"sim"}, args...), f)...)
		var out bytes.Buffer
		cmd.Stdout = &out
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(errs)
		if args[0] == "run" {
			if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "warning") {
				t.Errorf("%q %v", line, err)
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(r)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); args[0] == "run" && (code != simInterrupted || !strings.Contains(out.String(), "INTERRUPTED")) {
			t.Errorf("%q: status %d\n%s%s", args, code, &out, rest)
		}
	}
}

// Every command that the documents show has flags that exist, and names a
// scenario that exists.
func TestSimDocumentedCommands(t *testing.T) {
	n := 0
	for _, doc := range []string{"sim.md", "scenario.md", "scenarios.md", "../README.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", doc))
		if err != nil {
			continue // another's, not written yet
		}
		for line := range strings.Lines(string(text)) {
			_, rest, ok := strings.Cut(strings.TrimSpace(line), "verbena sim ")
			if !ok || !strings.HasPrefix(strings.TrimSpace(line), "verbena sim ") && !strings.HasPrefix(strings.TrimSpace(line), "go run ") {
				continue
			}
			rest, _, _ = strings.Cut(strings.TrimSpace(rest), " #")
			root := app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}.root()
			cmd, args, err := root.Find(append([]string{"sim"}, shellWords(rest)...))
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %s: %v", doc, strings.TrimSpace(line), err)
				continue
			}
			n++
			for _, a := range cmd.Flags().Args() {
				if _, _, err := lab.Source(a); err != nil && !strings.ContainsAny(a, "./") {
					t.Errorf("%s: %s: %v", doc, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d commands were found", n)
	}
}

// shellWords cuts a line as a shell does, as far as the documents need it.
func shellWords(line string) []string {
	var out []string
	word, quoted, some := "", false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, some = !quoted, true
		case r == ' ' && !quoted:
			if some {
				out = append(out, word)
			}
			word, some = "", false
		default:
			word, some = word+string(r), true
		}
	}
	if some {
		out = append(out, word)
	}
	return out
}
