package remote_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/diag/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host serves and says where.
func host(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// record writes a recording of as many instants as the interval asks for.
func record(_ context.Context, interval time.Duration, dir string) error {
	taken := `"2026-01-02T03:04:05Z"`
	if interval > 0 {
		taken += `,"2026-01-02T03:04:06Z"`
	}
	for name, text := range map[string]string{
		"meta.json":     `{"version":1,"host":"n8","taken":[` + taken + `]}`,
		"t0/root/sys/a": "first\n", "t1/root/sys/a": "second\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func TestFetch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	at := host(t, remote.Handler(record))
	rec, err := remote.Fetch(t.Context(), at, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if n := rec.Times(); n != 2 {
		t.Fatalf("%d instants, want 2", n)
	}
	for i, want := range []string{"first\n", "second\n"} {
		if b, err := rec.At(i).ReadFile("sys/a"); err != nil || string(b) != want {
			t.Errorf("instant %d: %q, %v, want %q", i, b, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "verbena-snapshot-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// Nothing but GET /snapshot with a bounded interval is answered.
func TestHandlerRefuses(t *testing.T) {
	busy, release := make(chan struct{}), make(chan struct{})
	at := host(t, remote.Handler(func(ctx context.Context, i time.Duration, dir string) error {
		if i == 2*time.Second {
			close(busy)
			<-release
		}
		return record(ctx, i, dir)
	}))
	ask := func(method, where string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+where, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 404},
		{"GET", "/snapshot/../etc/passwd", 404},
		{"POST", "/snapshot?interval=0s", 405},
		{"DELETE", "/snapshot?interval=0s", 405},
		{"GET", "/snapshot", 400},
		{"GET", "/snapshot?interval=-1s", 400},
		{"GET", "/snapshot?interval=24h", 400},
		{"GET", "/snapshot?interval=soon", 400},
		{"GET", "/snapshot?interval=0s", 200},
	} {
		if got := ask(c.method, c.path); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	first := make(chan int, 1)
	go func() { first <- ask("GET", "/snapshot?interval=2s") }()
	select {
	case <-busy:
	case got := <-first:
		t.Fatalf("the first reader: %d before it was recorded", got)
	}
	if got := ask("GET", "/snapshot?interval=0s"); got != 503 {
		t.Errorf("a second reader: %d, want 503", got)
	}
	close(release)
	if got := <-first; got != 200 {
		t.Errorf("the first reader: %d", got)
	}
}

// Who has read an answer to its end is not told that somebody is being answered.
func TestAnswersInARow(t *testing.T) {
	big := func(_ context.Context, _ time.Duration, dir string) error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<16), 0o600)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a connection would keep the order
	for what, r := range map[string]remote.Record{"small": record, "big": big} {
		at := host(t, remote.Handler(r))
		for i := range 100 {
			resp, err := c.Get("http://" + at + "/snapshot?interval=0s")
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s: answer %d: %s, %v", what, i, resp.Status, err)
			}
		}
	}
}

// What comes from a peer is refused in one line that names it.
func TestFetchRefuses(t *testing.T) {
	tar := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/x-tar") }
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "not with a recording"},
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no\x1b[31m\nmore", http.StatusForbidden)
		}, `403: "no\x1b[31m"`},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "answers 302"},
		"nothing":     {func(w http.ResponseWriter, _ *http.Request) { tar(w) }, "nothing came"},
		"no recorder": {func(w http.ResponseWriter, _ *http.Request) { tar(w); fmt.Fprint(w, strings.Repeat("x", 4096)) }, "no whole tar"},
		"half": {func(w http.ResponseWriter, _ *http.Request) {
			tar(w)
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(make([]byte, 100))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "no whole tar"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			tar(w)
			b := make([]byte, 1<<20)
			copy(b, endlessFile)
			for {
				if _, err := w.Write(b); err != nil {
					return
				}
				clear(b)
			}
		}, "not whole"},
	} {
		t.Run(what, func(t *testing.T) {
			at := host(t, c.answer)
			rec, err := remote.Fetch(t.Context(), at, 0)
			if err == nil {
				rec.Close()
				t.Fatal("no error")
			}
			if s := err.Error(); !strings.Contains(s, c.want) || !strings.Contains(s, at) || strings.ContainsAny(s, "\n\x1b") {
				t.Errorf("%q, want one line with %q and %s", s, c.want, at)
			}
		})
	}
	slow := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tar(w)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := remote.Fetch(ctx, slow, 0)
		done <- err
	}()
	cancel()
	if err := <-done; err == nil {
		t.Error("a fetch that was cancelled has no error")
	}
	if _, err := remote.Fetch(t.Context(), "127.0.0.1:1", 0); err == nil || !strings.Contains(err.Error(), "refused; there must be: verbena snapshot --listen") {
		t.Errorf("nobody there: %v", err)
	}
}

// endlessFile is the header of a tar file of 8 GiB less a byte.
var endlessFile = func() string {
	h := make([]byte, 512)
	copy(h, "t0/root/sys/big")
	copy(h[100:], "0000644\x000000000\x000000000\x0077777777777\x0000000000000\x00        0")
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(h)
}()

// A recording that is too long is refused here, in words that name no place of the disk,
// and nothing of it stays there.
func TestHandlerIsBounded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for what, c := range map[string]struct {
		record remote.Record
		want   string
	}{
		"many bytes": {func(_ context.Context, _ time.Duration, dir string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(dir, "meta.json"))
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 32)
		}, "longer than the limit of 67108864 bytes"},
		"its own error": {func(_ context.Context, _ time.Duration, dir string) error {
			return fmt.Errorf("recording %s: longer than a recording may be", dir)
		}, `500: "recording of this host: longer than a recording may be"`},
	} {
		at := host(t, remote.Handler(c.record))
		for range 2 { // it answers the next one, too
			_, err := remote.Fetch(t.Context(), at, 0)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), os.TempDir()) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "verbena-snapshot-*")); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"node8": "node8:9881", "node8:77": "node8:77", "10.0.0.7": "10.0.0.7:9881",
		"fe80::1%eth0": "[fe80::1%eth0]:9881", "[2001:db8::1]": "[2001:db8::1]:9881", "[2001:db8::1]:5": "[2001:db8::1]:5",
		"": "", "a b": "", "h:0": "", "h:99999": "", "http://h/": "", "h/x": "", ":80": "",
	} {
		got, err := remote.Address(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}
