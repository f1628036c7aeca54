package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What is remembered of directories tells absent names, and hides nothing: neither a
// file of a directory that is too long to remember, nor a link.
func TestTreeRemembersWhatIsAbsent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("short/a", "1")
	for i := range maxNamed + 5 {
		write(fmt.Sprintf("long/f%d", i), "2")
	}
	if err := os.Symlink("short", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tr, err := openTree(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.root.Close()
	for range 2 { // the second time from memory
		for name, want := range map[string]string{"short/a": "1", "long/f0": "2", fmt.Sprintf("long/f%d", maxNamed+4): "2"} {
			if b, err := tr.readFile(name, 10); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		for _, name := range []string{"short/b", "long/f", "none", "none/at/all", "short/a/b"} {
			if _, err := tr.readFile(name, 10); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := tr.readFile("link/a", 10); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file behind a link: %v", err)
		}
		if all, err := tr.readDir("short"); err != nil || len(all) != 1 {
			t.Errorf("short: %v, %v", all, err)
		}
	}
	// Memory stays bounded however many directories are asked for.
	for i := range 10 {
		tr.kept = maxKept + 1
		write(fmt.Sprintf("d%d/x", i), "3") // after the top was remembered
		tr.absent(fmt.Sprintf("d%d/x", i))
		if len(tr.names) > 2 {
			t.Fatalf("%d directories are remembered", len(tr.names))
		}
	}
}
