//go:build linux

package interop

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest"
)

// patience is how long one exchange with a guest may take. A guest is emulated, and the machine may be busy.
const patience = 6 * time.Minute

// shared is the network of all tests.
var shared struct {
	once sync.Once
	net  *guest.Net
	err  error
	log  strings.Builder
	dir  string // for files that nobody may read and write too
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.net != nil {
		if err := shared.net.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "remove guests:", err)
			code = max(code, 1)
		}
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// network returns the network, booted at the first call. A guest that has died fails the test that notices it.
func network(t *testing.T) *guest.Net {
	t.Helper()
	shared.once.Do(func() {
		if name := os.Getenv("VERBENA_NET"); name != "" {
			shared.net, shared.err = guest.Attach(name)
			return
		}
		var mu sync.Mutex
		shared.net, shared.err = guest.Start(context.Background(), guest.Config{Logf: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&shared.log, format+"\n", args...)
		}})
	})
	if shared.err != nil {
		t.Fatalf("start guests: %v\n%s", shared.err, shared.log.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			keepConsole(t, shared.net.Guest(1))
		}
	})
	return shared.net
}

// keepConsole keeps what the guest's kernel printed beside the other artifacts of a failed test.
func keepConsole(t *testing.T, g *guest.Guest) {
	if path := g.ConsoleLog(); path != "" {
		if text, err := os.ReadFile(path); err == nil {
			_ = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(path)), text, 0o644)
		}
	}
	if log, err := g.KernelLog(context.Background()); err == nil {
		lines := strings.Split(strings.TrimSpace(log), "\n")
		t.Logf("the kernel of the guest said last:\n%s", strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
}

// seed is the seed of everything that is drawn by lot.
func seed(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("VERBENA_INTEROP_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("VERBENA_INTEROP_SEED: %v", err)
		}
		return n
	}
	return 1
}

// full reports whether the full matrices are wanted.
func full() bool { return os.Getenv("VERBENA_INTEROP") == "full" }

// family is the kind of GID that an exchange uses.
type family int

const (
	ipv4 family = 4
	ipv6 family = 6
)

func (f family) String() string { return fmt.Sprintf("IPv%d", int(f)) }

// guest is the address of a guest.
func (f family) guest(g *guest.Guest) netip.Addr {
	if f == ipv6 {
		return g.IP6()
	}
	return g.IP4()
}

// guestGIDs are the rows of the shared guest's GID table by family, read once.
var guestGIDs = sync.OnceValues(func() (map[family]int, error) { return readGIDs(shared.net.Guest(1)) })

func readGIDs(g *guest.Guest) (map[family]int, error) {
	r, err := g.Run(context.Background(), "cd /sys/class/infiniband/"+guest.RxeDevice+"/ports/1/gids && grep . *")
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return nil, err
	}
	rows := map[family]int{}
	for line := range strings.Lines(r.Stdout) {
		index, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("GID table: %q: %w", line, err)
		}
		i, err := strconv.Atoi(index)
		if err != nil {
			return nil, fmt.Errorf("GID table: %q: %w", line, err)
		}
		switch addr.Unmap() {
		case g.IP4():
			rows[ipv4] = i
		case g.IP6():
			rows[ipv6] = i
		}
	}
	if len(rows) != 2 {
		return nil, fmt.Errorf("the guest's GID table has %d of its 2 addresses:\n%s", len(rows), r.Stdout)
	}
	return rows, nil
}

// guestGID is the row of the guest's GID table for a family.
func guestGID(t *testing.T, f family) int {
	t.Helper()
	network(t)
	rows, err := guestGIDs()
	if err != nil {
		t.Fatal(err)
	}
	return rows[f]
}
