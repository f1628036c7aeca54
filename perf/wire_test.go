package perf

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/internal/freeport"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/verbs"
)

func oneLineError(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("%s: not one line: %q", what, err)
	}
}

func TestNobodyThere(t *testing.T) {
	c := Defaults(handshake.Write, false)
	c.Peer, c.Port = "127.0.0.1", freeport.Get(t)
	_, err := Run(t.Context(), c)
	oneLineError(t, "no server", err, "connection refused", "-p")
	c.Peer = "[::ffff:127.0.0.1]"
	_, err = Run(t.Context(), c)
	oneLineError(t, "no server", err, "connection refused", "-p")
	c.Peer = "no-such-host.invalid"
	_, err = Run(t.Context(), c)
	oneLineError(t, "no host", err, "no-such-host.invalid")
}

func TestPortTaken(t *testing.T) {
	needLoopback(t)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := Defaults(handshake.Write, false)
	s.Port, s.Device = l.Addr().(*net.TCPAddr).Port, serverAddr
	_, err = Run(t.Context(), s)
	oneLineError(t, "port taken", err, "-p")
}

// TestForeignPeers connects programs that are no peers to a server.
func TestForeignPeers(t *testing.T) {
	needLoopback(t)
	for name, say := range map[string]string{
		"silence":     "",
		"a browser":   "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"old":         "5.60\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"half a line": "6.06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00@5\x000000:0001",
		"a pingpong":  "0000:000030:a7489a:00000000000000000000ffff0a4d000c\x00",
	} {
		s := Defaults(handshake.Write, false)
		s.Port, s.Device = freeport.Get(t), serverAddr
		w := &ready{ch: make(chan struct{})}
		waiting := w.ch
		s.Out = w
		done := make(chan error)
		go func() {
			_, err := Run(t.Context(), s)
			done <- err
		}()
		<-waiting
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(s.Port)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(say))
		c.Close()
		oneLineError(t, name, <-done)
	}
}

func itoa(n int) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

func TestInterruptEndsEveryWait(t *testing.T) {
	needLoopback(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := Defaults(handshake.Send, false)
	s.Port, s.Device = freeport.Get(t), serverAddr
	w := &ready{ch: make(chan struct{})}
	waiting := w.ch
	s.Out = w
	done := make(chan error)
	go func() {
		_, err := Run(ctx, s)
		done <- err
	}()
	<-waiting
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(s.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWireDeadline(t *testing.T) {
	a, b := net.Pipe()
	w := newWire(a)
	defer b.Close()
	defer w.Close()
	w.within(time.Nanosecond)
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if w.gone() || w.waiting() {
		t.Error("a silent peer is neither gone nor waiting")
	}
}

func TestWhichDevice(t *testing.T) {
	addr := netip.MustParseAddr
	lo, lo2 := addr("127.0.0.1"), addr("127.0.0.2")
	for _, tc := range []struct {
		name          string
		index         bool
		local, remote netip.Addr
		server        bool
		want          verbs.Config
	}{
		{"10.0.0.1", false, lo, lo, false, verbs.Config{Addr: addr("10.0.0.1")}},
		{"vrb_eth7", false, lo, lo, false, verbs.Config{Netdev: "eth7"}},
		{"eth7", true, lo, lo, true, verbs.Config{Netdev: "eth7"}},
		{"", false, addr("10.9.8.7"), addr("10.9.8.6"), false, verbs.Config{Addr: addr("10.9.8.7")}},
		{"", false, lo, lo, true, verbs.Config{Addr: lo}},
		{"", false, lo, lo, false, verbs.Config{Addr: lo2}},
		{"", true, lo2, lo, false, verbs.Config{Addr: lo2}},
	} {
		got, err := deviceConfig(tc.name, tc.index, tc.local, tc.remote, tc.server)
		if err != nil || got.Addr != tc.want.Addr || got.Netdev != tc.want.Netdev {
			t.Errorf("%+v: got %v %q, %v", tc, got.Addr, got.Netdev, err)
		}
	}
	if _, err := deviceConfig("", false, netip.Addr{}, netip.Addr{}, true); err == nil {
		t.Error("no device and no connection: no error")
	}
}

func TestPatternFindsEveryByte(t *testing.T) {
	b := make([]byte, 37)
	fill(b, 3, 64)
	var c comparison
	if c.check(b, 3, 64); c.bad != 0 || c.compared != 37 {
		t.Fatalf("%+v", c)
	}
	for i := range b {
		b[i] ^= 0x10
		c = comparison{}
		if c.check(b, 3, 64); c.bad != 1 || !strings.Contains(c.detail, "byte "+itoa(64+i)+":") {
			t.Errorf("byte %d: %+v", i, c)
		}
		b[i] ^= 0x10
	}
	if c = (comparison{}); true {
		if c.check(b, 4, 64); c.bad < 30 {
			t.Errorf("another lane's pattern: %+v", c)
		}
	}
}
