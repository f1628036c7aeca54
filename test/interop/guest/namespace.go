//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stateDir has a directory for each network, named as its namespace. The process that owns the network holds a lock
// on the file "lock" in it as long as it lives, so a network whose lock is free belongs to nobody and may go.
const stateDir = "/run/verbena/net"

const namespacePrefix = "vrb-"

// ErrBusy is matched by the error of Start when another process owns a network of that name.
var ErrBusy = errors.New("a network of this name is up")

// namespace is a network namespace and our claim on it.
type namespace struct {
	name string // as "ip netns" knows it
	dir  string // its directory below stateDir
	lock *os.File
}

var networks atomic.Int64 // numbers the unnamed networks of this process

// newNamespace removes what dead processes left behind and makes a namespace. An empty name means a unique one.
func newNamespace(ctx context.Context, name string) (*namespace, error) {
	if name == "" {
		name = fmt.Sprintf("%d-%d", os.Getpid(), networks.Add(1))
	}
	if strings.ContainsAny(name, "/ \t\n") || len(name) > 60 {
		return nil, fmt.Errorf("network name %q: up to 60 characters without spaces and slashes", name)
	}
	name = namespacePrefix + name
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return nil, err
	}
	all, err := os.OpenFile(filepath.Join(stateDir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", all.Name(), err)
	}
	removeStale(ctx)
	n := &namespace{name: name, dir: filepath.Join(stateDir, name)}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	if n.lock, err = tryLock(filepath.Join(n.dir, "lock")); err != nil {
		return nil, fmt.Errorf("network %s: %w", name, err)
	}
	_ = n.lock.Truncate(0)
	fmt.Fprintln(n.lock, os.Getpid()) // for people who look
	if err := ipCommand(ctx, "netns", "add", name); err != nil {
		return nil, errors.Join(err, n.remove())
	}
	return n, nil
}

// tryLock opens and locks the file, or returns ErrBusy.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, err
	}
	return f, nil
}

// removeStale removes the networks that nobody owns. What it cannot remove it leaves to the next start.
func removeStale(ctx context.Context) {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		n := &namespace{name: e.Name(), dir: filepath.Join(stateDir, e.Name())}
		if n.lock, err = tryLock(filepath.Join(n.dir, "lock")); err == nil {
			_ = n.remove()
		}
	}
	_ = ctx
}

// remove ends every process in the namespace, removes it and gives up the claim.
func (n *namespace) remove() error {
	// Not the caller's context: what was made is removed even after a cancelled test.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if _, serr := os.Stat(n.path()); serr == nil {
		n.killAll(ctx)
		err = ipCommand(ctx, "netns", "del", n.name)
	}
	return errors.Join(err, os.RemoveAll(n.dir), n.lock.Close())
}

func (n *namespace) path() string { return "/run/netns/" + n.name }

// killAll ends the processes that were started inside the namespace. This process is never among them: only single
// threads of it enter, for the length of a Do.
func (n *namespace) killAll(ctx context.Context) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "pids", n.name).Output()
	if err != nil {
		return
	}
	for word := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// do runs f on a thread that is inside the namespace. Sockets that f opens stay there.
func (n *namespace) do(f func() error) error {
	target, err := os.Open(n.path())
	if err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.name, err)
	}
	defer target.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		defer home.Close()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("enter network namespace %s: %w", n.name, err)
			return
		}
		err = f()
		// Where the way back is barred, the thread stays locked and ends with this goroutine.
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

// command prepares a program that will run inside the namespace and die with this process.
func (n *namespace) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.name, name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// build makes the bridge and n taps.
func (n *namespace) build(ctx context.Context, taps, mtu int) error {
	m := strconv.Itoa(mtu)
	err := n.do(func() error {
		for file, value := range map[string]string{
			"ipv6/conf/all/accept_dad":     "0",
			"ipv6/conf/default/accept_dad": "0",
			"ipv6/conf/default/accept_ra":  "0",
		} {
			if err := os.WriteFile("/proc/sys/net/"+file, []byte(value), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", Bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"},
		{"link", "set", Bridge, "mtu", m, "up"},
		{"addr", "add", HostIP4.String() + "/24", "dev", Bridge},
		{"addr", "add", HostIP6.String() + "/64", "dev", Bridge, "nodad"},
	}
	for i := 1; i <= taps; i++ {
		steps = append(steps,
			[]string{"tuntap", "add", "dev", tapName(i), "mode", "tap"},
			// A guest is slow: what a host program sends in a burst must find room, or unreliable services lose it.
			[]string{"link", "set", tapName(i), "txqueuelen", "60000", "mtu", m, "master", Bridge, "up"})
	}
	for _, s := range steps {
		if err := ipCommand(ctx, append([]string{"-n", n.name}, s...)...); err != nil {
			return err
		}
	}
	return nil
}

func ipCommand(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
