package coverage

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

var update = flag.Bool("update", false, "rewrite docs/spec-coverage.md")

const root = "../.."

// impossible statuses belong to services that Verbena does not offer.
var impossible = map[ib.WCStatus]string{
	ib.LocEECOpErr:    "EE contexts belong to reliable datagrams, which no RNIC implements",
	ib.LocRDDViolErr:  "reliable datagrams",
	ib.InvEECNErr:     "reliable datagrams",
	ib.InvEECStateErr: "reliable datagrams",
	ib.RemAbortErr:    "reliable datagrams: an abort by the far end's EE context",
	ib.LocAccessErr:   "a protection error of a locally posted WRITE with immediate is reported as LOC_PROT_ERR, as RNICs do",
	ib.FatalErr:       "a failed adapter closes its device",
	ib.RespTimeoutErr: "answers to management datagrams are not offered yet",
	ib.GeneralErr:     "nothing that happens is without a status of its own",
}

// transitions of the queue pair that must have a test in some engine.
var transitions = []string{
	"RESET-INIT", "INIT-RTR", "RTR-RTS", "RTS-SQD", "SQD-RTS", "SQE-RTS",
	"INIT-RESET", "RTR-RESET", "RTS-RESET", "SQD-RESET", "ERR-RESET",
	"RESET-ERR", "INIT-ERR", "RTR-ERR", "RTS-ERR", "SQD-ERR",
}

// ruleFor names the rules of uc and ud that show a transition rc has not.
var ruleFor = map[string]string{"SQE-RTS": "sqe-to-rts"}

type row struct {
	id, what string
	tests    []string // "package Test"
}

func reports(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile("reports.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 3 {
			t.Fatalf("reports.txt:%d: want id | what | tests", n+1)
		}
		r := row{id: strings.TrimSpace(f[0]), what: strings.TrimSpace(f[1])}
		for _, s := range strings.Split(f[2], ";") {
			if s = strings.TrimSpace(s); s != "" {
				r.tests = append(r.tests, s)
			}
		}
		if len(r.tests) == 0 {
			t.Errorf("reports.txt:%d: %s has no test", n+1, r.id)
		}
		rows = append(rows, r)
	}
	return rows
}

// rules reads an engine's list: rule to tests.
func rules(t *testing.T, pkg string) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, pkg, "testdata", "rules.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, line := range strings.Split(string(data), "\n") {
		i := strings.Index(line, "Test")
		if j := strings.Index(line, "Fuzz"); i < 0 || j >= 0 && j < i {
			i = j
		}
		if i <= 0 || line[0] == '#' {
			continue
		}
		rows = append(rows, row{id: strings.TrimSpace(line[:i]), tests: []string{pkg + " " + strings.TrimSpace(line[i:])}})
	}
	if len(rows) < 20 {
		t.Fatalf("%s has %d rules", pkg, len(rows))
	}
	return rows
}

// index knows the test functions and the string literals of packages' tests.
type index struct {
	funcs    map[string]bool
	literals map[string]bool
}

func indexOf(t *testing.T, pkg string) index {
	t.Helper()
	ix := index{map[string]bool{}, map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				ix.funcs[n.Name.Name] = true
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					ix.literals[strings.Trim(n.Value, "`\"")] = true
				}
			}
			return true
		})
	}
	return ix
}

func TestEveryReportHasItsTests(t *testing.T) {
	indices := map[string]index{}
	seen := map[string]bool{}
	for _, r := range reports(t) {
		if seen[r.id] {
			t.Errorf("%s is there twice", r.id)
		}
		seen[r.id] = true
		for _, s := range r.tests {
			pkg, test, ok := strings.Cut(s, " ")
			if !ok {
				t.Errorf("%s: %q is not a package and a test", r.id, s)
				continue
			}
			if _, ok := indices[pkg]; !ok {
				indices[pkg] = indexOf(t, pkg)
			}
			name, sub, _ := strings.Cut(test, "/")
			if !indices[pkg].funcs[name] {
				t.Errorf("%s (%s): package %s has no %s", r.id, r.what, pkg, name)
				continue
			}
			if sub == "" || indices[pkg].literals[sub] {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, pkg, "testdata", sub+".txt")); err != nil {
				t.Errorf("%s (%s): %s %s has neither a subtest nor a transcript %q", r.id, r.what, pkg, name, sub)
			}
		}
	}
}

func TestEveryCodeStatusAndTransitionHasATest(t *testing.T) {
	have := map[string]bool{}
	for _, r := range rules(t, "transport/rc") {
		have[r.id] = true
	}
	unacked := map[string]bool{}
	for _, pkg := range []string{"transport/uc", "transport/ud"} {
		for _, r := range rules(t, pkg) {
			unacked[r.id] = true
		}
	}
	for c := wire.NAKCode(0); c <= wire.NAKInvalidRD; c++ {
		// A responder never sends the last: it is of reliable datagrams. That one
		// is received is in the transcript nak_codes.
		if c != wire.NAKInvalidRD && !have["nak/"+c.String()] {
			t.Errorf("NAK %v has no test", c)
		}
	}
	for s := ib.WCStatus(0); s <= ib.GeneralErr; s++ {
		_, no := impossible[s]
		if tested := have["status/"+s.String()]; tested == no {
			t.Errorf("%v: has a test %v, said to be impossible %v", s, tested, no)
		}
	}
	for _, x := range transitions {
		if !have["state/"+x] && !unacked[ruleFor[x]] {
			t.Errorf("transition %s has no test", x)
		}
	}
}

func TestDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What is held by which test\n\nGenerated: `go test ./internal/coverage -update`.\n\n" +
		"## Kinds of fault that users of RDMA stacks have met\n\n| | what must hold | tests |\n|---|---|---|\n")
	for _, r := range reports(t) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.what, strings.Join(r.tests, "<br>"))
	}
	for _, pkg := range []string{"transport/rc", "transport/uc", "transport/ud"} {
		fmt.Fprintf(&b, "\n## Rules of %s\n\n| rule | tests |\n|---|---|\n", pkg)
		for _, r := range rules(t, pkg) {
			fmt.Fprintf(&b, "| %s | %s |\n", r.id, strings.TrimPrefix(r.tests[0], pkg+" "))
		}
	}
	b.WriteString("\n## Completion statuses that cannot occur\n\n| status | why |\n|---|---|\n")
	var none []ib.WCStatus
	for s := range impossible {
		none = append(none, s)
	}
	slices.Sort(none)
	for _, s := range none {
		fmt.Fprintf(&b, "| %v | %s |\n", s, impossible[s])
	}
	const doc = root + "/docs/spec-coverage.md"
	if *update {
		if err := os.WriteFile(doc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(doc)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/spec-coverage.md is not what the lists say; run go test ./internal/coverage -update (%v)", err)
	}
}
