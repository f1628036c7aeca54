package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/internal/freeport"
	"github.com/verbena-rdma/verbena/perf/handshake"
)

// Addresses of this host that no other package's tests use: their UDP port 4791
// belongs to one process at a time.
const (
	serverAddr = "127.0.5.1"
	clientAddr = "127.0.5.2"
)

// needLoopback skips a test that needs more loopback addresses than one.
func needLoopback(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs two loopback addresses")
	}
}

// ready is an io.Writer that tells when a server waits.
type ready struct {
	bytes.Buffer
	ch chan struct{}
}

func (r *ready) Write(b []byte) (int, error) {
	if r.ch != nil && bytes.Contains(b, []byte("Waiting for client")) {
		close(r.ch)
		r.ch = nil
	}
	return r.Buffer.Write(b)
}

type end struct {
	o     *Outcome
	err   error
	out   string
	notes string
}

// pairOf runs a server and a client on an address of this host each.
func pairOf(t *testing.T, c, s Config) (client, server end) {
	t.Helper()
	needLoopback(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c.Port = freeport.Get(t)
	s.Port = c.Port
	c.Peer, c.Device, s.Device = serverAddr, clientAddr, serverAddr
	sw := &ready{ch: make(chan struct{})}
	var cw, cn, sn bytes.Buffer
	s.Out, s.Notes, c.Out, c.Notes = sw, &sn, &cw, &cn
	waiting := sw.ch
	done := make(chan end)
	go func() {
		o, err := Run(ctx, s)
		done <- end{o, err, sw.String(), sn.String()}
	}()
	select {
	case <-waiting:
	case server = <-done:
		t.Fatalf("server: %v", server.err)
	}
	o, err := Run(ctx, c)
	if err != nil {
		cancelSoon := time.AfterFunc(5*time.Second, cancel)
		defer cancelSoon.Stop()
	}
	server = <-done
	return end{o, err, cw.String(), cn.String()}, server
}

func TestEveryProgramAgainstItself(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	type variant struct {
		name string
		set  func(*Config)
	}
	conn := func(q ib.QPType) func(*Config) { return func(c *Config) { c.Conn = q } }
	for _, v := range []handshake.Verb{handshake.Write, handshake.Read, handshake.Send, handshake.Atomic} {
		for _, lat := range []bool{false, true} {
			vs := []variant{{"plain", func(*Config) {}}}
			if !lat {
				vs = append(vs, variant{"both", func(c *Config) { c.Both = true }}, variant{"4 QPs", func(c *Config) { c.QPs = 4 }},
					variant{"list", func(c *Config) { c.PostList = 5 }})
			}
			if v != handshake.Atomic {
				vs = append(vs, variant{"33 bytes, MTU 256", func(c *Config) { c.Size, c.MTU = 33, 256 }},
					variant{"5000 bytes, MTU 1024", func(c *Config) { c.Size, c.MTU = 5000, 1024 }},
					variant{"all", func(c *Config) { c.All, c.Iters = true, 5 }})
			} else {
				vs = append(vs, variant{"swap", func(c *Config) { c.CompareSwap = true }})
			}
			if v == handshake.Write || v == handshake.Send {
				vs = append(vs, variant{"UC", conn(ib.UC)})
			}
			if v == handshake.Send {
				vs = append(vs, variant{"SRQ", func(c *Config) { c.SRQ = true }},
					variant{"SRQ, UC", func(c *Config) { c.SRQ, c.Conn = true, ib.UC }},
					variant{"SRQ, UD", func(c *Config) { c.SRQ, c.Conn, c.Size, c.SizeSet = true, ib.UD, 700, true }},
					variant{"SRQ, all", func(c *Config) { c.SRQ, c.All, c.Iters = true, true, 5 }})
				if !lat {
					vs = append(vs, variant{"SRQ, both, 4 QPs, few receives", func(c *Config) { c.SRQ, c.Both, c.QPs, c.RxDepth = true, true, 4, 10 }})
				}
				vs = append(vs, variant{"UD", func(c *Config) { c.Conn, c.Size, c.SizeSet = ib.UD, 700, true }})
			}
			if v != handshake.Write {
				vs = append(vs, variant{"events", func(c *Config) { c.Events = true }})
			}
			for _, x := range vs {
				cfg := Defaults(v, lat)
				cfg.Iters = 40
				x.set(&cfg)
				t.Run(fmt.Sprintf("%s/%s", cfg.Name(), x.name), func(t *testing.T) {
					c, s := pairOf(t, cfg, cfg)
					if c.err != nil || s.err != nil {
						t.Fatalf("client: %v\nserver: %v\n%s%s", c.err, s.err, c.out, s.out)
					}
					check(t, &cfg, c, s)
				})
			}
		}
	}
}

func check(t *testing.T, cfg *Config, c, s end) {
	t.Helper()
	for name, e := range map[string]end{"client": c, "server": s} {
		if e.o.Verified == nil || !*e.o.Verified || e.o.Compared == 0 && e.o.Lost == 0 {
			t.Errorf("%s: data not verified: %+v", name, e.o)
		}
		if !strings.Contains(e.out, "address: LID 0000 QPN 0x") {
			t.Errorf("%s printed no address:\n%s", name, e.out)
		}
		for _, r := range e.o.Bandwidth {
			if r.BytesPerSec <= 0 || r.MsgPerSec <= 0 || r.PeakBytesPerSec < 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		for _, r := range e.o.Latency {
			if r.Min <= 0 || r.Average < r.Min || r.P99 < r.Typical {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	if cfg.Latency && len(c.o.Latency) != len(cfg.sizes()) && !cfg.All {
		t.Errorf("client has %d results", len(c.o.Latency))
	}
	if !cfg.Latency && c.o.Bandwidth[0].PeakBytesPerSec == 0 {
		t.Errorf("no peak: %+v", c.o.Bandwidth[0])
	}
	if cfg.All && len(c.o.Bandwidth)+len(c.o.Latency) != 23 {
		t.Errorf("%d sizes", len(c.o.Bandwidth)+len(c.o.Latency))
	}
}

func TestOverATime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second each")
	}
	for _, v := range []handshake.Verb{handshake.Write, handshake.Send} {
		for _, lat := range []bool{false, true} {
			cfg := Defaults(v, lat)
			cfg.Duration, cfg.Margin, cfg.Size = time.Second, 0, 1024
			t.Run(cfg.Name(), func(t *testing.T) {
				c, s := pairOf(t, cfg, cfg)
				if c.err != nil || s.err != nil {
					t.Fatalf("client: %v\nserver: %v", c.err, s.err)
				}
				if lat && (c.o.Latency[0].Average <= 0 || c.o.Latency[0].PerSec <= 0) {
					t.Errorf("%+v", c.o.Latency[0])
				}
				if !lat && c.o.Bandwidth[0].PeakBytesPerSec < c.o.Bandwidth[0].BytesPerSec {
					t.Errorf("peak below average: %+v", c.o.Bandwidth[0])
				}
			})
		}
	}
}

func TestMismatches(t *testing.T) {
	base := Defaults(handshake.Write, false)
	base.Iters = 20
	for name, set := range map[string]func(c, s *Config){
		"-s": func(_, s *Config) { s.Size = 8 },
		"-q": func(_, s *Config) { s.QPs = 2 },
		"-b": func(_, s *Config) { s.Both = true },
		"-n": func(_, s *Config) { s.Iters = 30 },
		"-c": func(_, s *Config) { s.Conn = ib.UC },
	} {
		c, s := base, base
		set(&c, &s)
		ce, se := pairOf(t, c, s)
		for end, err := range map[string]error{"client": ce.err, "server": se.err} {
			if !errors.Is(err, handshake.ErrOptions) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %v", name, end, err)
			}
		}
	}
}

func TestVerificationIsByConsent(t *testing.T) {
	c := Defaults(handshake.Write, false)
	c.Iters = 20
	s := c
	s.NoVerify = true
	ce, se := pairOf(t, c, s)
	if ce.err != nil || se.err != nil || ce.o.Verified != nil || se.o.Verified != nil {
		t.Errorf("%+v %+v", ce, se)
	}
}

func TestLimits(t *testing.T) {
	c := Defaults(handshake.Write, false)
	c.Iters = 20
	s := c
	c.MinGbps = 1e6
	ce, se := pairOf(t, c, s)
	if !errors.Is(ce.err, ErrLimit) || se.err != nil {
		t.Errorf("client %v, server %v", ce.err, se.err)
	}
	l := Defaults(handshake.Write, true)
	l.Iters = 20
	s = l
	l.MaxLat = time.Nanosecond
	if ce, _ := pairOf(t, l, s); !errors.Is(ce.err, ErrLimit) {
		t.Errorf("client %v", ce.err)
	}
}

func TestPingpongAgainstItself(t *testing.T) {
	needLoopback(t)
	for _, q := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v events %v", q, events), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				s := PingpongDefaults(q)
				s.Port, s.Iters, s.Check, s.Events = freeport.Get(t), 50, true, events
				c := s
				c.Peer, c.Device, s.Device = serverAddr, clientAddr, serverAddr
				type res struct {
					o   *PingpongOutcome
					err error
				}
				done := make(chan res)
				go func() {
					o, err := Pingpong(ctx, s)
					done <- res{o, err}
				}()
				var o *PingpongOutcome
				var err error
				for { // until the server listens
					if o, err = Pingpong(ctx, c); err == nil || !strings.Contains(err.Error(), "refused") || ctx.Err() != nil {
						break
					}
				}
				r := <-done
				if err != nil || r.err != nil {
					t.Fatalf("client: %v, server: %v", err, r.err)
				}
				if r.o.Verified == nil || !*r.o.Verified || o.Bytes != uint64(c.Size*100) {
					t.Errorf("%+v %+v", o, r.o)
				}
			})
		}
	}
}
