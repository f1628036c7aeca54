package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/verbena-rdma/verbena"

// layers says which of the module's packages each package may import directly.
// A name ending in /... stands for the package and everything below it. The
// first row that matches a package holds.
var layers = []struct {
	pkg   string
	allow []string
}{
	{"ib", nil},
	{"clock", nil},
	{"frame", nil},
	{"diag/probe", []string{"ib", "wire/..."}},
	{"wire/...", []string{"ib", "wire/..."}},
	{"mem", []string{"ib"}},
	{"transport/...", []string{"ib", "clock", "wire/...", "mem", "transport/..."}},
	{"rnic/...", []string{"ib", "clock", "frame", "wire/...", "mem", "transport/...", "rnic/..."}},
	{"link/...", []string{"clock", "frame", "link/...", "wire/...", "ib"}},
	{"driver", []string{"rnic", "link", "clock", "frame"}},
	{"fabric/...", []string{"rnic", "ib", "clock", "frame", "wire/...", "mem", "transport/...", "fabric/..."}},
	{"diag/snapshot", nil},
	{"diag/source/...", []string{"diag/snapshot", "diag/source/..."}},
	{"diag/counter", []string{"diag/snapshot"}},
	{"diag/listing", []string{"diag/snapshot", "diag/counter"}},
	{"diag/joblog", []string{"diag/snapshot"}},
	{"diag/read", []string{"diag/snapshot", "diag/source", "diag/joblog"}},
	{"verbs/faultplan", []string{"ib", "clock", "link", "link/fault", "wire"}},
	{"diag/control", []string{"diag/snapshot"}},
	{"diag/simhost", []string{"ib", "fabric/...", "diag/snapshot", "diag/source", "diag/read"}},
	{"verbs", []string{"diag/snapshot", "diag/control", "rnic", "ib", "mem", "driver", "clock", "link/...", "frame", "verbs/...", "transport", "transport/dcqcn"}},
	{"diag/export", []string{"diag/snapshot", "diag/counter"}},
	{"diag/monitor", []string{"diag/snapshot", "diag/counter", "diag/doctor"}},
	{"diag/serve", nil},
	{"diag/remote", []string{"diag/source"}},
}

// pure packages are told the time and have no concurrency of their own.
var pure = []string{"ib", "frame", "wire/...", "mem", "transport/...", "rnic/...", "fabric/..."}

// testOnly packages help tests: they may do what tests may, and only tests and
// each other may import them.
var testOnly = []string{"wire/internal/golden", "transport/internal/enginetest", "link/linktest", "test/..."}

// forbidden standard packages in pure code, with the files that may use them.
var forbidden = map[string][]string{
	"net":         nil,
	"os":          nil,
	"syscall":     nil,
	"sync":        nil,
	"context":     nil,
	"log":         nil,
	"math/rand":   nil,
	"sync/atomic": {"transport/queue.go", "rnic/ring", "rnic/doorbell", "rnic/qp.go", "rnic/cq.go", "mem/"},
}

func matches(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return pattern == pkg
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if matches(p, pkg) {
			return true
		}
	}
	return false
}

type sourceFile struct {
	rel  string // path from the module's root
	pkg  string // directory of the package, from the module's root
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []sourceFile {
	t.Helper()
	root := moduleRoot(t)
	var files []sourceFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "." {
				return nil
			}
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{
			rel: filepath.ToSlash(rel), pkg: filepath.ToSlash(filepath.Dir(rel)),
			test: strings.HasSuffix(rel, "_test.go"), ast: f, fset: fset,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files below %s", len(files), root)
	}
	return files
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, l := range layers {
			if !matches(l.pkg, f.pkg) {
				continue
			}
			seen[l.pkg] = true
			for _, imp := range f.ast.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				in, ok := strings.CutPrefix(path, module+"/")
				if ok && !matchesAny(l.allow, in) {
					t.Errorf("%s imports %s; %s may import only %v", f.rel, in, l.pkg, l.allow)
				}
			}
			break
		}
	}
	for _, name := range []string{"ib", "clock", "frame", "mem", "wire/...", "transport/...", "rnic/...", "link/...", "driver", "verbs"} {
		if !seen[name] {
			t.Errorf("no source file of layer %s was looked at", name)
		}
	}
}

func TestTestPackagesStayInTests(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || matchesAny(testOnly, f.pkg) {
			continue
		}
		for _, imp := range f.ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if in, ok := strings.CutPrefix(path, module+"/"); ok && matchesAny(testOnly, in) {
				t.Errorf("%s imports %s, which is for tests", f.rel, in)
			}
		}
	}
}

func TestPurePackagesHaveNoShell(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !matchesAny(pure, f.pkg) || matchesAny(testOnly, f.pkg) {
			continue
		}
		for _, imp := range f.ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			allowed, bad := forbidden[path]
			if !bad {
				continue
			}
			ok := false
			for _, prefix := range allowed {
				ok = ok || strings.HasPrefix(f.rel, prefix)
			}
			if !ok {
				t.Errorf("%s imports %s; the sans-IO core has no such thing", f.rel, path)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: goroutine in the sans-IO core", f.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" {
					switch n.Sel.Name {
					case "Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Since", "Until", "Tick":
						t.Errorf("%s: time.%s in the sans-IO core", f.fset.Position(n.Pos()), n.Sel.Name)
					}
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" {
					t.Errorf("%s: panic in the sans-IO core", f.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented, packages := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		packages[f.pkg] = true
		if f.ast.Doc != nil && len(strings.TrimSpace(f.ast.Doc.Text())) > 40 {
			documented[f.pkg] = true
		}
	}
	for pkg := range packages {
		if !documented[pkg] {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// The clock is read in one place.
func TestOnlyClockReadsTheClock(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !matchesAny([]string{"driver", "link/...", "verbs/..."}, f.pkg) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Sleep") {
					t.Errorf("%s: time.%s; take the instant from a clock.Clock", f.fset.Position(n.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
}
