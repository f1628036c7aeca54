//go:build linux

// Command guestnet keeps a network of rdma_rxe guests for trials by hand.
//
//	guestnet up 2                     boot two guests; returns when they are ready, they stay until "down"
//	guestnet run 1 'ibv_devinfo'      run a shell command in guest 1
//	guestnet host ping -c1 10.77.0.11 run a program on the host side, inside the namespace, as root
//	guestnet down
//
// The environment variable VERBENA_NET names the network (default: the user's name), so that several people can
// have one each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest"
)

const usage = `usage: guestnet VERB
  up [N]              boot N guests (default 1) and keep them
  down                stop them and remove the network
  run I COMMAND       run a shell command in guest I (exit status is the command's)
  host PROGRAM ARG…   run a program on the host side (10.77.0.1, fd00:77::1), as root
  nobody PROGRAM ARG… the same as user 65534 without privileges
  put I FILE PATH     copy a file of the host into guest I
  get I PATH          print a file of guest I
  counters I          print the counters of rxe0 in guest I
  capture DEV FILE [FILTER…]  record frames on vbr0 or vtapI until interrupted
Guest I is 10.77.0.1I and fd00:77::1I, device eth0, MTU 4200, RDMA device rxe0.
VERBENA_NET names the network, so that several can be up at once.`

// usageError answers a command line that is none.
type usageError struct{}

func (usageError) Error() string { return usage }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := verb(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "guestnet:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func network() string {
	if name := os.Getenv("VERBENA_NET"); name != "" {
		return name
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "hand"
}

func verb(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Println(usage)
		return 0, nil
	}
	switch args[0] {
	case "up":
		return 0, up(ctx, args[1:])
	case "keep": // what "up" leaves behind
		return 0, keep(ctx, args[1:])
	case "down":
		return 0, down(ctx)
	}
	n, err := guest.Attach(network())
	if err != nil {
		return 1, err
	}
	switch args[0] {
	case "host", "nobody":
		return host(ctx, n, args[0], args[1:])
	case "capture":
		return 0, capture(ctx, n, args[1:])
	}
	if len(args) < 2 {
		return 2, usageError{}
	}
	i, err := strconv.Atoi(args[1])
	if err != nil || i < 1 || i > n.Len() {
		return 2, fmt.Errorf("guest %q: there are guests 1 to %d", args[1], n.Len())
	}
	return inGuest(ctx, n.Guest(i), args[0], args[2:])
}

func inGuest(ctx context.Context, g *guest.Guest, verb string, args []string) (int, error) {
	switch {
	case verb == "run" && len(args) > 0:
		return run(ctx, g, strings.Join(args, " "))
	case verb == "put" && len(args) == 2:
		data, err := os.ReadFile(args[0])
		if err != nil {
			return 1, err
		}
		return 0, g.WriteFile(ctx, args[1], data, 0o755)
	case verb == "get" && len(args) == 1:
		data, err := g.ReadFile(ctx, args[0])
		if err == nil {
			_, err = os.Stdout.Write(data)
		}
		return 0, err
	case verb == "counters" && len(args) == 0:
		return run(ctx, g, "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep . *")
	}
	return 2, usageError{}
}

// run shows the output as it comes. An interrupt kills the command.
func run(ctx context.Context, g *guest.Guest, command string) (int, error) {
	p, err := g.Background(ctx, command)
	if err != nil {
		return 1, err
	}
	if err := p.CloseInput(); err != nil {
		return 1, err
	}
	p.Copy(os.Stdout, os.Stderr)
	r, err := p.Wait(ctx)
	return max(r.Exit, 0), err
}

func host(ctx context.Context, n *guest.Net, verb string, args []string) (int, error) {
	if len(args) == 0 {
		return 2, usageError{}
	}
	prepare := n.Command
	if verb == "nobody" {
		prepare = n.CommandAsNobody
	}
	cmd := prepare(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func capture(ctx context.Context, n *guest.Net, args []string) error {
	if len(args) < 2 {
		return usageError{}
	}
	c, err := n.Capture(ctx, args[1], args[0], strings.Join(args[2:], " "))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "recording; interrupt to end")
	<-ctx.Done()
	return c.Stop()
}

// logFile is where the keeper of this network writes.
func logFile() string { return filepath.Join(os.TempDir(), "guestnet-"+network()+".log") }

func pidFile() string { return filepath.Join(os.TempDir(), "guestnet-"+network()+".pid") }

// up starts the keeper in a session of its own and returns when it says that the guests are ready.
func up(ctx context.Context, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// "go run" removes its program at the end, which the keeper outlives: the open file is enough for it.
	log, err := os.Create(logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"keep"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	said, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	text, _ := os.ReadFile(logFile()) // for the reader only
	fmt.Print(string(text))
	if string(said) != "ready" {
		return fmt.Errorf("network %q did not come up, see %s", network(), logFile())
	}
	return cmd.Process.Release()
}

// keep holds a network until it is told to end.
func keep(ctx context.Context, args []string) error {
	count := 1
	if len(args) > 0 {
		var err error
		if count, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
	}
	syscall.CloseOnExec(3) // or QEMU would hold it open
	parent := os.NewFile(3, "parent")
	n, err := guest.Start(ctx, guest.Config{Name: network(), N: count, Logf: func(format string, args ...any) {
		fmt.Printf(format+"\n", args...)
	}})
	if err != nil {
		return err
	}
	defer n.Close()
	if err := os.WriteFile(pidFile(), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return err
	}
	defer os.Remove(pidFile())
	fmt.Printf("network %q is up: %d guests in namespace %s\n", network(), n.Len(), n.Namespace())
	if _, err := parent.WriteString("ready"); err != nil {
		return err
	}
	parent.Close()
	<-ctx.Done()
	return n.Close()
}

func down(ctx context.Context) error {
	if _, err := guest.Attach(network()); err != nil {
		return err
	}
	text, err := os.ReadFile(pidFile())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := guest.Attach(network()); err != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
