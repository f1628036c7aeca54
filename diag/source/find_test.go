package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/source"
)

// A path is one recording, or a directory of them: those are found by name, numbers as
// numbers, and what is something else is left alone.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"all/host10/meta.json", "all/host2/t0/root/sys/class/net/eth0/mtu", "all/case.txtar", "all/README", "all/notes/today", "all/report.html",
		"all/more/host3/meta.json", "none/README", "none/sub/host/meta.json",
	} {
		put(name)
	}
	if err := os.Symlink("host10", filepath.Join(dir, "all/latest")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"all":               {"all/case.txtar", "all/host2", "all/host10"},
		"all/host2":         {"all/host2"},
		"all/case.txtar":    {"all/case.txtar"},
		"all/latest":        {"all/latest"}, // somebody has named it
		"all/more":          {"all/more/host3"},
		"all/README":        {"all/README"}, // Open says what is wrong with it
		"all/host10/../../": {},
	} {
		got, err := source.Find(filepath.Join(dir, path), 3)
		for i := range got {
			got[i], _ = filepath.Rel(dir, got[i])
		}
		if len(want) == 0 {
			if err == nil {
				t.Errorf("%s: found %v", path, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", path, err, diff)
		}
	}
	for i := range 65 {
		put(fmt.Sprintf("many/h%d/meta.json", i))
	}
	for path, want := range map[string]string{
		"none": "no recordings in it", "absent": "no such file", "many": "65, the limit is 64; name those that are wanted",
	} {
		_, err := source.Find(filepath.Join(dir, path), 64)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
