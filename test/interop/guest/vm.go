//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// vm is one QEMU process.
type vm struct {
	cmd     *exec.Cmd
	console *console
	exited  chan struct{} // closed when QEMU has ended and was waited for
	kill    sync.Once
}

// boot starts the guest and returns when it takes commands. A try that fails or is late is repeated.
func (g *Guest) boot(ctx context.Context, cfg Config, k kernel, image string) error {
	var errs []error
	for try := 1; try <= cfg.BootTries; try++ {
		err := g.bootOnce(ctx, cfg, k, image, try)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("guest %d, boot %d of %d: %w", g.index, try, cfg.BootTries, err))
		cfg.Logf("%v", errs[len(errs)-1])
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (g *Guest) bootOnce(ctx context.Context, cfg Config, k kernel, image string, try int) error {
	began := time.Now()
	log := filepath.Join(g.net.logDir, fmt.Sprintf("guest%d-boot%d.log", g.index, try))
	m, err := startVM(g.net.ns, g.qemuArgs(cfg, k, image), log)
	if err != nil {
		return err
	}
	late := time.NewTimer(cfg.BootTimeout)
	defer late.Stop()
	select {
	case <-m.console.ready:
	case line := <-m.console.bad:
		err = errors.New(line)
	case <-m.exited:
		err = errors.New("QEMU ended")
	case <-late.C:
		err = fmt.Errorf("not ready after %v", cfg.BootTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		g.setVM(m)
		err = g.reach(ctx, m, began.Add(cfg.BootTimeout))
	}
	if err != nil {
		m.halt()
		return fmt.Errorf("%w; the console %s ends:\n%s", err, log, tail(log, 15))
	}
	cfg.Logf("guest %d is ready after %v, console in %s", g.index, time.Since(began).Round(100*time.Millisecond), log)
	return nil
}

// reach waits until the agent answers over the network.
func (g *Guest) reach(ctx context.Context, m *vm, deadline time.Time) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := g.Ping(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
			if time.Now().After(deadline) {
				return fmt.Errorf("ready, but cannot be reached: %w", err)
			}
		case <-m.exited:
			return errors.New("QEMU ended after boot")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (g *Guest) qemuArgs(cfg Config, k kernel, image string) []string {
	arg := []string{
		"console=ttyS0", "quiet", "panic=-1", "no_timer_check", // without the last a busy host makes the kernel panic
		fmt.Sprintf("verbena.name=guest%d", g.index),
		fmt.Sprintf("verbena.ip4=%s/24", g.IP4()),
		fmt.Sprintf("verbena.ip6=%s/64", g.IP6()),
		fmt.Sprintf("verbena.mtu=%d", cfg.MTU),
	}
	if !cfg.NoRxe {
		arg = append(arg, "verbena.rxe="+RxeDevice)
	}
	if cfg.KernelArgs != "" {
		arg = append(arg, cfg.KernelArgs)
	}
	return []string{
		"-name", fmt.Sprintf("%s-guest%d", g.net.ns.name, g.index),
		"-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max",
		"-smp", fmt.Sprint(cfg.CPUs), "-m", fmt.Sprint(cfg.MemoryMiB),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot",
		"-serial", "file:/dev/stdout",
		"-kernel", k.image, "-initrd", image, "-append", strings.Join(arg, " "),
		"-netdev", fmt.Sprintf("tap,id=n0,ifname=%s,script=no,downscript=no", g.Tap()),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=n0,mac=%s,host_mtu=%d,romfile=", g.MAC(), cfg.MTU),
	}
}

func startVM(ns *namespace, args []string, log string) (*vm, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// Not the caller's context: a guest lives until it is halted.
	m := &vm{cmd: ns.command(context.Background(), "qemu-system-x86_64", args...), exited: make(chan struct{})}
	m.cmd.Stdout, m.cmd.Stderr = w, w
	if m.console, err = watchConsole(r, log); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	err = m.cmd.Start()
	w.Close()
	if err != nil {
		<-m.console.ended
		r.Close()
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	go func() {
		defer close(m.exited)
		_ = m.cmd.Wait() // how it ended is in the console log
		<-m.console.ended
		r.Close()
	}()
	return m, nil
}

// halt ends QEMU and waits for it. There is nothing in a guest to save.
func (m *vm) halt() {
	m.kill.Do(func() { _ = m.cmd.Process.Kill() })
	<-m.exited
}
