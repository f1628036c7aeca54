package read_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// TestMain is also the program that containers run: it takes things away from itself,
// reads its host and prints it.
func TestMain(m *testing.M) {
	lacks := os.Getenv("READ_TEST_LACKS")
	if lacks == "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // what is taken away is taken from this thread
	if err := contained(strings.Split(lacks, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const nobody = 65534

// contained lacks some things and prints the host.
func contained(lacks []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	// As a container has it: sysfs of this network namespace.
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	for _, l := range lacks {
		if err := without(l); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	cfg := source.LiveConfig{App: source.AppConfig{Log: []string{"x"}}}
	cfg.App.PID, _ = strconv.Atoi(os.Getenv("READ_TEST_PID"))
	live, err := source.NewLive(cfg)
	if err != nil {
		return err
	}
	defer live.Close()
	return json.NewEncoder(os.Stdout).Encode(read.Host(live, read.Options{}))
}

func without(what string) error {
	switch what {
	case "nothing":
		return nil
	case "writable sysfs":
		return unix.Mount("", "/sys", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	case "sysfs":
		return unix.Mount("none", "/sys", "tmpfs", 0, "")
	case "proc":
		return unix.Mount("none", "/proc", "tmpfs", 0, "")
	case "others":
		return unix.Mount("proc", "/proc", "proc", 0, "hidepid=2")
	case "CAP_NET_ADMIN":
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		data[0].Permitted &^= 1 << unix.CAP_NET_ADMIN
		return unix.Capset(&head, &data[0])
	case "root":
		// Of this thread only: the others do nothing.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody); errno != 0 {
			return errno
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return errno
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			return errno
		}
		return nil
	}
	return errors.New("no such thing")
}

// inside is the host as a process sees it that lacks some things.
func inside(t *testing.T, pid int, lacks ...string) *snapshot.Snapshot {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "READ_TEST_LACKS="+strings.Join(lacks, ","), "READ_TEST_PID="+strconv.Itoa(pid), "GOCOVERDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("without %q: %v: %s", lacks, err, errs.String())
	}
	var s snapshot.Snapshot
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("without %q: %v: %.200s", lacks, err, out)
	}
	return &s
}

// unreadable wants a reading that was not made, for a reason.
func notReadable[T any](t *testing.T, what string, v snapshot.Value[T], reason string) {
	t.Helper()
	if v.IsKnown() || v.IsZero() || !strings.Contains(v.Why(), reason) {
		t.Errorf("%s is %v, want it not readable: %s", what, v, reason)
	}
}

// TestContainers takes away what containers lack, one thing after the other. Each costs
// what it is needed for, with the reason, and nothing else; nothing of it becomes zero,
// and the snapshot is there.
func TestContainers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to take it away")
	}
	same := func(t *testing.T, s *snapshot.Snapshot) {
		t.Helper()
		lo := s.Netdev("lo")
		if lo == nil {
			t.Fatalf("no loopback interface; problems %q", problems(s))
		}
		known(t, "index of lo", lo.Index, 1)
		known(t, "MTU of lo", lo.MTU, 65536)
		if !s.Routes.IsKnown() || !s.Rules.IsKnown() || !s.Neighbours.IsKnown() {
			t.Errorf("routes %v, rules %v, neighbours %v", s.Routes, s.Rules, s.Neighbours)
		}
	}
	t.Run("nothing", func(t *testing.T) {
		s := inside(t, os.Getpid(), "nothing")
		same(t, s)
		known(t, "process", s.App.PID, os.Getpid())
		if !s.Firewall.NFT.IsKnown() || len(s.Sysctl) == 0 || len(s.SNMP) == 0 {
			t.Errorf("firewall %v, %d settings, %d counters", s.Firewall.NFT, len(s.Sysctl), len(s.SNMP))
		}
	})
	t.Run("root", func(t *testing.T) {
		s := inside(t, 1, "root")
		same(t, s)
		notReadable(t, "firewall", s.Firewall.NFT, "permission denied")
		if s.Firewall.IPTables.IsKnown() || s.Firewall.IP6Tables.IsKnown() {
			t.Errorf("iptables %v and %v", s.Firewall.IPTables, s.Firewall.IP6Tables)
		}
		if s.App == nil || s.App.EnvUnreadable != "permission denied" || s.App.Env != nil {
			t.Errorf("the environment of another's process: %+v", s.App)
		}
		if len(s.Sysctl) == 0 || len(s.SNMP) == 0 {
			t.Errorf("%d settings, %d counters", len(s.Sysctl), len(s.SNMP))
		}
	})
	t.Run("CAP_NET_ADMIN", func(t *testing.T) {
		s := inside(t, os.Getpid(), "CAP_NET_ADMIN")
		same(t, s)
		notReadable(t, "firewall", s.Firewall.NFT, "permission denied")
	})
	t.Run("writable sysfs", func(t *testing.T) {
		a, b := inside(t, os.Getpid(), "nothing"), inside(t, os.Getpid(), "writable sysfs")
		same(t, b)
		if len(a.Netdevs) != len(b.Netdevs) || len(a.Netdev("lo").Statistics) != len(b.Netdev("lo").Statistics) || len(a.HugePages) != len(b.HugePages) {
			t.Errorf("%d and %d interfaces, %d and %d pools of huge pages", len(a.Netdevs), len(b.Netdevs), len(a.HugePages), len(b.HugePages))
		}
	})
	t.Run("sysfs", func(t *testing.T) {
		s := inside(t, os.Getpid(), "sysfs")
		same(t, s)
		const reason = "sysfs is not mounted at /sys"
		notReadable(t, "speed", s.Netdev("lo").SpeedMbps, reason)
		notReadable(t, "virtual", s.Netdev("lo").Virtual, reason)
		if got := strings.Join(problems(s), "\n"); !strings.Contains(got, "sys/class/infiniband: "+reason) || len(s.Problems) > 20 {
			t.Errorf("problems:\n%s", got)
		}
	})
	t.Run("proc", func(t *testing.T) {
		s := inside(t, os.Getpid(), "proc")
		same(t, s)
		const reason = "proc is not mounted at /proc"
		notReadable(t, "host", s.Host, reason)
		notReadable(t, "kernel", s.Kernel, reason)
		notReadable(t, "command line", s.Cmdline, reason)
		notReadable(t, "modules", s.Modules, reason)
		notReadable(t, "iptables", s.Firewall.IPTables, reason)
		if !s.Firewall.NFT.IsKnown() || s.App != nil {
			t.Errorf("firewall %v, program %v", s.Firewall.NFT, s.App)
		}
	})
	t.Run("others", func(t *testing.T) {
		s := inside(t, 1, "others", "root")
		same(t, s)
		if got := strings.Join(problems(s), "\n"); !strings.Contains(got, "app: there is no process 1 that is ours to see: proc hides the processes of others") || s.App != nil {
			t.Errorf("program %v, problems:\n%s", s.App, got)
		}
	})
	t.Run("all", func(t *testing.T) {
		s := inside(t, 1, "sysfs", "proc", "CAP_NET_ADMIN", "root")
		same(t, s)
	})
}
