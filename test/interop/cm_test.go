//go:build linux

package interop

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// cmPeerProgram is cmpeer, built once, where everybody may run it.
var cmPeerProgram = sync.OnceValues(func() (string, error) {
	ours, err := ourProgram() // it makes the directory
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(ours), "cmpeer")
	cmd := exec.Command("go", "build", "-o", path, "github.com/verbena-rdma/verbena/test/interop/cmpeer")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmpeer: %w\n%s", err, out)
	}
	return path, nil
})

// conversation is a program of rdmacm-utils with our end. %s is a host.
type conversation struct {
	name                       string
	theirServer, theirClient   string
	ourServer, ourClient       string
	port                       int
	bind                       string // option for the address of their server
	endless                    bool   // their server does not end
	theirsIsDone, clientIsDone string // in their output; empty: exit status 0 is enough
}

func conversations() []conversation {
	return []conversation{
		{
			name: "rping", bind: "-a", theirServer: "rping -s -V -C 10 -S 100", theirClient: "rping -c -V -C 10 -S 100 -a %s",
			ourServer: "rping -port 7174 -count 10", ourClient: "rping -count 10 -size 100", port: 7174,
		},
		{
			name: "rdma_client and rdma_server", bind: "-s", theirServer: "rdma_server", theirClient: "rdma_client -s %s",
			ourServer: "rdma", ourClient: "rdma", port: 7471, theirsIsDone: "end 0", clientIsDone: "end 0",
		},
		{
			name: "ucmatose", bind: "-b", theirServer: "ucmatose -c 4", theirClient: "ucmatose -c 4 -s %s",
			ourServer: "cmatose -conns 4", ourClient: "cmatose -conns 4", port: 7471,
			theirsIsDone: "return status 0", clientIsDone: "return status 0",
		},
		{
			name: "udaddy", bind: "-b", theirServer: "udaddy", theirClient: "udaddy -s %s", ourServer: "udaddy -port 7174", ourClient: "udaddy", port: 7174,
			theirsIsDone: "return status 0", clientIsDone: "return status 0",
		},
		{
			name: "cmtime", bind: "-b", theirServer: "cmtime", theirClient: "cmtime -c 50 -s %s", ourServer: "cmtime -conns 50", ourClient: "cmtime -conns 50",
			port: 7471, endless: true, clientIsDone: "disconnect",
		},
	}
}

// TestConnectionManager holds package rdmacm against Linux' rdma_cm: each
// program of rdmacm-utils as server and as client. Our end runs without any
// privilege.
func TestConnectionManager(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	b := &cmBench{net: network(t)}
	var err error
	if b.program, err = cmPeerProgram(); err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations() {
		for _, fam := range allFamilies {
			if fam == ipv6 && c.name == "cmtime" {
				continue // the same as with IPv4, and slow
			}
			t.Run(fmt.Sprintf("%s/%v/they serve", c.name, fam), func(t *testing.T) { b.theyServe(t, c, fam) })
			t.Run(fmt.Sprintf("%s/%v/we serve", c.name, fam), func(t *testing.T) { b.weServe(t, c, fam) })
		}
	}
	complaints(t, b.net.Guest(1))
}

// TestRTUOfLinuxIsLost: Linux has sent its RTU, which does not arrive, and then
// data: those establish the connection (IBA vol.1 12.9.7.2).
func TestRTUOfLinuxIsLost(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	program, err := cmPeerProgram()
	if err != nil {
		t.Fatal(err)
	}
	b := &cmBench{net: network(t), program: program}
	for _, c := range conversations()[:2] { // those whose client speaks first
		t.Run(c.name, func(t *testing.T) {
			out := b.weServe(t, c, ipv4, "-lose-rtu")
			if !strings.Contains(out, "established, with RTU: false") {
				t.Errorf("ours:\n%s", out)
			}
		})
	}
}

type cmBench struct {
	net      *guest.Net
	program  string
	ethernet bool // on an Ethernet device
}

// command is our end: without any privilege, unless its device wants one.
func (b *cmBench) command(ctx context.Context, args ...string) *exec.Cmd {
	if b.ethernet {
		return b.net.Command(ctx, b.program, append(args, "-ethernet")...)
	}
	return b.net.CommandAsNobody(ctx, b.program, args...)
}

// ours runs our end and returns what it printed.
func (b *cmBench) ours(ctx context.Context, args string) (string, error) {
	cmd := b.command(ctx, append(strings.Fields(args), "-dev", guest.Bridge)...)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *cmBench) theyServe(t *testing.T, c conversation, fam family) {
	ctx := within(t, patience)
	g := b.net.Guest(1)
	server := c.theirServer
	if fam == ipv6 {
		server += " " + c.bind + " ::" // without, they listen at IPv4 alone and refuse others
	}
	s, err := g.Background(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	// It is there when the kernel knows of its listener.
	if err := g.Until(ctx, fmt.Sprintf("rdma resource show cm_id | grep -q 'state LISTEN.*src-addr.*:%d'", c.port)); err != nil {
		t.Fatal(err)
	}
	out, err := b.ours(ctx, fmt.Sprintf("%s -connect %s", c.ourClient, hostPort(fam.guest(g).String(), c.port)))
	if err != nil {
		o, e := s.Output()
		t.Fatalf("ours: %v\n%s\ntheirs printed:\n%s%s", err, out, o, e)
	}
	if c.endless {
		return
	}
	r, err := s.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil || !strings.Contains(r.Stdout, c.theirsIsDone) {
		t.Errorf("theirs: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
}

// weServe returns what our end printed.
func (b *cmBench) weServe(t *testing.T, c conversation, fam family, more ...string) string {
	ctx := within(t, patience)
	type result struct {
		out string
		err error
	}
	pr, pw := newLines()
	done := make(chan result, 1)
	cmd := b.command(ctx, append(append(strings.Fields(c.ourServer), "-dev", guest.Bridge), more...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := cmd.Wait()
		pw.end()
		done <- result{pw.text(), err}
	}()
	if err := pr.await(ctx, "listening at "); err != nil {
		t.Fatalf("ours does not listen: %v\n%s", err, pw.text())
	}
	host := guest.HostIP4.String()
	if fam == ipv6 {
		host = guest.HostIP6.String()
	}
	r, err := b.net.Guest(1).Run(ctx, fmt.Sprintf(c.theirClient, host))
	if err == nil {
		err = r.Err()
	}
	if err != nil || !strings.Contains(r.Stdout, c.clientIsDone) {
		t.Errorf("theirs: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
	if t.Failed() {
		_ = cmd.Process.Kill() // it waits for what will not come
	}
	got := <-done
	if got.err != nil {
		t.Errorf("ours: %v\n%s", got.err, got.out)
	}
	return got.out
}

// hostPort joins an address and a port.
func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}
