package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The first program of the README is run as it stands, but for the addresses,
// which a program by hand may be using.
func TestFirstProgramRuns(t *testing.T) {
	root := moduleRoot(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	code, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md has no Go program")
	}
	code = strings.ReplaceAll(code, `"127.0.0.`, `"127.0.10.`)
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "SUCCESS: written by the other side\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// Links of the documents lead somewhere.
func TestDocumentLinks(t *testing.T) {
	root := moduleRoot(t)
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	var docs []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, files...)
	}
	n := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			n++
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("found only %d links in %d documents", n, len(docs))
	}
}
