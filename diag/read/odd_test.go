//go:build unix

package read_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/source"
)

const good = `
@ sys/class/infiniband/mlx5_0
node_type = 1: CA
ports/1/state = 4: ACTIVE
ports/1/link_layer = Ethernet
ports/1/counters/port_rcv_errors = 5
`

// Whatever stands in one place, it costs that value, is said once, and leaves the
// values beside it.
func TestOneOddPlaceCostsOneValue(t *testing.T) {
	const dev = "t0/root/sys/class/infiniband/mlx5_0/"
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("4: ACTIVE\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), content) }
	}
	instead := func(name string, make func(string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := make(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		odd  func(*testing.T, string)
		want string // a part of the one problem
	}{
		{"binary nonsense", put(dev+"ports/1/phys_state", "\x00\xff\x1b[31m\x07\x80"), "phys_state: "},
		{"empty", put(dev+"ports/1/lid", ""), "lid: empty"},
		{"too large a number", put(dev+"ports/1/counters/port_xmit_data", "18446744073709551616"), "port_xmit_data"},
		{"negative", put(dev+"ports/1/counters/port_xmit_data", "-1"), "port_xmit_data"},
		{"a gigabyte", instead(dev+"fw_ver", func(f string) error {
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(f, 1<<30)
		}), "fw_ver: longer than the limit of 4194304 bytes"},
		{"a pipe", instead(dev+"fw_ver", func(f string) error { return unix.Mkfifo(f, 0o644) }), "fw_ver: a named pipe"},
		{"a socket", instead(dev+"fw_ver", func(f string) error { return unix.Mknod(f, unix.S_IFSOCK|0o644, 0) }), "fw_ver: a socket"},
		{"a directory", instead(dev+"fw_ver", func(f string) error { return os.Mkdir(f, 0o755) }), "fw_ver: EISDIR"},
		{"a link out of the tree", instead(dev+"fw_ver", func(f string) error { return os.Symlink(outside, f) }), "fw_ver: a symbolic link"},
		{"a relative link out of the tree", instead(dev+"fw_ver", func(f string) error {
			return os.Symlink("../../../../../../../../../etc/passwd", f)
		}), "fw_ver: a symbolic link"},
		{"a link inside", instead(dev+"fw_ver", func(f string) error { return os.Symlink("node_type", f) }), "fw_ver: a symbolic link"},
		{"a link to itself", instead(dev+"fw_ver", func(f string) error { return os.Symlink("fw_ver", f) }), "fw_ver: a symbolic link"},
		{"a directory that is a link out", instead(dev+"ports/1/gids", func(f string) error { return os.Symlink("/", f) }), "gids: a symbolic link"},
		{"a failure", put(dev+"fw_ver.err", "EIO\nmore"), "fw_ver: EIO"},
		{"a failure without a word", put(dev+"fw_ver.err", "\x00\n"), "fw_ver: ?"},
		{"a port that is none", put(dev+"ports/x/state", "4: ACTIVE"), `"x" is no port`},
		{"a port too high", put(dev+"ports/99999/state", "4: ACTIVE"), `"99999" is no port`},
		{"a GID that is none", put(dev+"ports/1/gids/0", "fe80::1"), "gids/0"},
		{"an index that is none", put(dev+"ports/1/gids/first", "x"), `"first" is no index`},
		{"a cut answer", put("t0/nl/rdma/dev.json", `[{"name":"mlx5_0"`), "rdma/dev: the answer"},
		{"an answer of another type", put("t0/nl/rdma/link.json", `[1,2]`), "rdma/link: the answer"},
		{"a device twice", put("t0/nl/rdma/dev.json", `[{"name":"mlx5_0"},{"name":"mlx5_0"}]`), "listed twice"},
		{"a device with a path", put("t0/nl/rdma/dev.json", `[{"name":"../../etc"}]`), "odd name"},
		{"a device with an escape", put("t0/nl/rdma/dev.json", `[{"name":"\u001b[2J"}]`), ""},
		{"a name with a control character", put("t0/root/sys/class/infiniband/x\x1b[2J/node_type", "1: CA"), "odd name"},
		{"a name that is no UTF-8", put("t0/root/sys/class/infiniband/x\xff/node_type", "1: CA"), "odd name"},
		{"nesting", put("t0/nl/rdma/link.json", strings.Repeat("[", 100_000)), "rdma/link"},
		{"an answer that is a link", instead("t0/nl/rdma/dev.json", func(f string) error { return os.Symlink(outside, f) }), "rdma/dev: a symbolic link"},
		{"an odd program", put("t0/app.json", `{"pid":"x"}`), "app: app.json"},
		{"an odd switch", put("t0/switch/show_pfc_counters.txt", "Port Rx PFC0\nEthernet0 1 2 3 4 5 6 7 x\n"), "show_pfc_counters.txt:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, good)
			c.odd(t, dir)
			s := host(t, dir, read.Options{})
			d := s.Device("mlx5_0")
			if d == nil || len(d.Ports) != 1 {
				t.Fatalf("the device is gone: %v", s.Devices)
			}
			known(t, "state", d.Ports[0].State, 4)
			known(t, "counter", d.Ports[0].Counters.Get("port_rcv_errors"), 5)
			got := problems(s)
			if c.want == "" {
				for _, g := range got {
					if strings.ContainsRune(g, 0x1b) {
						t.Errorf("an escape reaches the reader: %q", g)
					}
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("problems %q, want one with %q", got, c.want)
			}
			if strings.ContainsAny(strings.Join(got, ""), "\x00\x1b\x07") {
				t.Errorf("control characters in %q", got)
			}
		})
	}
}

// A whole directory that cannot be listed is one problem as well.
func TestDirectoryThatFails(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, good+"ports/1/hw_counters ! EIO\n")
	s := host(t, dir, read.Options{})
	if got := problems(s); len(got) != 1 || !strings.HasSuffix(got[0], "hw_counters: EIO") {
		t.Errorf("problems %q", got)
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString(good)
	for i := range 1500 {
		fmt.Fprintf(&b, "ports/1/counters/c%04d = x\n", i)
	}
	plant(t, dir, b.String())
	s := host(t, dir, read.Options{})
	last := s.Problems[len(s.Problems)-1]
	if len(s.Problems) != 1001 || last.Why != "500 more problems are not listed" {
		t.Errorf("%d problems, the last %v", len(s.Problems), last)
	}
}

func TestExcludedDeviceIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, good+"fw_ver ! EIO\n")
	s := host(t, dir, read.Options{Exclude: []string{"mlx5_0"}})
	if len(s.Devices) != 0 || len(s.Problems) != 0 {
		t.Errorf("devices %v, problems %q", s.Devices, problems(s))
	}
}

func TestOpenDirSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, file, content, want string
	}{
		{"nothing", "", "", "neither meta.json nor t0"},
		{"no instant", "meta.json", `{"version":1}`, "no directory t0"},
		{"another version", "meta.json", `{"version":7}`, "version 7"},
		{"cut", "meta.json", `{"version":1,`, "meta.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.file != "" {
				write(t, filepath.Join(dir, c.file), c.content)
			}
			if c.name == "another version" {
				write(t, filepath.Join(dir, "t0/root/x"), "")
			}
			_, err := source.OpenDir(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
		})
	}
}
