package monitor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what the test reads of /api/data.
type answer struct {
	Seq    uint64
	Note   string
	Times  []int64
	Series []struct {
		Plot, Device, Line string
		Values             []*float64
	}
	Left     int `json:"series_left_out"`
	Findings []struct{ Rule, Status, Where string }
	Events   []struct {
		T    int64
		Rule string
		Gone bool
	}
}

func (a *answer) last(t *testing.T, plot, device, line string) float64 {
	t.Helper()
	for _, s := range a.Series {
		if s.Plot == plot && s.Device == device && s.Line == line {
			if v := s.Values[len(s.Values)-1]; v != nil {
				return *v
			}
		}
	}
	t.Errorf("no value of %s %s %s", plot, device, line)
	return -1
}

func get(t *testing.T, h http.Handler, path string, status int) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status {
		t.Fatalf("GET %s: status %d, want %d: %s", path, w.Code, status, w.Body)
	}
	return w.Body.Bytes()
}

func ask(t *testing.T, h http.Handler, path string) (a answer) {
	t.Helper()
	if err := json.Unmarshal(get(t, h, path, 200), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

var begin = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func counters(pairs ...any) (all snapshot.Counters) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, snapshot.Counter{Name: pairs[i].(string), Value: snapshot.Known(uint64(pairs[i+1].(int)))})
	}
	return all
}

// replay makes a monitor of one recording and reads it.
func replay(t *testing.T, rules []*doctor.Rule, all ...*snapshot.Snapshot) http.Handler {
	t.Helper()
	m, err := monitor.New(monitor.Config{Rules: rules, Examine: time.Second, Hosts: []monitor.Host{{Name: "rec", Times: len(all), Past: func(i int) *snapshot.Snapshot { return all[i] }}}})
	if err != nil {
		t.Fatal(err)
	}
	m.Run(t.Context())
	return m.Handler()
}

// Rates have their units, from the right counters: two instants 2 s apart.
func TestRates(t *testing.T) {
	host := func(at time.Duration, n int) *snapshot.Snapshot {
		return &snapshot.Snapshot{
			Taken: begin.Add(at),
			Devices: []snapshot.Device{
				{Name: "mlx5_0", Driver: snapshot.Known("mlx5_core"), Ports: []snapshot.Port{{
					Number: 1, Netdev: snapshot.Known("eth0"), Counters: counters("port_xmit_data", 1000*n, "port_rcv_data", 500*n),
					HWCounters: counters("np_ecn_marked_roce_packets", 20*n, "np_cnp_sent", 10*n, "rp_cnp_handled", 8*n, "packet_seq_err", 6*n,
						"implied_nak_seq_err", 4*n, "local_ack_timeout_err", 2*n, "out_of_sequence", 14*n),
				}}},
				{Name: "rxe0", Kind: snapshot.RXE, Ports: []snapshot.Port{{Number: 1, Netdev: snapshot.Known("eth1"), HWCounters: counters("sent_pkts", n, "completer_retry_err", 2*n)}}},
				{Name: "vrb_lo", Kind: snapshot.Verbena, Ports: []snapshot.Port{{Number: 1, HWCounters: counters("sent_bytes", 300*n, "rcvd_bytes", 100*n)}}},
			},
			Netdevs: []snapshot.Netdev{
				{Name: "eth0", Ethtool: counters("rx_prio3_pause", 50*n, "rx_prio3_pause_duration", 500_000*n, "tx_prio3_pause", 0, "tx_prio3_pause_duration", 0, "rx_prio5_pause", 0)},
				{Name: "eth1", Statistics: counters("tx_bytes", 2000*n, "rx_bytes", 1000*n)},
			},
		}
	}
	a := ask(t, replay(t, nil, host(0, 0), host(2*time.Second, 1)), "/api/data?host=rec")
	for _, c := range []struct {
		plot, device, line string
		want               float64
	}{
		{"throughput", "mlx5_0/1", "sent", 1000 * 4 * 8 / 2}, // words of 4 bytes
		{"throughput", "mlx5_0/1", "received", 500 * 4 * 8 / 2},
		{"throughput", "rxe0/1", "sent by eth1", 2000 * 8 / 2},
		{"throughput", "vrb_lo/1", "sent", 300 * 8 / 2},
		{"ecn", "mlx5_0/1", "marked, received", 10},
		{"cnp", "mlx5_0/1", "sent", 5},
		{"cnp", "mlx5_0/1", "handled", 4},
		{"retransmit", "mlx5_0/1", "NAK", 3},
		{"retransmit", "mlx5_0/1", "implied NAK", 2},
		{"retransmit", "mlx5_0/1", "timeout", 1},
		{"retransmit", "rxe0/1", "timeout", 1},
		{"outoforder", "mlx5_0/1", "received", 7},
		{"pause", "mlx5_0/1", "received, priority 3", 0.25},
		{"pfc", "mlx5_0/1", "received, priority 3", 25},
	} {
		if got := a.last(t, c.plot, c.device, c.line); got != c.want {
			t.Errorf("%s of %s, %s: %v, want %v", c.plot, c.device, c.line, got, c.want)
		}
	}
	for _, s := range a.Series {
		if strings.Contains(s.Line, "priority 5") || strings.HasPrefix(s.Line, "sent, priority") {
			t.Errorf("%s %s: there is a line of what never happened", s.Plot, s.Line)
		}
	}
}

// A counter that wraps at 32 bits goes on, one that was reset leaves a gap.
func TestWrapAndReset(t *testing.T) {
	host := func(at int, v int) *snapshot.Snapshot {
		return &snapshot.Snapshot{Taken: begin.Add(time.Duration(at) * time.Second), Devices: []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, HWCounters: counters("np_cnp_sent", v)}}}}}
	}
	a := ask(t, replay(t, nil, host(0, 1<<32-3), host(1, 4), host(2, 1), host(3, 2)), "/api/data?host=rec")
	if len(a.Series) != 1 || len(a.Series[0].Values) != 3 {
		t.Fatalf("series %+v", a.Series)
	}
	v := a.Series[0].Values
	if v[0] == nil || *v[0] != 7 || v[1] != nil || v[2] == nil || *v[2] != 1 {
		t.Errorf("values %v %v %v", v[0], v[1], v[2])
	}
}

// Whatever a host has, so much is kept: ten minutes of so many series, and viewers get
// what is new to them.
func TestBounds(t *testing.T) {
	var all []*snapshot.Snapshot
	for i := range 900 {
		s := &snapshot.Snapshot{Taken: begin.Add(time.Duration(i) * time.Second)}
		n := 1
		if i >= 890 {
			n = 600
		}
		for d := range n {
			s.Devices = append(s.Devices, snapshot.Device{Name: "mlx5_" + strconv.Itoa(d), Ports: []snapshot.Port{{Number: 1, HWCounters: counters("np_cnp_sent", i)}}})
		}
		all = append(all, s)
	}
	h := replay(t, nil, all...)
	a := ask(t, h, "/api/data?host=rec")
	if len(a.Times) != monitor.Samples || len(a.Series) != monitor.MaxSeries || a.Left != 600-monitor.MaxSeries {
		t.Errorf("%d instants, %d series, %d left out", len(a.Times), len(a.Series), a.Left)
	}
	for _, c := range []struct {
		since string
		want  int
	}{{strconv.FormatUint(a.Seq-3, 10), 3}, {strconv.FormatUint(a.Seq, 10), 0}, {"1", monitor.Samples - 1}, {"18446744073709551615", monitor.Samples}} {
		b := ask(t, h, "/api/data?host=rec&since="+c.since)
		if len(b.Times) != c.want || len(b.Series) > 0 && len(b.Series[0].Values) != c.want {
			t.Errorf("since %s: %d instants, want %d", c.since, len(b.Times), c.want)
		}
	}
}

// The doctor looks at the window; findings come and go as events.
func TestEvents(t *testing.T) {
	rules, err := doctor.Parse("test.yaml", []byte(`
- {id: X01, title: sends, step: 2, each: port, warn: 'delta("cnp_tx") > 0', confidence: 1, cause: c, why: w, fix: [f], source: test}
`))
	if err != nil {
		t.Fatal(err)
	}
	host := func(at int, v int) *snapshot.Snapshot {
		return &snapshot.Snapshot{Taken: begin.Add(time.Duration(at) * time.Second), Devices: []snapshot.Device{{Name: "mlx5_0", Kind: snapshot.Hardware, Ports: []snapshot.Port{{Number: 1, HWCounters: counters("np_cnp_sent", v)}}}}}
	}
	h := replay(t, rules, host(0, 5), host(1, 5), host(2, 9), host(3, 12), host(4, 12))
	a := ask(t, h, "/api/data?host=rec")
	if len(a.Events) != 2 || a.Events[0].Gone || !a.Events[1].Gone ||
		a.Events[0].T != begin.Add(2*time.Second).UnixMilli() || a.Events[1].T != begin.Add(4*time.Second).UnixMilli() {
		t.Errorf("events %+v", a.Events)
	}
	if len(a.Findings) != 0 {
		t.Errorf("findings %+v", a.Findings)
	}
	a = ask(t, replay(t, rules, host(0, 5), host(1, 6)), "/api/data?host=rec")
	if len(a.Findings) != 1 || a.Findings[0].Rule != "X01" || a.Findings[0].Where != "mlx5_0/1" {
		t.Errorf("findings %+v", a.Findings)
	}
}

// What has nothing to plot says why.
func TestNotes(t *testing.T) {
	one := &snapshot.Snapshot{Taken: begin}
	if a := ask(t, replay(t, nil, one), "/api/data?host=rec"); !strings.Contains(a.Note, "one instant") {
		t.Errorf("one instant: note %q", a.Note)
	}
	if a := ask(t, replay(t, nil, &snapshot.Snapshot{}, &snapshot.Snapshot{}), "/api/data?host=rec"); !strings.Contains(a.Note, "does not say when") {
		t.Errorf("no times: note %q", a.Note)
	}
}

// A switch that is a host of its own has the PFC frames of its ports; that beside a host
// with devices is not drawn.
func TestSwitch(t *testing.T) {
	at := func(second int, rx, tx uint64, devices ...snapshot.Device) *snapshot.Snapshot {
		return &snapshot.Snapshot{
			Taken: begin.Add(time.Duration(second) * time.Second), Devices: devices,
			Switch: &snapshot.Switch{Name: "leaf0", Ports: []snapshot.SwitchPort{
				{Name: "Ethernet0", PFCRx: snapshot.Known([8]uint64{3: rx}), PFCTx: snapshot.Known([8]uint64{3: tx, 4: 7})}, {Name: "Ethernet4"},
			}},
		}
	}
	a := ask(t, replay(t, nil, at(0, 10, 20), at(2, 30, 120)), "/api/data?host=rec")
	for line, want := range map[string]float64{"received, priority 3": 10, "sent, priority 3": 50, "sent, priority 4": 0} {
		if got := a.last(t, "pfc", "Ethernet0", line); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	if len(a.Series) != 3 || !strings.HasPrefix(a.Note, "a switch") {
		t.Errorf("%d series, note %q", len(a.Series), a.Note)
	}
	d := snapshot.Device{Name: "mlx5_0"}
	if a := ask(t, replay(t, nil, at(0, 10, 20, d), at(2, 30, 120, d)), "/api/data?host=rec"); len(a.Series) != 0 || a.Note != "" {
		t.Errorf("a host beside a switch: %d series, note %q", len(a.Series), a.Note)
	}
}

// The list of hosts says what the doctor found on each, and a host says which places
// could not be read, as many as are of use.
func TestHostsAndUnread(t *testing.T) {
	rules, err := doctor.Parse("test.yaml", []byte(`
- {id: X01, title: sends, step: 2, each: port, warn: 'total("cnp_tx") > 0', fail: 'total("cnp_tx") > 5', confidence: 1, cause: c, why: w, fix: [f], source: test}
`))
	if err != nil {
		t.Fatal(err)
	}
	host := func(name string, v int) monitor.Host {
		s := &snapshot.Snapshot{Taken: begin, Devices: []snapshot.Device{{Name: "mlx5_0", Kind: snapshot.Hardware, Ports: []snapshot.Port{{Number: 1, HWCounters: counters("np_cnp_sent", v)}}}}}
		for i := range 30 * v {
			s.Problems = append(s.Problems, snapshot.Problem{Place: "p" + strconv.Itoa(i), Why: strings.Repeat("é", 1000)})
		}
		return monitor.Host{Name: name, Times: 1, Past: func(int) *snapshot.Snapshot { return s }}
	}
	m, err := monitor.New(monitor.Config{Rules: rules, Hosts: []monitor.Host{host("well", 0), host("warned", 1), host("failed", 9)}})
	if err != nil {
		t.Fatal(err)
	}
	m.Run(t.Context())
	const want = `[{"name":"well","origin":"recorded","fail":0,"warn":0},{"name":"warned","origin":"recorded","fail":0,"warn":1},{"name":"failed","origin":"recorded","fail":1,"warn":0}]`
	if got := strings.TrimSpace(string(get(t, m.Handler(), "/api/hosts", 200))); got != want {
		t.Errorf("hosts\n%s want\n%s", got, want)
	}
	b := get(t, m.Handler(), "/api/data?host=failed", 200)
	var a struct {
		Began    int64
		Problems int
		Unread   []monitor.Unread
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	if a.Began == 0 || a.Problems != 270 || len(a.Unread) != 20 || a.Unread[0].Place != "p0" || len(a.Unread[0].Why) > 310 || !strings.HasSuffix(a.Unread[0].Why, "é…") {
		t.Errorf("%.300s", b)
	}
}

// Only reading is offered, and the page may load nothing but itself.
func TestHandler(t *testing.T) {
	h := replay(t, nil, &snapshot.Snapshot{Taken: begin})
	for path, status := range map[string]int{
		"/": 200, "/app.js": 200, "/text.js": 200, "/plot.js": 200, "/findings.js": 200, "/style.css": 200, "/uplot/uPlot.iife.min.js": 200, "/uplot/uPlot.min.css": 200, "/icon.svg": 200,
		"/healthz": 200, "/api/hosts": 200, "/api/data?host=rec": 200,
		"/api/data": 404, "/api/data?host=../etc/passwd": 404, "/api/data?host=rec&since=x": 400, "/api/data?host=rec&since=-1": 400,
		"/uplot/": 404, "/uplot/LICENSE": 404, "/none.js": 404, "/debug/pprof/": 404, "/..%2fmonitor.go": 404,
	} {
		get(t, h, path, status)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if p := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'self';") || strings.Contains(p, "unsafe") {
		t.Errorf("policy %q", p)
	}
	page := w.Body.String()
	for _, f := range []string{"/app.js", "/text.js", "/plot.js", "/findings.js", "/style.css"} {
		page += string(get(t, h, f, 200))
	}
	for _, not := range []string{"https://", "//cdn", "<style", "onclick=", " style=", "eval("} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml", "/api/hosts": "application/json",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != kind {
			t.Errorf("HEAD %s: status %d, %q", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		for _, path := range []string{"/", "/api/data?host=rec", "/api/hosts"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			if w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, w.Code)
			}
		}
	}
}

// Wrong configurations are one line that names the host.
func TestNew(t *testing.T) {
	look := func() *snapshot.Snapshot { return &snapshot.Snapshot{} }
	for want, c := range map[string]monitor.Config{
		"no host":    {},
		`"x"`:        {Hosts: []monitor.Host{{Name: "x"}}},
		"two hosts":  {Hosts: []monitor.Host{{Name: "x", Look: look}, {Name: "x", Look: look}}},
		"negative":   {Hosts: []monitor.Host{{Name: "x", Look: look}}, Every: -1},
		"limit is 6": {Hosts: make([]monitor.Host, 65)},
	} {
		if _, err := monitor.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// Many viewers of a live host, while it is watched: each sees what is new to it.
func TestViewers(t *testing.T) {
	var n int
	look := func() *snapshot.Snapshot {
		n++
		return &snapshot.Snapshot{Taken: begin.Add(time.Duration(n) * time.Second), Devices: []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, HWCounters: counters("np_cnp_sent", 3*n)}}}}}
	}
	m, err := monitor.New(monitor.Config{Hosts: []monitor.Host{{Name: "live", Look: look}}, Every: time.Millisecond, Examine: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	h := m.Handler()
	deadline := time.Now().Add(time.Minute)
	var wg sync.WaitGroup
	errs := make(chan error, 16)
	for range 16 {
		wg.Go(func() { errs <- follow(h, deadline) })
	}
	wg.Wait()
	stop()
	<-done
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// follow asks until it has seen 20 instants, each once and in order.
func follow(h http.Handler, deadline time.Time) error {
	var seq uint64
	var last int64
	for seen := 0; seen < 20; {
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d instants in a minute", seen)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/data?host=live&since=%d", seq), nil))
		b, _ := io.ReadAll(w.Body)
		var a answer
		if err := json.Unmarshal(b, &a); err != nil {
			return err
		}
		for i, at := range a.Times {
			if last != 0 && at != last+1000 {
				return fmt.Errorf("instant %d after %d", at, last)
			}
			last = at
			if v := a.Series[0].Values[i]; v == nil || *v != 3 {
				return fmt.Errorf("rate %v", v)
			}
		}
		seen += len(a.Times)
		seq = a.Seq
	}
	return nil
}
