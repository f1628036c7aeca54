package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/internal/need"
)

// Space is one network namespace.
type Space struct {
	t  testing.TB
	fd int
}

// New makes a namespace with its loopback up. The test's end removes it.
func New(t testing.TB) *Space {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		need.Missing(t, "needs iproute2: %v", err)
	}
	s := &Space{t: t, fd: -1}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		s.fd = fd
		return err
	})
	if errors.Is(err, unix.EPERM) {
		need.Missing(t, "may not make a network namespace: run as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(s.fd) })
	// An IPv6 address, the link-local one too, can be used at once.
	s.Run("ip link set lo up", "sysctl -qw net.ipv6.conf.default.accept_dad=0")
	return s
}

// onThread runs f on a thread that ends with it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is of no more use
		done <- f()
	}()
	return <-done
}

// Do runs f in the namespace. Goroutines that f starts are not in it. f must not
// end the test.
func (s *Space) Do(f func()) {
	s.t.Helper()
	if err := onThread(func() error {
		if err := unix.Setns(s.fd, unix.CLONE_NEWNET); err != nil {
			return err
		}
		f()
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// Run runs commands in the namespace; one that fails ends the test.
func (s *Space) Run(commands ...string) {
	s.t.Helper()
	for _, c := range commands {
		if out, err := s.Output(strings.Fields(c)...); err != nil {
			s.t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
}

// Output runs one command and returns all that it printed.
func (s *Space) Output(args ...string) (string, error) {
	s.t.Helper()
	var out []byte
	var err error
	s.Do(func() { out, err = exec.Command(args[0], args[1:]...).CombinedOutput() })
	return string(out), err
}

// Start starts a command in the namespace; the caller waits for it.
func (s *Space) Start(cmd *exec.Cmd) error {
	var err error
	s.Do(func() { err = cmd.Start() })
	return err
}

// Join lays a veth pair between two namespaces, both ends up.
func Join(a *Space, nameA string, b *Space, nameB string) {
	a.t.Helper()
	a.Run(fmt.Sprintf("ip link add %s type veth peer name %s netns /proc/%d/fd/%d", nameA, nameB, os.Getpid(), b.fd),
		"ip link set "+nameA+" up")
	b.Run("ip link set " + nameB + " up")
	a.awaitLinkLocal(nameA)
	b.awaitLinkLocal(nameB)
}

// awaitLinkLocal waits for the address that the kernel gives an interface in its
// own time, up to a second after it came up. Without it IPv6 asks nobody for a
// neighbour.
func (s *Space) awaitLinkLocal(name string) {
	s.t.Helper()
	for range 1000 {
		if out, err := s.Output("ip", "-6", "addr", "show", "dev", name, "scope", "link", "-tentative"); err == nil && out != "" {
			return
		}
	}
	s.t.Logf("%s has no link-local address yet", name)
}
