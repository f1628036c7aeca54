//go:build linux

package guest

import (
	"os"
	"path/filepath"
	"testing"
)

// ForTest starts a network that lives as long as the test t. When the test fails, the console logs are copied to its
// artifact directory and their ends are logged.
func ForTest(t testing.TB, cfg Config) *Net {
	t.Helper()
	if cfg.Logf == nil {
		cfg.Logf = t.Logf
	}
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start guests: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			n.keepLogs(t)
		}
		if err := n.Close(); err != nil {
			t.Errorf("remove guests: %v", err)
		}
	})
	return n
}

func (n *Net) keepLogs(t testing.TB) {
	for _, g := range n.guests {
		path := g.ConsoleLog()
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Logf("console of guest %d: %v", g.index, err)
			continue
		}
		kept := filepath.Join(t.ArtifactDir(), filepath.Base(path))
		if err := os.WriteFile(kept, text, 0o644); err != nil {
			t.Logf("console of guest %d: %v", g.index, err)
		}
		t.Logf("console of guest %d ends:\n%s", g.index, tail(path, 15))
	}
}
