//go:build linux

package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted is a tree on disk.
type planted struct {
	dir     string            // what is bound over /sys
	refused map[string]string // files below it, with the errno of reading them
	devices []string          // names in class/infiniband, sorted
}

// plant writes a tree below a directory that it makes.
func plant(t *testing.T, dir, text string) planted {
	t.Helper()
	p := planted{dir: dir, refused: map[string]string{}}
	at := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if d, ok := strings.CutPrefix(line, "@ "); ok {
			at = d
			if name, ok := strings.CutPrefix(d, "class/infiniband/"); ok {
				p.devices = append(p.devices, name)
			}
			mkdir(t, filepath.Join(dir, at))
			continue
		}
		if name, errno, ok := strings.Cut(line, " ! "); ok {
			p.refused[filepath.Join(at, name)] = errno
			write(t, filepath.Join(dir, at, name), "")
		} else if name, target, ok := strings.Cut(line, " > "); ok {
			mkdir(t, filepath.Dir(filepath.Join(dir, at, name)))
			if err := os.Symlink(target, filepath.Join(dir, at, name)); err != nil {
				t.Fatal(err)
			}
		} else if name, content, ok := strings.Cut(line, " ="); ok {
			write(t, filepath.Join(dir, at, name), strings.ReplaceAll(strings.TrimPrefix(content, " "), `\n`, "\n")+"\n")
		} else {
			t.Fatalf("no line of a tree: %q", line)
		}
	}
	slices.Sort(p.devices)
	return p
}

func write(t *testing.T, file, content string) {
	t.Helper()
	mkdir(t, filepath.Dir(file))
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// trees returns the texts of testdata by name.
func trees(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.tree")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d trees: %v", len(files), err)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".tree")] = string(b)
	}
	return all
}
