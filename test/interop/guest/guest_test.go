//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// TestGuests proves the harness without our stack: what Linux says to Linux.
func TestGuests(t *testing.T) {
	judge.Need(t, "rxe", "perftest", "rdma-core", "tcpdump")
	n := guest.ForTest(t, guest.Config{N: 2})
	server, client := n.Guest(1), n.Guest(2)

	t.Run("a command gives output, errors and exit status", func(t *testing.T) { testRun(t, server) })
	t.Run("a command is killed when its context ends", func(t *testing.T) { testKill(t, server) })
	t.Run("files come back as they went", func(t *testing.T) { testFiles(t, server) })
	t.Run("host programs and sockets are inside the namespace", func(t *testing.T) { testHost(t, n) })
	t.Run("pingpong", func(t *testing.T) { testPingpong(t, n, server, client) })
	t.Run("perftest", func(t *testing.T) { testPerftest(t, server, client) })
	for i := 1; i <= n.Len(); i++ {
		log, err := n.Guest(i).KernelLog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bad := guest.KernelAlarms(log); len(bad) > 0 {
			t.Errorf("the kernel of guest %d complains:\n%s", i, strings.Join(bad, "\n"))
		}
	}
}

func testRun(t *testing.T, g *guest.Guest) {
	r, err := g.Run(t.Context(), "echo out; echo err >&2; exit 7")
	if err != nil {
		t.Fatal(err)
	}
	if r.Stdout != "out\n" || r.Stderr != "err\n" || r.Exit != 7 || r.Err() == nil {
		t.Errorf("result is %+v", r)
	}
	p, err := g.Background(t.Context(), "cat; echo end; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("through\n")); err != nil {
		t.Fatal(err)
	}
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitOutput(t.Context(), "end"); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r, err = p.Wait(t.Context())
	if err != nil || r.Signal != syscall.SIGTERM || r.Stdout != "through\nend\n" {
		t.Errorf("result is %+v, %v", r, err)
	}
}

func testKill(t *testing.T, g *guest.Guest) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := g.Background(ctx, "echo begun; sleep 987")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitOutput(ctx, "begun"); err != nil {
		t.Fatal(err)
	}
	cancel()
	r, err := p.Wait(ctx)
	if !errors.Is(err, context.Canceled) || r.Signal != syscall.SIGKILL {
		t.Errorf("result is %+v, %v", r, err)
	}
	if err := g.Until(t.Context(), "! pgrep -f 'sleep 98[7]'"); err != nil {
		t.Errorf("the command is still there: %v", err)
	}
}

func testFiles(t *testing.T, g *guest.Guest) {
	want := bytes.Repeat([]byte("0123456789abcde\n"), 20_000)
	if err := g.WriteFile(t.Context(), "/tmp/file", want, 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := g.ReadFile(t.Context(), "/tmp/file")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if _, err := g.ReadFile(t.Context(), "/no/such"); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("reading a file that is not there: %v", err)
	}
}

func testHost(t *testing.T, n *guest.Net) {
	out, err := n.CommandAsNobody(t.Context(), "sh", "-c", "id -u; cat /proc/net/dev").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "65534\n") || !strings.Contains(string(out), guest.Bridge) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat("/sys/class/net/" + guest.Bridge); err == nil {
		t.Error("the bridge is in the machine's own namespace")
	}
}

func testPingpong(t *testing.T, n *guest.Net, server, client *guest.Guest) {
	recording, err := n.Capture(t.Context(), t.TempDir()+"/pingpong.pcap", server.Tap(), "udp port 4791")
	if err != nil {
		t.Fatal(err)
	}
	before := counters(t, server)
	between(t, server, client, "ibv_rc_pingpong -d rxe0 -g 1 -n 100", 18515)
	after := counters(t, server)
	for _, name := range []string{"sent_pkts", "rcvd_pkts"} {
		if after[name] < before[name]+100 {
			t.Errorf("%s went from %d to %d in 100 exchanges", name, before[name], after[name])
		}
	}
	if err := recording.Stop(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(recording.File())
	if err != nil {
		t.Fatal(err)
	}
	// 100 messages of 4096 bytes each way and their headers.
	if info.Size() < 2*100*4096 {
		t.Errorf("the recording has %d bytes", info.Size())
	}
}

func testPerftest(t *testing.T, server, client *guest.Guest) {
	r := between(t, server, client, "ib_write_bw -d rxe0 -x 1 -n 50 -s 65536 -p 18516", 18516)
	if !strings.Contains(r.Stdout, "65536") {
		t.Errorf("no figure for 65536 bytes:\n%s", r.Stdout)
	}
}

// between runs a program as server in one guest and, with the server's address added, as client in the other.
func between(t *testing.T, server, client *guest.Guest, command string, port uint16) guest.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	p, err := server.Background(ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := server.WaitListening(ctx, port); err != nil {
		t.Fatal(err)
	}
	r, err := client.Run(ctx, command+" "+server.IP4().String())
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		out, errs := p.Output()
		t.Fatalf("client: %v\nserver:\n%s%s", err, out, errs)
	}
	s, err := p.Wait(ctx)
	if err == nil {
		err = s.Err()
	}
	if err != nil {
		t.Fatalf("server: %v", err)
	}
	return r
}

func counters(t *testing.T, g *guest.Guest) map[string]uint64 {
	t.Helper()
	c, err := g.RxeCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
