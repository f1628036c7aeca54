//go:build linux

package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// Debian's libibverbs finds the devices in sysfs where the kernel has no netlink for them, and wants the character
// device of each to be there. It then lists them as the directory has them, the kernel's netlink by index: the lines
// are compared, not their order. It knows siw by the number of its driver alone, which only netlink tells.
func TestDevices(t *testing.T) {
	judge.Need(t, "rdma-core")
	for name, text := range trees(t) {
		if name == "siw" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := plant(t, filepath.Join(t.TempDir(), "sys"), text)
			lib := linked(t, p)
			inside(t, p, charDevices(t, p), func() {
				noNetlink(t)
				s := host(t)
				want, got := run(t, "ibv_devices"), listed(listing.Devices(s), nil)
				if diff := cmp.Diff(sortedLines(want.out), sortedLines(got.out)); diff != "" || want.status != 0 {
					t.Errorf("ibv_devices: exit %d (%q): -Debian +ours\n%s", want.status, want.err, diff)
				}
				if n := strings.Count(want.out, "\n") - 2; n != lib {
					t.Errorf("Debian's ibv_devices listed %d of %d devices", n, lib)
				}
				want, got = run(t, "ibv_devinfo -l"), listed(listing.DevInfo(s, listing.DevInfoOptions{List: true}))
				want.out, got.out = sortedLines(want.out), sortedLines(got.out)
				same(t, "ibv_devinfo -l", want, got)
			})
		})
	}
}

// sortedLines has the lines but for the first two in order, or for the first where the text begins with a number.
func sortedLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	head := 2
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		head = 1
	}
	slices.Sort(lines[min(head, len(lines)):])
	return strings.Join(lines, "")
}

// linked returns how many devices have a character device in the tree.
func linked(t *testing.T, p planted) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(p.dir, "class/infiniband_verbs/uverbs*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// charDevices makes a directory for /dev with the character devices of a tree, which nothing is behind.
func charDevices(t *testing.T, p planted) string {
	t.Helper()
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "infiniband"))
	mknod := func(name string, major, minor uint32) {
		if err := unix.Mknod(filepath.Join(dir, name), unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
			t.Fatalf("mknod %s: %v", name, err)
		}
	}
	mknod("null", 1, 3)
	mknod("urandom", 1, 9)
	for i := range linked(t, p) {
		name := "uverbs" + strconv.Itoa(i)
		b, err := os.ReadFile(filepath.Join(p.dir, "class/infiniband_verbs", name, "dev"))
		if err != nil {
			t.Fatal(err)
		}
		_, minor, _ := strings.Cut(strings.TrimSpace(string(b)), ":")
		n, err := strconv.ParseUint(minor, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		mknod("infiniband/"+name, 231, uint32(n))
	}
	return dir
}
