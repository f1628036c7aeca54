package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs"
)

// newBadPair is newOwnPair with congestion control, and faults on what arrives at the
// second.
func newBadPair(t *testing.T, port uint16, rules string, addrs ...string) *ownPair {
	t.Helper()
	parsed, err := fault.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	wrap := func(l link.Link) link.Link {
		bad, err := fault.New(l, fault.Config{Rules: parsed, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return bad
	}
	var cfgs [2]verbs.Config
	for i, a := range addrs {
		cfgs[i] = verbs.Config{Addr: netip.MustParseAddr(a), Port: port, Control: verbs.ControlOn, DCQCN: verbs.DCQCN{Preset: "paper", LineRate: 1e9}}
	}
	cfgs[1].Wrap = wrap
	return newPairOf(t, cfgs)
}

// pageData is what the test reads of the page's data.
type pageData struct {
	Began, Seq uint64
	Origin     string
	Devices    int
	Bare       bool
	Note       string
	Times      []int64
	Series     []struct {
		Plot, Device, Line string
		Values             []*float64
	}
}

func hostData(t *testing.T, url, host string) (d pageData) {
	t.Helper()
	if err := json.Unmarshal(body(t, url+"/api/data?host="+strings.ReplaceAll(host, " ", "%20")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// moved reports whether a line of a plot has had a value above zero, of any device whose
// name begins so.
func (d *pageData) moved(plot, device, line string) bool {
	for _, s := range d.Series {
		if s.Plot != plot || !strings.HasPrefix(s.Device, device) || s.Line != line {
			continue
		}
		for _, v := range s.Values {
			if v != nil && *v > 0 {
				return true
			}
		}
	}
	return false
}

// The command finds devices of another holder by their control sockets, and its page has
// what they do: throughput, what was lost and sent again, marks and notifications. It
// can be read and nothing else.
func TestMonitorOwnDevice(t *testing.T) {
	pair := newBadPair(t, 14823, "ce 50%; drop 2%", "127.0.0.181", "127.0.0.182")
	url, stop := servedAt(t, "monitor", "--listen", "127.0.0.1:0", "--every", "100ms", "--examine", "500ms", "--allow-host", "mon.example")
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("it listens at %s", url)
	}
	ctx, done := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil && pair.write(ctx, 1) == nil {
			time.Sleep(time.Millisecond) // a light load
		}
	})
	defer wg.Wait()
	defer done()

	name := pair.dev[0].Name()
	missing := func(d *pageData) (all []string) {
		for _, want := range [][2]string{
			{"throughput", "sent"}, {"throughput", "received"}, {"ecn", "marked, received"}, {"cnp", "sent"}, {"cnp", "handled"}, {"outoforder", "received"},
		} {
			if !d.moved(want[0], name, want[1]) {
				all = append(all, fmt.Sprint(want))
			}
		}
		if !d.moved("retransmit", name, "NAK") && !d.moved("retransmit", name, "timeout") {
			all = append(all, "retransmissions")
		}
		return all
	}
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // between two looks
		d := hostData(t, url, "this host")
		left := missing(&d)
		if len(left) == 0 {
			if d.Origin != "live" || d.Bare || d.Devices < 2 || d.Began == 0 || d.Note != "" {
				t.Errorf("origin %q, %d devices, note %q", d.Origin, d.Devices, d.Note)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatalf("these have not moved: %v, of %+v", left, d.Series)
		}
	}
	sent := pair.dev[0].Stats()
	if sent.Get("retransmitted") == 0 {
		t.Error("nothing was lost: the test shows nothing")
	}
	onlyReading(t, url)
	if status := stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// requested is the answer to a request of any kind, by any name.
func requested(t *testing.T, method, url, host string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x=1"))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodGet || method == http.MethodHead {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, b
}

// onlyReading asks a page for all that it must not give.
func onlyReading(t *testing.T, url string) {
	t.Helper()
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8",
		"/uplot/uPlot.iife.min.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml",
		"/api/hosts": "application/json", "/api/data?host=this%20host": "application/json",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, h, b := requested(t, method, url+path, "")
			if status != 200 || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self';") {
				t.Errorf("%s %s: status %d, %v", method, path, status, h)
			}
			if (method == http.MethodHead) != (len(b) == 0) {
				t.Errorf("%s %s: %d bytes", method, path, len(b))
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: pages of elsewhere may read this", path)
			}
		}
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"} {
			if status, _, _ := requested(t, method, url+path, ""); status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, status)
			}
		}
		for host, want := range map[string]int{"localhost:9880": 200, "mon.example": 200, "evil.example": 403, "evil.example:9880": 403, "192.0.2.1": 403} {
			if status, _, b := requested(t, http.MethodGet, url+path, host); status != want || status == 403 && bytes.Contains(b, []byte("throughput")) {
				t.Errorf("%s, called %s: status %d, want %d", path, host, status, want)
			}
		}
	}
}

// recordingAt writes a recording of so many instants of a host with one port.
func recordingAt(t *testing.T, dir, host string, instants int) {
	t.Helper()
	var taken []string
	for i := range instants {
		taken = append(taken, time.Date(2026, 3, 1, 10, 0, i, 0, time.UTC).Format(time.RFC3339))
		port := filepath.Join(dir, fmt.Sprintf("t%d/root/sys/class/infiniband/mlx5_0/ports/1", i))
		if err := os.MkdirAll(filepath.Join(port, "counters"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"state": "4: ACTIVE\n", "counters/port_xmit_data": fmt.Sprintln(1000 * i)} {
			if err := os.WriteFile(filepath.Join(port, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	meta, err := json.Marshal(map[string]any{"version": 1, "taken": taken, "host": host})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), meta, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hostNames are the hosts of a page.
func hostNames(t *testing.T, url string) (names []string) {
	t.Helper()
	var hosts []struct{ Name string }
	if err := json.Unmarshal(body(t, url+"/api/hosts"), &hosts); err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

// Recordings are hosts by name: one by one, directories of them, several of one host,
// beside this host.
func TestMonitorRecordings(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	recordingAt(t, at("snaps/host10"), "host10", 2)
	recordingAt(t, at("snaps/host2"), "host2", 3)
	recordingAt(t, at("snaps/host1"), "", 1) // nobody has said its name
	recordingAt(t, at("before"), "gpu-17", 2)
	recordingAt(t, at("after"), "gpu-17", 2)
	recordingAt(t, at("x/rec"), "same", 2)
	recordingAt(t, at("y/rec"), "same", 2)
	recordingAt(t, at("odd"), "this host", 2)
	recordingAt(t, at("hostile"), "a\x1b[31m\nb <script>"+strings.Repeat("z", 200), 2)
	if err := os.WriteFile(at("snaps/README"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want []string
	}{
		{[]string{"--recorded-only", at("snaps")}, []string{"host1", "host2", "host10"}},
		{[]string{at("snaps"), at("before")}, []string{"this host", "host1", "host2", "host10", "gpu-17"}},
		{[]string{"--recorded-only", at("before"), at("after")}, []string{"gpu-17 · before", "gpu-17 · after"}},
		{[]string{"--recorded-only", at("x"), at("y/rec")}, []string{"same · rec", "same · rec (2)"}},
		{[]string{at("odd")}, []string{"this host", "this host · odd"}},
		{[]string{"--recorded-only", at("hostile")}, []string{"a [31m b <script>" + strings.Repeat("z", 46) + "…"}},
	} {
		url, stop := servedAt(t, append([]string{"monitor", "--listen", "127.0.0.1:0"}, c.args...)...)
		if diff := cmp.Diff(c.want, hostNames(t, url)); diff != "" {
			t.Errorf("%v: -want +got\n%s", c.args, diff)
		}
		stop()
	}

	// Two instants a second apart are one rate: 1000 words of 32 bits.
	url, _ := servedAt(t, "monitor", "--listen", "127.0.0.1:0", "--recorded-only", at("snaps"))
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // between two looks
		d := hostData(t, url, "host10")
		if len(d.Series) == 1 && len(d.Series[0].Values) == 1 && *d.Series[0].Values[0] == 32000 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%+v", d)
		}
	}
}

// What is wrong with the recordings is one line; what was only found is left out with one.
func TestMonitorWrongRecordings(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for i := range 64 {
		recordingAt(t, at(fmt.Sprintf("many/h%d", i)), "", 1)
	}
	recordingAt(t, at("some/good"), "good", 1)
	for _, name := range []string{"some/bad/meta.json", "bad/meta.json"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{at("many")}, "64 recordings and this host, the limit of one page is 64 hosts"},
		{[]string{"--recorded-only", at("many"), at("some/good")}, "65 recordings, the limit of one page is 64 hosts"},
		{[]string{at("bad")}, "meta.json"},
		{[]string{at("some/bad")}, "meta.json"},
		{[]string{at("empty")}, "no recordings in it"},
		{[]string{at("absent")}, "no such file"},
		{[]string{"--recorded-only"}, "there is no host to show"},
		{[]string{"--allow-host", "a b"}, "--allow-host"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), app{in: strings.NewReader(""), out: &out, err: &errs}, append([]string{"verbena", "monitor", "--listen", "127.0.0.1:0"}, c.args...))
		if status == 0 || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%v: status %d\n%s", c.args, status, errs.String())
		}
	}

	var errs lockedBuffer
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, app{in: strings.NewReader(""), out: io.Discard, err: &errs}, []string{"verbena", "monitor", "--listen", "127.0.0.1:0", "--recorded-only", at("some")})
	}()
	for until := time.Now().Add(time.Minute); !strings.Contains(errs.String(), "monitor at "); time.Sleep(10 * time.Millisecond) { // between two looks
		if time.Now().After(until) {
			t.Fatal(errs.String())
		}
	}
	cancel()
	if status := <-ended; status != 0 || !strings.Contains(errs.String(), "some/bad: meta.json") || !strings.Contains(errs.String(), "left out") {
		t.Errorf("status %d\n%s", status, errs.String())
	}
}

// lockedBuffer is what a command writes while somebody reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
