package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// recipe is part of the cache key: raise it when buildInitramfs changes what it makes.
const recipe = "5"

// agentPackage is the program that becomes the guest's /init.
const agentPackage = "github.com/verbena-rdma/verbena/test/interop/guest/agent"

// guestPackages are the Debian packages all of whose compiled programs a guest has.
var guestPackages = []string{"perftest", "ibverbs-utils", "rdmacm-utils"}

// guestPrograms are further programs of the host's.
var guestPrograms = []string{"/bin/dash", "/usr/bin/rdma", "/bin/ip", "/sbin/tc", "/bin/ss", "/usr/sbin/ibstat"}

// keyPackages are the packages whose versions, with the kernel's, say what an initramfs is made of.
var keyPackages = append([]string{"busybox-static", "iproute2", "infiniband-diags", "ibverbs-providers", "libibverbs1", "librdmacm1", "libc6", "libgcc-s1"}, guestPackages...)

// unusedAge is after how long an initramfs that no start has used is removed from the cache.
const unusedAge = 14 * 24 * time.Hour

// initramfs returns the path of the image for k, building it when the cache has none for these contents. extra are
// paths of more host programs to include.
func initramfs(ctx context.Context, k kernel, extra []string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "initramfs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	agent, err := buildAgent(ctx)
	if err != nil {
		return "", err
	}
	key, err := initramfsKey(ctx, k, agent, extra)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, key+".cpio")
	now := time.Now()
	if err := os.Chtimes(path, now, now); err == nil {
		return path, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name()) // fails once renamed
	defer tmp.Close()
	if err := buildInitramfs(ctx, tmp, k, agent, extra); err != nil {
		return "", fmt.Errorf("build initramfs: %w", err)
	}
	if err := errors.Join(tmp.Close(), os.Rename(tmp.Name(), path)); err != nil {
		return "", err
	}
	removeUnused(dir, now.Add(-unusedAge))
	return path, nil
}

// initramfsKey names the contents: recipe, agent, kernel, package versions, extra programs.
func initramfsKey(ctx context.Context, k kernel, agent []byte, extra []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "recipe %s\nagent %x\nkernel %s\n", recipe, sha256.Sum256(agent), k.release)
	stamp, err := os.ReadFile(filepath.Join(k.root, ".complete"))
	if err != nil {
		return "", err
	}
	h.Write(stamp)
	args := append([]string{"-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"}, keyPackages...)
	versions, err := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	if err != nil {
		return "", fmt.Errorf("%w: versions of %v: %w (%s installs them)", ErrUnavailable, keyPackages, err, installer)
	}
	h.Write(versions)
	for _, path := range extra {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("program for the guest: %w", err)
		}
		fmt.Fprintf(h, "%s %x\n", path, sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil))[:20], nil
}

// buildAgent compiles the agent. The go command's own cache makes this quick when nothing changed.
func buildAgent(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "verbena-agent-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "agent")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, agentPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the guest's agent: %w\n%s", err, msg)
	}
	return os.ReadFile(out)
}

func buildInitramfs(ctx context.Context, f *os.File, k kernel, agent []byte, extra []string) error {
	c := newCPIO(f)
	for _, dir := range []string{"/proc", "/sys", "/dev", "/tmp", "/run", "/root", "/var/tmp", "/usr/local/bin"} {
		c.dir(dir)
	}
	c.program("/init", agent)
	// Not busybox' shell: that runs its own applets before it looks along PATH, and so would never find the real ip and tc.
	c.symlink("/bin/sh", "/bin/dash")
	c.file("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"))
	c.file("/etc/group", []byte("root:x:0:\nnogroup:x:65534:\n"))
	c.file("/etc/hosts", hosts())
	if err := addModules(c, k); err != nil {
		return err
	}
	if err := addPrograms(ctx, c, extra); err != nil {
		return err
	}
	// Last, so that the real programs win over busybox' applets of the same name.
	if err := addBusybox(ctx, c); err != nil {
		return err
	}
	return c.close()
}

func hosts() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "127.0.0.1 localhost\n::1 localhost")
	fmt.Fprintf(&b, "%s host\n%s host\n", HostIP4, HostIP6)
	for i := 1; i <= maxGuests; i++ {
		fmt.Fprintf(&b, "%s guest%d\n%s guest%d\n", guestIP4(i), i, guestIP6(i), i)
	}
	return b.Bytes()
}

func addModules(c *cpioWriter, k kernel) error {
	modules, err := k.modules()
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, m := range modules {
		data, err := os.ReadFile(filepath.Join(k.root, m.path))
		if err != nil {
			return err
		}
		c.file(m.path, data)
		if m.optional {
			list.WriteByte('-')
		}
		fmt.Fprintln(&list, m.path)
	}
	c.file("/etc/verbena/modules", list.Bytes())
	return nil
}

func addPrograms(ctx context.Context, c *cpioWriter, extra []string) error {
	list, err := exec.CommandContext(ctx, "dpkg-query", append([]string{"-L"}, guestPackages...)...).Output()
	if err != nil {
		return fmt.Errorf("%w: files of %v: %w (%s installs them)", ErrUnavailable, guestPackages, err, installer)
	}
	programs := slices.Concat(guestPrograms, extra)
	for path := range strings.FieldsSeq(string(list)) {
		if strings.HasPrefix(path, "/usr/bin/") && isELF(path) {
			programs = append(programs, path)
		}
	}
	// The provider is opened by name at run time; so is libgcc_s, when a thread of rping is cancelled.
	providers, err := filepath.Glob("/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so")
	if err != nil {
		return err
	}
	if len(providers) == 0 {
		return fmt.Errorf("%w: no rxe provider of libibverbs (%s installs it)", ErrUnavailable, installer)
	}
	libgcc, err := findLibrary("libgcc_s.so.1")
	if err != nil {
		return err
	}
	var linked []string
	for _, path := range slices.Concat(programs, providers, []string{libgcc}) {
		c.copyFile(path)
		if isELF(path) {
			linked = append(linked, path)
		}
	}
	libs, err := libraries(linked)
	if err != nil {
		return err
	}
	for _, path := range libs {
		c.copyFile(path)
	}
	c.copyFile("/etc/libibverbs.d/rxe.driver")
	return nil
}

func addBusybox(ctx context.Context, c *cpioWriter) error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, path, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	c.program("/bin/busybox", data)
	for name := range strings.FieldsSeq(string(applets)) {
		if name != "busybox" && name != "init" {
			c.symlink("/bin/"+name, "/bin/busybox")
		}
	}
	return nil
}

// removeUnused deletes images that no start has used since before. Failing to is no failure of the start.
func removeUnused(dir string, before time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
