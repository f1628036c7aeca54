package digest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// The arm64 build, which another processor's instructions carry out, writes what the build for this machine writes.
func TestSameRunsOnArm64(t *testing.T) {
	judge.Need(t, "arm64")
	dir := t.TempDir()
	native, other := filepath.Join(dir, "native"), filepath.Join(dir, "arm64")
	build(t, native, "")
	build(t, other, "arm64")
	run(t, native+".out", native)
	run(t, other+".out", "qemu-aarch64", other)
	n := 0
	err := filepath.WalkDir(native+".out", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(native+".out", path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(other+".out", rel))
		if err != nil {
			return err
		}
		n++
		if i := differs(a, b); i >= 0 {
			t.Errorf("%s differs from byte %d on:\nhere  %q\narm64 %q", rel, i, around(a, i), around(b, i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Fatalf("only %d files were compared", n)
	}
	t.Logf("%d files are equal", n)
}

func build(t *testing.T, file, arch string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "./run")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if arch != "" {
		cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+arch)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build for %q: %v\n%s", arch, err, out)
	}
}

func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	out, err := exec.Command(command[0], append(command[1:], dir)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// differs returns the first byte in which two files differ, or -1.
func differs(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func around(b []byte, i int) string {
	return string(b[max(0, i-60):min(len(b), i+60)])
}
