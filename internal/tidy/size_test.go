package tidy

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// What is kept is text that people wrote or that is made from it: no program, no capture
// of hours, no picture in full size. What .gitignore names is not kept.
func TestFilesAreSmall(t *testing.T) {
	const root, limit = "../..", 1 << 20
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == ".git" || name == "out" || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		switch ext := filepath.Ext(name); {
		case name == "verbena", ext == ".test", ext == ".prof", ext == ".pcapng" && !strings.Contains(path, "testdata"):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		if info.Size() > limit {
			t.Errorf("%s has %d bytes, more than %d: is it a program?", name, info.Size(), limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("%d files were looked at", seen)
	}
}
