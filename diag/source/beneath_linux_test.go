package source

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// both opens a directory twice: as it is read where the kernel has openat2, and as
// elsewhere.
func both(t *testing.T, dir string) (fast, slow *tree) {
	t.Helper()
	for _, to := range []**tree{&fast, &slow} {
		tr, err := openTree(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		*to = tr
	}
	if fast.fast == nil {
		t.Fatal("this kernel has no openat2")
	}
	slow.fast.close()
	slow.fast = nil
	return fast, slow
}

// same asks both trees everything about a name.
func same(t *testing.T, fast, slow *tree, name string) {
	t.Helper()
	say := func(tr *tree) string {
		var b strings.Builder
		for _, limit := range []int{10, 600, 5000} {
			text, err := tr.readFile(name, limit)
			fmt.Fprintf(&b, "file of at most %d: %q %v\n", limit, text, err)
		}
		entries, err := tr.readDir(name)
		fmt.Fprintf(&b, "entries %v\n", err)
		for _, e := range entries {
			fi, err := e.Info()
			fmt.Fprintf(&b, "%s %v\n", e.Name(), err == nil && fi.Name() == e.Name())
		}
		target, err := tr.readLink(name)
		fmt.Fprintf(&b, "link %q %v\n", target, err)
		return b.String()
	}
	if a, b := say(fast), say(slow); a != b {
		t.Errorf("%s:\n%s\nby os.Root:\n%s", name, a, b)
	}
}

// Reading with openat2 gives what reading with os.Root gives, of everything that can
// stand in a tree, and no way leads out of it.
func TestBeneathIsAsRoot(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, n int) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", n)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int{0, 1, 9, 10, 11, 511, 512, 513, 599, 600, 601, 4096, 5000, 5001}
	for _, n := range sizes {
		write(fmt.Sprintf("a/f%d", n), n)
	}
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"in": "a/f9", "a/up": "../a/f9", "dir": "a", "a/b/far": "../../a/b/../f9", "out": "../secret", "a/out": "../../secret", "abs": filepath.Join(dir, "a/f9"),
		"etc": "/etc/passwd", "loop": "loop2", "loop2": "loop", "dangling": "none", "outdir": "..", "chain": "in", "pipelink": "pipe",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o600, 1<<8|3); err != nil && !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	t.Chdir(dir) // the name of a socket is short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fast, slow := both(t, dir)
	names := []string{
		".", "a", "a/b", "none", "none/x", "a/f9/x", "in", "a/up", "dir", "dir/f9", "dir/b/far", "a/b/far", "out", "a/out", "abs", "etc", "loop",
		"dangling", "outdir", "outdir/secret", "chain", "pipe", "pipelink", "null", "socket", "", "/", "/etc/passwd", "../secret", "a/../a", "a/", "\x00", strings.Repeat("n", 300),
	}
	for _, n := range sizes {
		names = append(names, fmt.Sprintf("a/f%d", n))
	}
	for _, n := range names {
		same(t, fast, slow, n)
	}
	for _, n := range []string{"out", "a/out", "abs", "etc", "outdir/secret"} {
		if b, err := fast.readFile(n, 100); !errors.Is(err, errOut) {
			t.Errorf("%s: %q, %v", n, b, err)
		}
	}
}

// The same of the kernel's own trees, where there is no look before an open.
func TestBeneathTheKernelIsAsRoot(t *testing.T) {
	for root, names := range map[string][]string{
		"/sys": {
			"class/net", "class/net/lo", "class/net/lo/mtu", "class/net/lo/speed", "class/net/lo/statistics", "class/net/lo/statistics/collisions",
			"class/net/lo/uevent", "class/net/lo/none", "kernel/mm/hugepages", "devices/system/cpu/online", "kernel/uevent_helper", "module",
		},
		"/proc": {"cmdline", "modules", "net/dev_mcast", "self/limits", "self/comm", "thread-self/comm", "sys/kernel/osrelease", "self/cwd", "self/exe", "self/root/etc", "1/comm"},
	} {
		fast, slow := both(t, root)
		if !fast.fast.kernel {
			t.Errorf("%s is not known to be the kernel's", root)
		}
		for _, n := range names {
			same(t, fast, slow, n)
		}
	}
}

// No descriptor stays open, whatever becomes of a read.
func TestBeneathLeavesNothingOpen(t *testing.T) {
	fast, _ := both(t, "/sys")
	count := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	before := count()
	for range 100 {
		for _, n := range []string{"class/net/lo/mtu", "class/net/lo/speed", "class/net", "class/net/lo", "none"} {
			_, _ = fast.readFile(n, 10)
			_, _ = fast.readFile(n, 1)
			_, _ = fast.readDir(n)
			_, _ = fast.readLink(n)
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
