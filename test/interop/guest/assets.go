package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// installer is what a reader should run when something is missing.
const installer = "scripts/judges.sh"

// ErrUnavailable is matched by every error that says that this machine cannot run guests.
var ErrUnavailable = errors.New("guests are not available on this machine")

// Kernel names one of the kernels that guests can have.
type Kernel int

// The kernels.
const (
	Stable    Kernel = iota // the one of this Debian release
	Backports               // the one backported to it from the next: its rdma_rxe knows FLUSH and ATOMIC WRITE
)

// dir is where the cache keeps such kernels, one directory each.
func (k Kernel) dir() string {
	if k == Backports {
		return "kernel-backports"
	}
	return "kernel"
}

// kernel is a Debian kernel package unpacked in the cache.
type kernel struct {
	root    string // directory with boot/ and lib/modules/
	release string // as uname -r says
	image   string // path of the bzImage
}

// CacheDir returns the directory that holds kernels and initramfs images: $VERBENA_CACHE, or .cache/verbena in the
// home directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("VERBENA_CACHE"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory, set VERBENA_CACHE: %w", err)
	}
	return filepath.Join(home, ".cache", "verbena"), nil
}

// Available reports why guests cannot be started here, or nil. It starts nothing.
func Available() error { return AvailableWith(Stable) }

// AvailableWith is Available for guests with that kernel.
func AvailableWith(which Kernel) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: they need linux/amd64, this is %s/%s", ErrUnavailable, runtime.GOOS, runtime.GOARCH)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: network namespaces and taps need root", ErrUnavailable)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, p := range []string{"qemu-system-x86_64", "ip", "rdma", "busybox", "ib_write_bw", "ibv_devinfo", "rping", "go"} {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: %w (%s installs it)", ErrUnavailable, err, installer)
		}
	}
	_, err := findKernel(which)
	return err
}

// findKernel returns the newest kernel of a kind that the installer completed.
func findKernel(which Kernel) (kernel, error) {
	cache, err := CacheDir()
	if err != nil {
		return kernel{}, err
	}
	stamps, err := filepath.Glob(filepath.Join(cache, which.dir(), "*", ".complete"))
	if err != nil {
		return kernel{}, err
	}
	if len(stamps) == 0 {
		return kernel{}, fmt.Errorf("%w: no kernel under %s (%s unpacks one)", ErrUnavailable, filepath.Join(cache, which.dir()), installer)
	}
	newest := slices.MaxFunc(stamps, func(a, b string) int { return compareVersions(filepath.Dir(a), filepath.Dir(b)) })
	root := filepath.Dir(newest)
	k := kernel{root: root, release: filepath.Base(root)}
	k.image = filepath.Join(root, "boot", "vmlinuz-"+k.release)
	if _, err := os.Stat(k.image); err != nil {
		return kernel{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return k, nil
}

// compareVersions orders "6.1.0-9" before "6.1.0-10": runs of digits count as numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		da, db := leadingDigits(a), leadingDigits(b)
		if da == "" || db == "" {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		na, nb := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
		if len(na) != len(nb) {
			return len(na) - len(nb)
		}
		if c := strings.Compare(na, nb); c != 0 {
			return c
		}
		a, b = a[len(da):], b[len(db):]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
