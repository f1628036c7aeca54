package read_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// plant makes a recording of a tree written as text. A line is "name = content",
// "name ! reason", or "name > target of a link"; \n in content ends a line. Names are
// below the directory of the last line "@ directory"; "nl query" stands for an answer.
func plant(t testing.TB, dir, text string) {
	t.Helper()
	at := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if d, ok := strings.CutPrefix(line, "@ "); ok {
			at = "root/" + d
			continue
		}
		for _, op := range []struct{ sign, ending string }{{" =", ""}, {" !", ".err"}, {" >", ".link"}} {
			name, content, ok := strings.Cut(line, op.sign)
			if !ok {
				continue
			}
			file := filepath.Join(dir, "t0", at, name)
			if q, is := strings.CutPrefix(name, "nl "); is {
				file = filepath.Join(dir, "t0/nl", q)
				if op.ending == "" {
					file += ".json"
				}
			}
			write(t, file+op.ending, strings.ReplaceAll(strings.TrimPrefix(content, " "), `\n`, "\n")+"\n")
			break
		}
	}
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// host reads the recording of a directory.
func host(t testing.TB, dir string, opt read.Options) *snapshot.Snapshot {
	t.Helper()
	rec, err := source.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return read.Host(rec.At(0), opt)
}

// sample reads a tree of testdata.
func sample(t testing.TB, name string) *snapshot.Snapshot {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".tree")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plant(t, dir, string(b))
	return host(t, dir, read.Options{})
}

// problems are the places that could not be read.
func problems(s *snapshot.Snapshot) []string {
	var all []string
	for _, p := range s.Problems {
		all = append(all, p.Place+": "+p.Why)
	}
	return all
}
