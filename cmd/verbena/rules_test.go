package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of rules, and a log, that could block or has no end costs one line.
func TestFilesWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<30); err != nil {
		t.Fatal(err)
	}
	odd := map[string]string{dir: "no regular file", filepath.Join(dir, "none"): "none"}
	if _, err := os.Stat("/dev/zero"); err == nil {
		odd["/dev/zero"] = "no regular file"
	}
	for name, want := range odd {
		if _, err := readLog(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("log %s: %v", name, err)
		}
	}
	odd[long] = "longer than the limit"
	for name, want := range odd {
		if _, err := readRules(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rules %s: %v", name, err)
		}
	}
	// The end of a log is what matters, and of a line its beginning.
	lines, err := readLog(long)
	if err != nil || len(lines) != 1 || len(lines[0]) > 1<<14 {
		t.Errorf("a log of zeros: %d lines, %v", len(lines), err)
	}
}
