package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/diag/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves until the test ends.
func start(t *testing.T, address string, names ...string) *serve.Server {
	t.Helper()
	s, err := serve.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Allow(names); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func status(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// On loopback only names of this host are answered, so that no page of elsewhere can
// read it through a name of its own.
func TestHostNames(t *testing.T) {
	s := start(t, "127.0.0.1:0")
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "localhost:99": 200, "127.0.0.9:1": 200, "[::1]:80": 200, "me.localhost": 200,
		"evil.example": 403, "127.0.0.1.evil.example": 403, "192.0.2.1": 403,
	} {
		if got := status(t, s.URL(), host); got != want {
			t.Errorf("host %q: status %d, want %d", host, got, want)
		}
	}
	var b strings.Builder
	s.Announce(&b, "test")
	if strings.Contains(b.String(), "warning") {
		t.Errorf("on loopback: %s", b.String())
	}
}

// An address that others reach is said to be one.
func TestNotLoopback(t *testing.T) {
	s := start(t, "0.0.0.0:0")
	var b strings.Builder
	s.Announce(&b, "test")
	if !strings.Contains(b.String(), "no loopback address") {
		t.Errorf("said: %s", b.String())
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL(), "http://"))
	if got := status(t, "http://127.0.0.1:"+port, "any.example"); got != 200 {
		t.Errorf("status %d", got)
	}
}

// Names that are allowed are answered to, on loopback and elsewhere, and no others: only
// an address cannot be made to point here by somebody else.
func TestAllowedNames(t *testing.T) {
	for address, hosts := range map[string]map[string]int{
		"127.0.0.1:0": {
			"": 200, "localhost": 200, "mon.example": 200, "MON.example.:443": 200, "2001:db8::1": 200, "[2001:DB8::1]:9": 200,
			"x.mon.example": 403, "mon.example.evil": 403, "evil.example": 403, "192.0.2.1": 403,
		},
		"0.0.0.0:0": {"localhost": 200, "mon.example:1": 200, "192.0.2.1": 200, "[2001:db8::2]:9": 200, "evil.example": 403, "mon": 403},
	} {
		s := start(t, address, "Mon.Example", "2001:db8::1")
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL(), "http://"))
		for host, want := range hosts {
			if got := status(t, "http://127.0.0.1:"+port, host); got != want {
				t.Errorf("%s, host %q: status %d, want %d", address, host, got, want)
			}
		}
	}
	s, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []string{"", ".", "a:80", "http://a", "a/b", "a b", "a\nb", "*", strings.Repeat("a", 254)} {
		if err := s.Allow([]string{n}); err == nil || !strings.HasPrefix(err.Error(), "--allow-host ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v", n, err)
		}
	}
	if err := s.Allow(make([]string, 65)); err == nil || !strings.Contains(err.Error(), "the limit is 64") {
		t.Errorf("65 names: %v", err)
	}
}

// A wrong address is one line that names it.
func TestWrongAddress(t *testing.T) {
	taken := start(t, "127.0.0.1:0")
	for _, a := range []string{"", "9879", "127.0.0.1", "127.0.0.1:99999", "no.such.host.invalid:1", strings.TrimPrefix(taken.URL(), "http://")} {
		_, err := serve.Listen(t.Context(), a)
		if err == nil {
			t.Errorf("%q was taken", a)
			continue
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("--listen %q: ", a)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", a, err)
		}
	}
}

// More connections than there is room for are closed, and the server goes on.
func TestManyConnections(t *testing.T) {
	s := start(t, "127.0.0.1:0")
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	closed := 0
	for range 80 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all[64:] {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			closed++
		}
	}
	if closed != 16 {
		t.Errorf("%d of 16 connections too many were closed", closed)
	}
	for _, c := range all {
		c.Close()
	}
	all = nil
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		_, err = c.Read(make([]byte, 12))
		c.Close()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not answer any more")
		}
	}
}
