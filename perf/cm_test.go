package perf

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// Every test runs through the connection manager between two ends of ours, and
// data are compared.
func TestOverCM(t *testing.T) {
	for _, c := range []struct {
		conn    ib.QPType
		verb    handshake.Verb
		latency bool
		qps     int
		both    bool
	}{
		{ib.RC, handshake.Write, false, 3, false},
		{ib.RC, handshake.Read, false, 1, false},
		{ib.RC, handshake.Send, false, 2, true},
		{ib.RC, handshake.Atomic, false, 1, false},
		{ib.RC, handshake.Write, true, 1, false},
		{ib.RC, handshake.Send, true, 1, false},
		{ib.UC, handshake.Write, false, 2, false},
		{ib.UC, handshake.Send, true, 1, false},
		{ib.UD, handshake.Send, false, 3, true},
		{ib.UD, handshake.Send, true, 1, false},
	} {
		server, client := cmPair(t, c.verb, c.latency)
		for _, cfg := range []*Config{server, client} {
			cfg.Conn, cfg.QPs, cfg.Both, cfg.Iters = c.conn, c.qps, c.both, 20
		}
		name := client.Name() + " " + c.conn.String()
		so, co, err := runCM(t, *server, *client)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !co.Header.CM || co.Verified == nil || !*co.Verified || so.Verified == nil || !*so.Verified {
			t.Errorf("%s: verified %v and %v of %d bytes", name, co.Verified, so.Verified, co.Compared)
		}
	}
}

// cmPair configures two ends that are joined in memory.
func cmPair(t *testing.T, v handshake.Verb, latency bool) (server, client *Config) {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	end := func(addr string, l link.Link) *Config {
		c := Defaults(v, latency)
		c.CM, c.Device, c.Iters = true, addr, 20
		c.Open = func(cfg verbs.Config) (*verbs.Device, error) {
			cfg.Link, cfg.Netdev, cfg.Addr = l, "", netip.MustParseAddr(addr)
			return verbs.Open(cfg)
		}
		return &c
	}
	server, client = end("10.9.0.1", x), end("10.9.0.2", y)
	client.Peer = "10.9.0.1"
	return server, client
}

// runCM runs both ends. The client dials until the server listens.
func runCM(t *testing.T, server, client Config) (so, co *Outcome, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listening := make(chan struct{})
	server.Out = waitFor{listening}
	errs := make(chan error, 1)
	go func() {
		var err error
		so, err = Run(ctx, server)
		errs <- err
	}()
	select {
	case <-listening:
	case err := <-errs:
		return so, co, err
	}
	co, err = Run(ctx, client)
	return so, co, errors.Join(err, <-errs)
}

// waitFor closes a channel at the first line that is printed.
type waitFor struct{ first chan struct{} }

func (w waitFor) Write(b []byte) (int, error) {
	select {
	case <-w.first:
	default:
		close(w.first)
	}
	return len(b), nil
}

func TestOverCMNobodyListens(t *testing.T) {
	server, client := cmPair(t, handshake.Write, false)
	dev, err := server.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m, err := rdmacm.Open(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := Run(t.Context(), *client); !errors.Is(err, rdmacm.ErrRefused) {
		t.Errorf("%v", err)
	}
}

func TestOverCMUsage(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"READ on UC":       func(c *Config) { c.Verb, c.Conn = handshake.Read, ib.UC },
		"TOS without -R":   func(c *Config) { c.CM, c.TOS = false, 8 },
		"retries too many": func(c *Config) { c.RetryCount = 8 },
	} {
		c := Defaults(handshake.Write, false)
		c.CM = true
		edit(&c)
		if err := c.Complete(); !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
