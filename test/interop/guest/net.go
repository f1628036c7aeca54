//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Config says what Start makes. The zero value is one guest with an rxe device.
type Config struct {
	// Name of the network, for somebody who wants to Attach to it; empty: a unique one.
	Name string
	// N is the number of guests, 1 to 9; 0 means 1.
	N int
	// MTU of the bridge and of every interface, in bytes; 0 means 4200.
	MTU int
	// CPUs and MemoryMiB of each guest; 0 means 2 and 768.
	CPUs, MemoryMiB int
	// Kernel that the guests run; the zero value is the one of this Debian release.
	Kernel Kernel
	// NoRxe leaves the guests without an rxe device.
	NoRxe bool
	// Programs are paths of further host programs that the guests shall have, with their libraries.
	Programs []string
	// KernelArgs are added to the kernel's command line.
	KernelArgs string
	// LogDir is where console logs are written and kept; empty: a temporary directory that Close removes.
	LogDir string
	// BootTimeout is the time that one try to boot may take; 0 means four minutes.
	BootTimeout time.Duration
	// BootTries is how often a guest's boot is tried; 0 means 3.
	BootTries int
	// Logf, where not nil, hears of progress. It may be called from several goroutines.
	Logf func(format string, args ...any)
}

func (c Config) withDefaults() (Config, error) {
	c.N = orDefault(c.N, 1)
	c.MTU = orDefault(c.MTU, defaultMTU)
	c.CPUs = orDefault(c.CPUs, 2)
	c.MemoryMiB = orDefault(c.MemoryMiB, 768)
	c.BootTimeout = orDefault(c.BootTimeout, 4*time.Minute)
	c.BootTries = orDefault(c.BootTries, 3)
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.N < 1 || c.N > maxGuests {
		return c, fmt.Errorf("guest.Config: N is %d, the limits are 1 and %d", c.N, maxGuests)
	}
	if c.MTU < 1280 || c.MTU > 65521 {
		return c, fmt.Errorf("guest.Config: MTU is %d, the limits are 1280 and 65521", c.MTU)
	}
	return c, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Net is a running network of guests. Its methods are safe for concurrent use.
type Net struct {
	ns      *namespace
	guests  []*Guest
	logDir  string
	rmLogs  bool
	close   sync.Once
	closeFn func() error
}

// Start makes a network and boots its guests. It returns when all of them take commands. The caller must Close it.
// Errors match ErrUnavailable where this machine cannot run guests, and ErrBusy where the name is taken.
func Start(ctx context.Context, cfg Config) (*Net, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := AvailableWith(cfg.Kernel); err != nil {
		return nil, err
	}
	k, err := findKernel(cfg.Kernel)
	if err != nil {
		return nil, err
	}
	image, err := initramfs(ctx, k, cfg.Programs)
	if err != nil {
		return nil, err
	}
	ns, err := newNamespace(ctx, cfg.Name)
	if err != nil {
		return nil, err
	}
	n := &Net{ns: ns, logDir: cfg.LogDir}
	n.closeFn = n.takeDown
	if err := n.bootAll(ctx, cfg, k, image); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Net) bootAll(ctx context.Context, cfg Config, k kernel, image string) error {
	if n.logDir == "" {
		dir, err := os.MkdirTemp("", "verbena-guest-")
		if err != nil {
			return err
		}
		n.logDir, n.rmLogs = dir, true
	}
	if err := os.MkdirAll(n.logDir, 0o755); err != nil {
		return err
	}
	if err := n.ns.build(ctx, cfg.N, cfg.MTU); err != nil {
		return err
	}
	errs := make([]error, cfg.N)
	var wg sync.WaitGroup
	for i := range cfg.N {
		g := newGuest(n, i+1)
		n.guests = append(n.guests, g)
		wg.Go(func() { errs[i] = g.boot(ctx, cfg, k, image) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Attach returns the network of that name, which another process started and keeps. Closing it changes nothing.
func Attach(name string) (*Net, error) {
	ns := &namespace{name: namespacePrefix + name, dir: filepath.Join(stateDir, namespacePrefix+name)}
	if lock, err := tryLock(filepath.Join(ns.dir, "lock")); err == nil {
		lock.Close()
		return nil, fmt.Errorf("network %s: its owner is gone", ns.name)
	} else if !errors.Is(err, ErrBusy) {
		return nil, fmt.Errorf("network %s is not up: %w", ns.name, err)
	}
	n := &Net{ns: ns}
	for i := 1; i <= maxGuests; i++ {
		if ipCommand(context.Background(), "-n", ns.name, "link", "show", tapName(i)) != nil {
			break
		}
		n.guests = append(n.guests, newGuest(n, i))
	}
	n.closeFn = func() error { return nil }
	return n, nil
}

// Close stops the guests, ends every program that runs in the namespace, and removes it. Later calls do nothing.
func (n *Net) Close() error {
	var err error
	n.close.Do(func() { err = n.closeFn() })
	return err
}

func (n *Net) takeDown() error {
	for _, g := range n.guests {
		g.halt()
	}
	err := n.ns.remove()
	if n.rmLogs {
		err = errors.Join(err, os.RemoveAll(n.logDir))
	}
	return err
}

// Guest returns guest i, counted from 1.
func (n *Net) Guest(i int) *Guest { return n.guests[i-1] }

// Len is the number of guests.
func (n *Net) Len() int { return len(n.guests) }

// Namespace is the name of the network namespace, as "ip netns" shows it.
func (n *Net) Namespace() string { return n.ns.name }

// Do runs f on a thread inside the namespace and returns its error. Sockets that f opens stay there after it; f must
// not start goroutines that open more, since those run outside.
func (n *Net) Do(f func() error) error { return n.ns.do(f) }

// Command prepares a host program that will run on the host side of the network, as root. It is killed when ctx ends
// and when this process dies.
func (n *Net) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return n.ns.command(ctx, name, args...)
}

// CommandAsNobody is Command as user and group 65534, for proofs that no privilege is needed. The program's file
// must be readable for everybody, and so must each directory above it.
func (n *Net) CommandAsNobody(ctx context.Context, name string, args ...string) *exec.Cmd {
	return n.ns.command(ctx, "setpriv", append([]string{
		"--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", name,
	}, args...)...)
}
