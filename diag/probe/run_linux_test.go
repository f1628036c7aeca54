package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/internal/freeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far starts a listener on an address of the loopback.
func far(t *testing.T, cfg ListenConfig, addr string) Config {
	t.Helper()
	cfg.Addrs = []netip.Addr{netip.MustParseAddr(addr)}
	cfg.Port, cfg.RoCEPort = uint16(freeport.Get(t)), uint16(freeport.Get(t))
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("listener: %v", err)
		}
	})
	return Config{Port: cfg.Port, RoCEPort: cfg.RoCEPort, Interval: 100 * time.Microsecond, Source: netip.MustParseAddr("127.0.78.1"), Timeout: 10 * time.Second}
}

func TestLoopback(t *testing.T) {
	for _, mode := range []CaptureMode{CaptureAuto, CaptureNever} {
		cfg := far(t, ListenConfig{Capture: mode, Version: "v"}, "127.0.78.2")
		cfg.Capture = mode
		rs, err := Run(t.Context(), cfg, []string{"127.0.78.2", "127.0.78.2"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rs {
			r := &rs[i]
			if r.Status != OK || r.Forward.Verdict != Open || r.Reverse.Verdict != Open || r.RoCEMTU != 4096 || r.There.Version != "v" || len(r.RTT) != 4 || r.RTT[3].N != 25 {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestNobodyListens(t *testing.T) {
	rs, err := Run(t.Context(), Config{Port: uint16(freeport.Get(t)), RoCEPort: uint16(freeport.Get(t))}, []string{"127.0.78.2", "0.0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rs {
		if rs[i].Status != Unknown || rs[i].Error == "" || len(rs[i].Findings) != 1 || strings.Contains(rs[i].Error, "\n") {
			t.Errorf("%+v", rs[i])
		}
	}
}

func TestInterrupt(t *testing.T) {
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	cfg.Count, cfg.Interval = 150, 100*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(100*time.Millisecond, cancel)
	defer stop.Stop()
	begin := time.Now()
	if _, err := Run(ctx, cfg, []string{"127.0.78.2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("ended after %v", d) // all of it takes 120 s
	}
}

// peer is a control connection made by hand.
func peer(t *testing.T, cfg Config) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.78.1")}}
	c, err := d.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.78.2"), cfg.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func hello(t *testing.T, c net.Conn) token {
	t.Helper()
	if err := writeFrame(c, request{Op: "hello", Version: protocol}, 0); err != nil {
		t.Fatal(err)
	}
	b, err := readFrame(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseResponse(b)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := parseToken(r.Token)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// A listener tells strangers what is wrong, if anything, and goes on.
func TestHostilePeers(t *testing.T) {
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	frame := func(s string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
	}
	for _, words := range [][]byte{
		nil, []byte("GET / HTTP/1.0\r\n\r\n"),
		{0xFF, 0xFF, 0xFF, 0xFF},
		{0, 0, 0, 9, 'x'},
		frame("{"), frame(`{"op":"clock"}`),
		frame(`{"op":"hello","version":2}`), frame(`{"op":"send","ports":[50000],"probes":[{"size":9000}]}`), bytes.Repeat([]byte{0}, 1<<16),
		append(frame(`{"op":"hello","version":1}`), frame(`{"op":"hello","version":1}`)...),
	} {
		c := peer(t, cfg)
		_, _ = c.Write(words)
		_ = c.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(io.LimitReader(c, 1<<20))
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			t.Errorf("%.20q: the listener keeps the connection", words)
		}
		if len(b) > 4096 {
			t.Errorf("%.20q: %d bytes in answer", words, len(b))
		}
		_ = c.Close()
	}
	rs, err := Run(t.Context(), cfg, []string{"127.0.78.2"})
	if err != nil || rs[0].Status != OK {
		t.Errorf("after that: %v, %+v", err, rs)
	}
}

// One peer does not take all sessions.
func TestSessionsAreBounded(t *testing.T) {
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	for range maxPerPeer {
		hello(t, peer(t, cfg))
	}
	c := peer(t, cfg)
	b, err := readFrame(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseResponse(b); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("the fifth session: %v", err)
	}
}
