package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const searchPath = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// boot is process 1. It does not return.
func boot() {
	os.Setenv("PATH", searchPath)
	os.Setenv("HOME", "/root")
	if err := setUp(); err != nil {
		fmt.Println(markFailed+":", err)
		powerOff()
	}
	server := exec.Command("/proc/self/exe")
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		fmt.Println(markFailed+":", err)
		powerOff()
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.ECHILD) || pid == server.Process.Pid {
			fmt.Printf("%s: the command server ended (status %#x, %v)\n", markFailed, status, err)
			powerOff()
		}
	}
}

func powerOff() {
	unix.Sync()
	// An error leaves process 1 to exit, which panics the kernel and ends the machine as well.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	os.Exit(1)
}

func setUp() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"devtmpfs", "/dev"},
		{"devpts", "/dev/pts"},
		{"tmpfs", "/dev/shm"},
		{"tmpfs", "/tmp"},
		{"tmpfs", "/run"},
		{"debugfs", "/sys/kernel/debug"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil && m.kind != "debugfs" && m.kind != "devtmpfs" {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.dir, err)
		}
	}
	if err := os.Chmod("/tmp", 0o1777); err != nil {
		return err
	}
	if err := loadModules("/etc/verbena/modules"); err != nil {
		return err
	}
	arg, err := kernelArgs("/proc/cmdline")
	if err != nil {
		return err
	}
	if err := bringUp(arg); err != nil {
		return err
	}
	return makeNodes()
}

// loadModules inserts the modules listed in file, one path a line, dependencies first. A line that begins with "-"
// is a module whose failure is no matter (an accelerated CRC on a processor without the instruction).
func loadModules(file string) error {
	list, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		path, optional := strings.CutPrefix(strings.TrimSpace(line), "-")
		if path == "" {
			continue
		}
		if err := loadModule(path); err != nil && !optional {
			return fmt.Errorf("load module %s: %w", path, err)
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if filepath.Ext(path) != ".ko" {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	if err := unix.FinitModule(int(f.Fd()), "", flags); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// kernelArgs returns the "verbena.KEY=VALUE" arguments of the kernel's command line.
func kernelArgs(file string) (map[string]string, error) {
	line, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	arg := map[string]string{}
	for word := range strings.FieldsSeq(string(line)) {
		if kv, ok := strings.CutPrefix(word, "verbena."); ok {
			k, v, _ := strings.Cut(kv, "=")
			arg[k] = v
		}
	}
	return arg, nil
}

// bringUp configures lo, eth0 and rxe0.
func bringUp(arg map[string]string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := os.Stat("/sys/class/net/eth0"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("no network device eth0 a minute after its driver was loaded")
		}
		time.Sleep(20 * time.Millisecond)
	}
	// The usual queue drops packets that have waited: a guest on a busy host would lose some of almost every test.
	// Losses are for the tests to make.
	if err := os.WriteFile("/proc/sys/net/core/default_qdisc", []byte("pfifo_fast"), 0o644); err != nil {
		return err
	}
	// Addresses are ours alone: duplicate detection would only keep them unusable for the first second.
	for _, dev := range []string{"all", "default", "eth0"} {
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+dev+"/accept_dad", []byte("0"), 0o644)
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+dev+"/accept_ra", []byte("0"), 0o644)
	}
	steps := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "set", "eth0", "txqueuelen", "20000", "mtu", arg["mtu"]},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "addr", "add", arg["ip4"], "dev", "eth0"},
		{"ip", "addr", "add", arg["ip6"], "dev", "eth0", "nodad"},
	}
	if arg["rxe"] != "" {
		steps = append(steps, []string{"rdma", "link", "add", arg["rxe"], "type", "rxe", "netdev", "eth0"})
	}
	for _, s := range steps {
		if out, err := exec.Command(s[0], s[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(s, " "), err, out)
		}
	}
	name := arg["name"]
	if name == "" {
		return nil
	}
	return unix.Sethostname([]byte(name))
}

// makeNodes makes the character devices that udev would: devtmpfs makes some of them, depending on the kernel.
func makeNodes() error {
	if err := os.MkdirAll("/dev/infiniband", 0o755); err != nil {
		return err
	}
	var files []string
	for _, pattern := range []string{
		"/sys/class/infiniband_verbs/uverbs*/dev", "/sys/class/infiniband_mad/*/dev", "/sys/class/misc/rdma_cm/dev",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	for _, f := range files {
		node := "/dev/infiniband/" + filepath.Base(filepath.Dir(f))
		if _, err := os.Stat(node); err == nil {
			continue
		}
		number, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		a, b, _ := strings.Cut(strings.TrimSpace(string(number)), ":")
		major, err1 := strconv.ParseUint(a, 10, 32)
		minor, err2 := strconv.ParseUint(b, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("device number in %s: %w", f, err)
		}
		if err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil {
			return fmt.Errorf("mknod %s: %w", node, err)
		}
	}
	return nil
}
