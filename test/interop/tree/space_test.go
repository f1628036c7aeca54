//go:build linux

package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/internal/need"
)

// patience is how long a program may take: the machine may be busy.
const patience = time.Minute

// refusals are files of every host's sysfs that refuse to be read, by errno: the speed of a loopback interface, and
// a file that can only be written.
var refusals = map[string]string{"EINVAL": "class/net/lo/speed", "EACCES": "bus/platform/drivers_probe"}

// inside runs f on a thread in a mount namespace of its own, where the tree is at /sys and, if it is not empty, dev at
// /dev. Programs that f starts are in it, goroutines are not. The namespace goes with the thread. f must not end the
// test.
func inside(t *testing.T, p planted, dev string, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this
		err := mounts(p, dev)
		if err == nil {
			f()
		}
		done <- err
	}()
	err := <-done
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		need.Missing(t, "may not make a mount namespace: run as root (%v)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mounts makes the namespace of the calling thread.
func mounts(p planted, dev string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for name, errno := range p.refused {
		from, ok := refusals[errno]
		if !ok {
			return fmt.Errorf("%s: no file here is refused with %s", name, errno)
		}
		to := filepath.Join(p.dir, name)
		if err := unix.Mount("/sys/"+from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s over %s: %w", from, to, err)
		}
	}
	if err := unix.Mount(p.dir, "/sys", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s over /sys: %w", p.dir, err)
	}
	if dev != "" {
		if err := unix.Mount(dev, "/dev", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s over /dev: %w", dev, err)
		}
	}
	return nil
}

// result is what a command line printed and how it ended.
type result struct {
	out, err string
	status   int
}

// run runs a program of Debian's.
func run(t *testing.T, line string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	words := strings.Fields(line)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: %v", line, err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// host reads what is at /sys.
func host(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	live, err := source.NewLive(source.LiveConfig{})
	if err != nil {
		t.Error(err)
		return &snapshot.Snapshot{}
	}
	defer live.Close()
	return read.Host(live, read.Options{NoSystem: true, NoResources: true, NoNetdevs: true, NoApp: true})
}

// listed is a listing of ours as a result.
func listed(out []byte, err error) result {
	r := result{out: string(out)}
	if e := (*listing.Error)(nil); errors.As(err, &e) {
		r.err, r.status = e.Text+"\n", e.Status
	} else if err != nil {
		r.err, r.status = err.Error()+"\n", -1
	}
	return r
}
