package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// An environment that cannot be read is not an empty one.
func TestEnvironmentThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(string) error
		why  string
	}{
		"none set": {func(p string) error { return os.WriteFile(p, []byte("HOME=/\x00"), 0o600) }, ""},
		"odd":      {func(p string) error { return os.Mkdir(p, 0o700) }, "EISDIR"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "77")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tjob\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.make(filepath.Join(dir, "environ")); err != nil {
				t.Fatal(err)
			}
			l, err := NewLive(LiveConfig{SysfsRoot: root, ProcRoot: root, App: AppConfig{PID: 77}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			b, err := l.Ask(QueryApp)
			if err != nil {
				t.Fatal(err)
			}
			var app snapshot.App
			if err := json.Unmarshal(b, &app); err != nil {
				t.Fatal(err)
			}
			if app.EnvUnreadable != c.why || len(app.Env) != 0 {
				t.Errorf("%q, %v; want %q", app.EnvUnreadable, app.Env, c.why)
			}
		})
	}
}
