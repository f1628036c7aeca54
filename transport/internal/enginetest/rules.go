package enginetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CheckRules holds a list of rules against the tests of the package in the
// working directory. A line is a rule's name, blanks, and its test:
//
//	gap-drops-message    TestRules/a gap drops the rest of the message
//
// Every test must exist, and so must every subtest of TestRules, whose names
// are given, have a rule; names of rules are unique.
func CheckRules(t *testing.T, file string, subtests []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := testFuncs(t)
	unused := map[string]bool{}
	for _, s := range subtests {
		if unused[s] {
			t.Errorf("two subtests are called %q", s)
		}
		unused[s] = true
	}
	known := map[string]bool{}
	for _, s := range subtests {
		known[s] = true
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rule, test, ok := strings.Cut(line, " ")
		test = strings.TrimSpace(test)
		name, sub, isSub := strings.Cut(test, "/")
		switch {
		case !ok || rule == "" || test == "":
			t.Errorf("%s:%d: want a rule and a test", file, i+1)
		case seen[rule]:
			t.Errorf("%s:%d: rule %s is listed twice", file, i+1, rule)
		case !tests[name]:
			t.Errorf("%s:%d: rule %s: there is no %s", file, i+1, rule, name)
		case isSub && (name != "TestRules" || !known[sub]):
			t.Errorf("%s:%d: rule %s: %s has no subtest %q", file, i+1, rule, name, sub)
		}
		seen[rule] = true
		delete(unused, sub)
	}
	for s := range unused {
		t.Errorf("%s: TestRules/%s has no rule", file, s)
	}
}

// testFuncs returns the names of the test and fuzz functions of the package.
func testFuncs(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				if strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz") {
					names[fn.Name.Name] = true
				}
			}
		}
	}
	return names
}
