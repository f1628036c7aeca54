package source

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What cannot be a host is refused in words, at once: the open of a pipe would wait for
// a writer.
func TestOpenOfWhatIsNoHost(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	for name, open := range map[string]func(string) error{
		"OpenDir": func(p string) error { _, err := OpenDir(p); return err },
		"Open":    func(p string) error { _, err := Open(p); return err },
		"NewLive": func(p string) error { _, err := NewLive(LiveConfig{SysfsRoot: p}); return err },
	} {
		if err := open(pipe); err == nil || !strings.Contains(err.Error(), pipe) {
			t.Errorf("%s of a pipe: %v", name, err)
		}
		err := open(none)
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), none+": no such file or directory") {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
}
