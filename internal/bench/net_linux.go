package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieWithParent ends the child should this process die without a word.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// ownNetwork gives the child a network namespace, which ends with it.
func ownNetwork(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET }

// mayMakeNetworks reports why this process cannot make network namespaces, ""
// if it can.
func mayMakeNetworks() string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	return ""
}

// sharedPage is memory that both children of a pair see, for counters beside
// the network.
func sharedPage() (*os.File, error) {
	fd, err := unix.MemfdCreate("verbena-bench", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "shared page")
	return f, f.Truncate(int64(os.Getpagesize()))
}

// mapSharedPage maps the page in a child.
func mapSharedPage() (*[8]uint64, error) {
	b, err := unix.Mmap(3, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return (*[8]uint64)(unsafe.Pointer(&b[0])), nil // for the life of the child
}

// processCPU returns the processor time, user and system, of this process.
func processCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// pin lets all threads of a process, and those that they start, run on one
// processor only; on all of them for a negative one.
func pin(pid, cpu int) error {
	var set unix.CPUSet
	for i := range runtime.NumCPU() {
		if cpu < 0 || i == cpu {
			set.Set(i)
		}
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return os.NewSyscallError("sched_setaffinity", err)
		}
	}
	return nil
}
