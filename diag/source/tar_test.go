package source

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTarIsTheRecording(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"meta.json":                   `{"version":1,"taken":["2026-01-02T03:04:05Z"],"host":"n7"}`,
		"t0/root/sys/a/value":         "no newline, and\n-- a/marker --",
		"t0/root/sys/a/refused.err":   "EINVAL\n",
		"t0/nl/rdma%2Fdev.json":       "[]\n",
		"t0/root/sys/class/net/.keep": "",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "t0/root/sys/class/infiniband/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "t0/root/link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteTar(&b, dir); err != nil {
		t.Fatal(err)
	}
	r, err := ParseTar("n7", &b)
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"/sys/a/value", "/sys/a/refused", "/sys/a/absent", "/link"} {
		name = strings.TrimPrefix(name, "/")
		got, err := r.At(0).ReadFile(name)
		want, wantErr := d.At(0).ReadFile(name)
		if name == "link" {
			want, wantErr = nil, ErrNoEntry // links are not sent
		}
		if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%s: %q, %v; the directory has %q, %v", name, got, err, want, wantErr)
		}
	}
	names, err := r.At(0).ReadDir("sys/class/infiniband")
	if err != nil || len(names) != 1 || names[0] != "empty" {
		t.Errorf("a directory with an empty one in it: %v, %v", names, err)
	}
}

func TestParseTarRefuses(t *testing.T) {
	member := func(h tar.Header, body string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h.Size = int64(len(body))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	file := func(name string) []byte { return member(tar.Header{Typeflag: tar.TypeReg, Name: name}, "x") }
	for _, c := range []struct {
		what string
		text []byte
		want string
	}{
		{"nothing", nil, "nothing came"},
		{"text", []byte(strings.Repeat("hello\n", 200)), "no whole tar stream"},
		{"half", file("meta.json")[:512], "not whole"},
		{"a way out", file("../../etc/passwd"), "no path inside"},
		{"an absolute path", file("/etc/passwd"), "no path inside"},
		{"a link", member(tar.Header{Typeflag: tar.TypeSymlink, Name: "t0/x", Linkname: "/etc/passwd"}, ""), "neither a file nor"},
		{"a device", member(tar.Header{Typeflag: tar.TypeBlock, Name: "t0/x"}, ""), "neither a file nor"},
		{"depth", file(strings.Repeat("d/", maxDepth+2) + "x"), "directories deep"},
		{"no recording", file("hello"), "meta.json"},
		{"length", member(tar.Header{Typeflag: tar.TypeReg, Name: "a"}, strings.Repeat("x", MaxArchive)), "not whole"},
	} {
		if _, err := ParseTar("n7", bytes.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "n7") {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// What WriteTar writes is bounded as what ParseTar takes is.
func TestTarIsBounded(t *testing.T) {
	for name, sizes := range map[string][]int64{
		"one file":      {MaxArchive + 1},
		"two files":     {MaxArchive / 2, MaxArchive / 2},
		"just its size": {MaxArchive},
	} {
		dir := t.TempDir()
		for i, n := range sizes {
			p := filepath.Join(dir, string(rune('a'+i)))
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(p, n); err != nil {
				t.Fatal(err)
			}
		}
		var n counted
		if err := WriteTar(&n, dir); err == nil || !strings.Contains(err.Error(), "longer than the limit of 67108864 bytes") || n > MaxArchive {
			t.Errorf("%s: %d bytes written, %v", name, n, err)
		}
	}
}

type counted int64

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}
