package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// killedPort is the UDP port of RoCE in these tests.
const killedPort = 14794

// runKilledPeer prints a line for each connection.
func runKilledPeer(to string) error {
	dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.12"), Port: killedPort})
	if err != nil {
		return err
	}
	m, err := rdmacm.Open(dev)
	if err != nil {
		return err
	}
	route, err := m.RouteTo(netip.MustParseAddrPort(to))
	if err != nil {
		return err
	}
	cq, err := dev.CreateCQ(verbs.CQConfig{Depth: 1024})
	if err != nil {
		return err
	}
	pd := dev.AllocPD()
	for {
		q, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 8, MaxRecvWR: 8}})
		if err != nil {
			return err
		}
		if _, err := m.Dial(context.Background(), route, q, rdmacm.Options{}); err != nil {
			return err
		}
		fmt.Println("connected")
	}
}

// Peers that are killed while they connect say nothing more. Who closes the
// connections that are left, and stops waiting for those in the making, has
// nothing left of them.
func TestPeersThatAreKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := newUDPSide(t, "127.0.0.11", killedPort)
	l := b.listen(rdmacm.TCP, 7)
	round := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), killedPeer+"=127.0.0.11:7")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed when it has made some connections, in the middle of others.
		served, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- b.serveKilled(served, l) }()
		seen, buf := 0, make([]byte, 64)
		for seen < 20 {
			n, err := out.Read(buf)
			seen += strings.Count(string(buf[:n]), "\n")
			if err != nil {
				t.Fatalf("the peer has ended after %d connections: %v", seen, err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	round()
	before := take(t, b)
	for range 5 {
		round()
	}
	after := take(t, b)
	t.Logf("before %+v, after %+v", before, after)
	flat(t, before, after)
}

// serveKilled accepts until ctx ends, and then closes what it has.
func (s *side) serveKilled(ctx context.Context, l *rdmacm.Listener) error {
	var conns []*rdmacm.Conn
	var qps []*verbs.QP
	var all error
	for ctx.Err() == nil {
		req, err := l.Next(ctx)
		if err != nil {
			break
		}
		q, err := s.newQP(ib.RC)
		if err != nil {
			return err
		}
		qps = append(qps, q)
		if c, err := req.Accept(ctx, q, rdmacm.Options{}); err == nil {
			conns = append(conns, c)
		}
	}
	for _, c := range conns {
		all = errors.Join(all, c.Close())
	}
	for _, q := range qps {
		all = errors.Join(all, q.Close())
	}
	// What has come and nobody has taken.
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		req, err := l.Next(over)
		if err != nil {
			return all
		}
		if err := req.Reject(nil); err != nil && !errors.Is(err, rdmacm.ErrGone) {
			all = errors.Join(all, err)
		}
	}
}
