package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodArchive = `made by hand
-- t0/root/sys/class/net/eth0/mtu --
9000
-- t0/root/sys/class/net/eth0/speed.err --
EINVAL
-- t0/root/sys/class/net/eth0/device.link --
../../0000:3b:00.0
-- t0/nl/ip/addr.json --
{"eth0":[{"prefix":"10.0.0.1/24"}]}
-- t1/root/sys/class/net/eth0/mtu --
1500
-- meta.json --
{"version":1,"host":"node7"}
`

// A recording in one file answers what the same files in a directory answer.
func TestArchive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "host.txtar")
	if err := os.WriteFile(name, []byte(goodArchive), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Times() != 2 || r.Meta().Host != "node7" {
		t.Errorf("%d instants of %q", r.Times(), r.Meta().Host)
	}
	at := r.At(0)
	if b, err := at.ReadFile("sys/class/net/eth0/mtu"); string(b) != "9000\n" || err != nil {
		t.Errorf("mtu %q, %v", b, err)
	}
	if _, err := at.ReadFile("sys/class/net/eth0/speed"); !errors.Is(err, Failure("EINVAL")) {
		t.Errorf("speed: %v", err)
	}
	if l, err := at.ReadLink("sys/class/net/eth0/device"); l != "../../0000:3b:00.0" || err != nil {
		t.Errorf("link %q, %v", l, err)
	}
	if n, err := at.ReadDir("sys/class/net/eth0"); fmt.Sprint(n) != "[device mtu speed]" || err != nil {
		t.Errorf("names %v, %v", n, err)
	}
	if n, err := at.ReadDir("sys/class"); fmt.Sprint(n) != "[net]" || err != nil {
		t.Errorf("names %v, %v", n, err)
	}
	if b, err := at.Ask(QueryAddresses); string(b) != "{\"eth0\":[{\"prefix\":\"10.0.0.1/24\"}]}\n" || err != nil {
		t.Errorf("addresses %q, %v", b, err)
	}
	if _, err := at.ReadFile("sys/class/net/eth1/mtu"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("eth1: %v", err)
	}
	if b, err := r.At(1).ReadFile("sys/class/net/eth0/mtu"); string(b) != "1500\n" || err != nil {
		t.Errorf("mtu %q, %v", b, err)
	}
	for _, out := range []string{"../meta.json", "../../meta.json", "sys/../../../meta.json", "/etc/passwd"} {
		if b, err := at.ReadFile(out); err == nil {
			t.Errorf("%s is read: %q", out, b)
		}
	}
}

// What is no recording in one file is refused in one line with the place.
func TestBadArchives(t *testing.T) {
	file := func(name string) string { return "-- " + name + " --\nx\n" }
	for _, c := range []struct{ text, want string }{
		{"", "recording f.txtar: no text archive"},
		{"just text\n", "recording f.txtar: no text archive"},
		{"\x1f\x8b\x08\x00\x00binary\n\xff", "recording f.txtar: no text archive"},
		{file("notes.txt"), "recording f.txtar: neither meta.json nor t0"},
		{file("t0"), "recording f.txtar: neither meta.json nor t0"},
		{"comment\n\n" + file("../t0/x"), `recording f.txtar:3: "../t0/x" is no path inside the recording`},
		{file("t0/../../x"), `:1: "t0/../../x" is no path`},
		{file("/etc/passwd"), `:1: "/etc/passwd" is no path`},
		{file("t0//x"), `:1: "t0//x" is no path`},
		{file("."), `:1: "." is no path`},
		{file("t0/a\\b"), `:1: "t0/a\\b" is no path`},
		{file("t0/x") + file("t0/x"), `:3: "t0/x" is there twice`},
		{file("t0/x") + file("t0/x/y"), `:3: "t0/x" is a file already`},
		{file("t0/x/y") + file("t0/x"), `:3: "t0/x" is a directory already`},
		{file("t0/" + strings.Repeat("a/", 100) + "x"), "more than 64 directories deep"},
		{file("t0/" + strings.Repeat("a", 2000)), "a name of 2003 bytes, must be at most 1024"},
		{file("meta.json") + file("t0/x"), "recording f.txtar: meta.json: invalid character"},
	} {
		_, err := ParseArchive("f.txtar", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%.40q: error %v, want one line with %q", c.text, err, c.want)
		}
	}
	var many strings.Builder
	for i := range maxMembers + 2 {
		fmt.Fprintf(&many, "-- t0/%d --\n", i)
	}
	if _, err := ParseArchive("f", []byte(many.String())); err == nil || !strings.Contains(err.Error(), "more than 131072 files") {
		t.Errorf("very many files: %v", err)
	}
	if _, err := ParseArchive("f", bytes.Repeat([]byte{'x'}, MaxArchive+1)); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("a very long file: %v", err)
	}
	for _, name := range []string{"/dev/zero", "/nonexistent", filepath.Join(t.TempDir(), "none")} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzArchive: whatever a file holds, it is read or refused, and nothing of it has a
// name that leads out.
func FuzzArchive(f *testing.F) {
	f.Add([]byte(goodArchive))
	f.Add([]byte("-- t0/a --\n-- t0/b --"))
	f.Add([]byte("-- t0/a/b --\r\nx\r\n-- ../b --\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseArchive("f", text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		var walk func(src Source, dir string, depth int)
		walk = func(src Source, dir string, depth int) {
			names, _ := src.ReadDir(dir)
			for _, n := range names {
				if strings.Contains(n, "/") || n == ".." {
					t.Errorf("name %q", n)
				}
				src.ReadFile(dir + "/" + n)
				if depth < 10 {
					walk(src, dir+"/"+n, depth+1)
				}
			}
		}
		for i := range min(r.Times(), 3) {
			walk(r.At(i), "sys", 0)
			r.At(i).Ask(QueryApp)
			r.At(i).Ask(QuerySwitch)
		}
	})
}
