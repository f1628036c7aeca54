//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest/internal/channel"
)

// ErrGone is matched by errors of commands whose guest has ended.
var ErrGone = errors.New("the guest is gone")

// Guest is one virtual machine. Its methods are safe for concurrent use.
type Guest struct {
	net   *Net
	index int
	mu    sync.Mutex
	vm    *vm // nil in an attached network
}

func newGuest(n *Net, index int) *Guest { return &Guest{net: n, index: index} }

func (g *Guest) setVM(m *vm) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vm = m
}

func (g *Guest) getVM() *vm {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.vm
}

func (g *Guest) halt() {
	if m := g.getVM(); m != nil {
		m.halt()
	}
}

// Index is the guest's number, from 1.
func (g *Guest) Index() int { return g.index }

// IP4 is the address of eth0, in a network of 24 bits.
func (g *Guest) IP4() netip.Addr { return guestIP4(g.index) }

// IP6 is the address of eth0, in a network of 64 bits.
func (g *Guest) IP6() netip.Addr { return guestIP6(g.index) }

// MAC is the hardware address of eth0.
func (g *Guest) MAC() string { return guestMAC(g.index) }

// Tap is the name, inside the namespace, of the interface that is the other end of eth0.
func (g *Guest) Tap() string { return tapName(g.index) }

// ConsoleLog is the path of the file with what the guest's kernel printed; empty in an attached network.
func (g *Guest) ConsoleLog() string {
	if m := g.getVM(); m != nil {
		return m.console.path
	}
	return ""
}

// dial opens a connection to the agent.
func (g *Guest) dial(ctx context.Context) (net.Conn, error) {
	var c net.Conn
	err := g.net.ns.do(func() error {
		var d net.Dialer
		var err error
		// A numeric address: the socket is made on this very thread.
		c, err = d.DialContext(ctx, "tcp", netip.AddrPortFrom(g.IP4(), channel.Port).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("guest %d: %w", g.index, err)
	}
	return c, nil
}

// request carries out a request that is not a command and gives its data to sink, if there is any.
func (g *Guest) request(ctx context.Context, req channel.Request, send []byte, sink func([]byte)) error {
	c, err := g.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	w := channel.NewWriter(c)
	err = w.JSON(channel.KindRequest, req)
	if err == nil && req.Op == channel.OpWrite {
		if _, err = w.Stream(channel.KindData).Write(send); err == nil {
			err = w.Frame(channel.KindData, nil)
		}
	}
	for err == nil {
		var kind channel.Kind
		var p []byte
		kind, p, err = channel.Read(c)
		switch {
		case err != nil:
		case kind == channel.KindDone:
			return doneError(p)
		case sink != nil:
			sink(p)
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// Ping returns nil when the guest takes commands.
func (g *Guest) Ping(ctx context.Context) error {
	return g.wrap("ping", g.request(ctx, channel.Request{Op: channel.OpPing}, nil, nil))
}

// ReadFile returns the contents of a file of the guest.
func (g *Guest) ReadFile(ctx context.Context, path string) ([]byte, error) {
	var data []byte
	err := g.request(ctx, channel.Request{Op: channel.OpRead, Path: path}, nil, func(p []byte) { data = append(data, p...) })
	return data, g.wrap("read "+path, err)
}

// WriteFile makes or replaces a file of the guest.
func (g *Guest) WriteFile(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	req := channel.Request{Op: channel.OpWrite, Path: path, Mode: uint32(perm.Perm())}
	return g.wrap("write "+path, g.request(ctx, req, data, nil))
}

// WaitListening returns once something in the guest listens on the TCP port.
func (g *Guest) WaitListening(ctx context.Context, port uint16) error {
	req := channel.Request{Op: channel.OpListen, Port: port}
	return g.wrap(fmt.Sprintf("wait for a listener on TCP port %d", port), g.request(ctx, req, nil, nil))
}

func (g *Guest) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("guest %d: %s: %w", g.index, what, err)
}

// Until runs a shell command again and again until it exits with 0.
func (g *Guest) Until(ctx context.Context, command string) error {
	for {
		r, err := g.Run(ctx, command+" || { sleep 0.05; false; }")
		if err != nil {
			return err
		}
		if r.Exit == 0 {
			return nil
		}
	}
}

// RxeCounters returns the hardware counters of rxe0, by the names that the kernel has in sysfs: sent_pkts, rcvd_pkts,
// duplicate_request, out_of_seq_request, rcvd_rnr_err, and so on.
func (g *Guest) RxeCounters(ctx context.Context) (map[string]uint64, error) {
	const dir = "/sys/class/infiniband/" + RxeDevice + "/ports/1/hw_counters"
	r, err := g.Run(ctx, "cd "+dir+" && grep . *")
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return nil, err
	}
	counters := map[string]uint64{}
	for line := range strings.Lines(r.Stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			if name == "lifespan" {
				continue
			}
			return nil, fmt.Errorf("guest %d: counter %q: %w", g.index, line, err)
		}
		counters[name] = v
	}
	delete(counters, "lifespan") // a setting, in milliseconds
	return counters, nil
}

// KernelLog returns what the guest's kernel has logged since boot.
func (g *Guest) KernelLog(ctx context.Context) (string, error) {
	r, err := g.Run(ctx, "dmesg")
	if err == nil {
		err = r.Err()
	}
	return r.Stdout, err
}

// kernelAlarms are what a kernel writes when something in it went wrong.
var kernelAlarms = []string{"BUG:", "WARNING:", "Oops", "Call Trace", "general protection", "soft lockup", "hung task", "rcu_sched self-detected", "refcount_t"}

// KernelAlarms returns the lines of a kernel log that tell of a fault in the kernel.
func KernelAlarms(log string) []string {
	var out []string
	for line := range strings.Lines(log) {
		for _, a := range kernelAlarms {
			if strings.Contains(line, a) {
				out = append(out, strings.TrimSpace(line))
				break
			}
		}
	}
	return out
}
