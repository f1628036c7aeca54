package export_test

import (
	"bufio"
	"compress/gzip"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/tools/txtar"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// unpack reads the last instant of a recording in a text archive.
func unpack(t testing.TB, name string) *snapshot.Snapshot {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := source.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	return read.Host(rec.At(rec.Times()-1), read.Options{})
}

func collector(s *snapshot.Snapshot, opt export.Options) *export.Collector {
	return export.New(func() *snapshot.Snapshot { return s }, opt)
}

func text(t testing.TB, c *export.Collector) string {
	t.Helper()
	var b strings.Builder
	if err := export.Text(c, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func hosts(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, p := range []string{"../doctor/testdata/healthy/0[13-8]-*.txtar", "testdata/*.txtar"} {
		names, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	if len(all) < 8 {
		t.Fatalf("%d hosts", len(all))
	}
	return all
}

// One bad file costs one sample: what the odd places of public reports become, and
// values with their units.
func TestOddHost(t *testing.T) {
	got := text(t, collector(unpack(t, "testdata/odd.txtar"), export.Options{Compat: true, Version: "v9"}))
	lines := strings.Split(got, "\n")
	for _, want := range []string{
		`rdma_port_receive_bytes_total{device="mlx4_0",netdev="",port="1"} 1000`,
		`rdma_port_raw_total{device="mlx4_0",netdev="",port="1",raw="port_speciality"} 7`,
		`rdma_cnp_tx_total{device="bnxt_re0",netdev="",port="1",raw="tx_cnp_pkts"} 6`,
		`rdma_hw_level{device="bnxt_re0",netdev="",port="1",raw="active_qps"} 12`,
		`rdma_active_qps{device="bnxt_re0",netdev="",port="1",raw="active_qps"} 12`,
		`rdma_rnr_tx_total{device="irdma0",netdev="",port="1",raw="RNR sent"} 3`,
		`rdma_hw_raw_total{device="irdma0",netdev="",port="1",raw="a,b\"c"} 8`,
		`rdma_port_state{device="mlx5_1",netdev="",port="1"} 1`,
		`rdma_port_rate_bytes_per_second{device="mlx5_0",netdev="eth4",port="1"} 1.25e+10`,
		`rdma_port_transmit_bytes_total{device="mlx5_0",netdev="eth4",port="1"} 4000`,
		`rdma_port_lifespan_seconds{device="mlx5_0",netdev="eth4",port="1"} 0.012`,
		`rdma_ack_timeout_total{device="mlx5_0",netdev="eth4",port="1",raw="local_ack_timeout_err"} 2`,
		`rdma_cc_rx_ce_packets_total{device="mlx5_0",netdev="eth4",port="1"} 5`,
		`rdma_pfc_frames_total{device="mlx5_0",direction="rx",netdev="eth4",priority="3"} 17`,
		`rdma_pfc_pause_seconds_total{device="mlx5_0",direction="rx",netdev="eth4",priority="3"} 2.5`,
		`rdma_pfc_transitions_total{device="mlx5_0",direction="tx",netdev="eth4",priority="3"} 4`,
		`rdma_pfc_discards_total{device="mlx5_0",direction="rx",netdev="eth4",priority="0"} 9`,
		`rdma_pcie_stalled_ratio{device="mlx5_0",direction="read",netdev="eth4"} 0.35`,
		`rdma_pcie_stall_events_total{device="mlx5_0",direction="read",netdev="eth4"} 11`,
		`rdma_phy_lane_errors_total{device="mlx5_0",lane="2",netdev="eth4"} 13`,
		`rdma_pause_storm_events_total{device="mlx5_0",netdev="eth4",severity="warning"} 1`,
		`rdma_vport_bytes_total{cast="unicast",device="mlx5_0",direction="rx",netdev="eth4"} 123456`,
		`rdma_netdev_discards_total{device="mlx5_0",direction="rx",netdev="eth4",raw="rx_discards_phy"} 21`,
		`rdma_netdev_mtu_bytes{device="mlx5_0",netdev="eth4"} 4200`,
		`rdma_resources{device="mlx5_0",kind="cq"} 4`,
		`rdma_qps{device="mlx5_0",port="1",state="RTS",type="RC"} 2`,
		`rdma_qps{device="mlx5_0",port="1",state="RTS",type="GSI"} 1`,
		`rdma_exporter_build_info{version="v9"} 1`,
		`rdma_exporter_samples_left_out 0`,
		`rdma_exporter_devices 5`,
		// node_exporter's.
		`node_infiniband_port_data_transmitted_bytes_total{device="mlx5_0",port="1"} 4000`,
		`node_infiniband_np_cnp_packets_sent_total{device="mlx5_0",port="1"} 41`,
		`node_infiniband_rate_bytes_per_second{device="mlx5_0",port="1"} 1.25e+10`,
		`node_infiniband_lifespan_seconds{device="mlx5_0",port="1"} 0.012`,
		`node_infiniband_info{board_id="MT_1090111019",device="mlx4_0",firmware_version="2.42.5000",hca_type="MT4103"} 1`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line\n%s", want)
		}
	}
	for _, not := range []string{
		`rdma_port_transmit_bytes_total{device="mlx4_0"`, // N/A is not zero
		`rdma_port_symbol_errors_total{device="mlx4_0"`,  // EINVAL is not zero
		`rdma_port_rate_bytes_per_second{device="mlx5_1"`,
		`rdma_exporter_unreadable_values 0`,
		`rdma_exporter_problems 0`,
	} {
		if strings.Contains(got, not) {
			t.Errorf("there is %s", not)
		}
	}
}

// parsed reads a scrape with Prometheus' own parser, and holds it against what
// Prometheus' own writer makes of that: every line, with its escapes and numbers, and
// metrics in the same order. No sample may be there twice.
func parsed(t *testing.T, got string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	all, err := p.TextToMetricFamilies(strings.NewReader(got))
	if err != nil {
		t.Fatalf("Prometheus does not take the text: %v", err)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := expfmt.MetricFamilyToText(&b, all[name]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Split(b.String(), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("Prometheus writes it otherwise (-Prometheus +text):\n%s", diff)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(got) {
		sample := line[:strings.LastIndexByte(line, ' ')]
		if line[0] != '#' && seen[sample] {
			t.Errorf("%s is there twice", sample)
		}
		seen[sample] = true
	}
	return all
}

// Prometheus takes what a host of every driver becomes, and its linter finds nothing.
func TestLint(t *testing.T) {
	for _, name := range hosts(t) {
		for _, opt := range []export.Options{{PerQP: 10}, {Compat: true}} {
			got := text(t, collector(unpack(t, name), opt))
			parsed(t, got)
			if opt.Compat {
				continue // the linter would have node_exporter rename some
			}
			problems, err := promlint.New(strings.NewReader(got)).Lint()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, p := range problems {
				t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
			}
		}
	}
}

// Numbers are written as Prometheus writes them, and labels are what they were.
func TestTextOfValues(t *testing.T) {
	numbers := []uint64{0, 1, 9, 10, 99999, 999999, 1000000, 1000001, 123456789, 1 << 52, 1<<53 + 1, 1 << 63, math.MaxUint64}
	labels := []string{"", "a", `a"b`, `a\b`, "a\nb", `\n`, "ü", "{},=", "a b"}
	d := snapshot.Device{Name: "d", Ports: []snapshot.Port{{Number: 1, PhysState: snapshot.Known(-3), LifespanMs: snapshot.Known(12)}}}
	for i, n := range numbers {
		d.Ports[0].HWCounters = append(d.Ports[0].HWCounters, snapshot.Counter{Name: strconv.Itoa(i), Value: snapshot.Known(n)})
	}
	for _, l := range labels {
		d.Ports[0].Counters = append(d.Ports[0].Counters, snapshot.Counter{Name: l, Value: snapshot.Known[uint64](7)})
	}
	all := parsed(t, text(t, collector(&snapshot.Snapshot{Devices: []snapshot.Device{d}}, export.Options{})))
	for i, m := range all["rdma_hw_raw_total"].GetMetric() {
		if got := m.GetCounter().GetValue(); got != float64(numbers[i]) {
			t.Errorf("%d is %v", numbers[i], got)
		}
	}
	var got []string
	for _, m := range all["rdma_port_raw_total"].GetMetric() {
		got = append(got, m.GetLabel()[3].GetValue())
	}
	if !slices.Equal(got, labels) {
		t.Errorf("labels %q are %q", labels, got)
	}
	if got := all["rdma_port_physical_state"].GetMetric()[0].GetGauge().GetValue(); got != -3 {
		t.Errorf("-3 is %v", got)
	}
	if got := all["rdma_port_lifespan_seconds"].GetMetric()[0].GetGauge().GetValue(); got != 0.012 {
		t.Errorf("12 ms are %v s", got)
	}
}

// A scrape leaves nothing in the next one, whatever was large before.
func TestScrapesAreIndependent(t *testing.T) {
	large, small := own(), &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "d", Kind: snapshot.RXE, Ports: []snapshot.Port{{Number: 1}}}}}
	now := small
	c := export.New(func() *snapshot.Snapshot { return now }, export.Options{PerQP: 1000})
	changing := regexp.MustCompile(`(?m)^rdma_exporter_scrape(s_total|_duration_seconds) .*\n`)
	say := func(s *snapshot.Snapshot) string {
		now = s
		return changing.ReplaceAllString(text(t, c), "")
	}
	first := say(small)
	for range 3 {
		if n := strings.Count(say(large), "\n"); n < 4000 {
			t.Fatalf("%d lines of a large host", n)
		}
		if again := say(small); again != first {
			t.Errorf("a small host after a large one:\n%s", cmp.Diff(first, again))
		}
	}
}

// A host that is strange in every way neither spoils the answer nor makes it endless.
func TestHostile(t *testing.T) {
	bad := "\xff\xfe" + strings.Repeat("x", 1000)
	s := &snapshot.Snapshot{}
	for range 3 {
		d := snapshot.Device{Name: bad, Resources: map[string]uint64{bad: 1, "qp": 2}, Comm: bad}
		for range 2 {
			d.Ports = append(d.Ports, snapshot.Port{Number: 1, Netdev: snapshot.Known(bad), HWCounters: snapshot.Counters{{Name: bad, Value: snapshot.Known[uint64](1)}, {Name: bad}}})
		}
		s.Devices = append(s.Devices, d)
	}
	for i := range 300 {
		d := snapshot.Device{Name: "dev" + strconv.Itoa(i), Ports: []snapshot.Port{{Number: 1}}}
		for j := range 300 {
			d.Ports[0].HWCounters = append(d.Ports[0].HWCounters, snapshot.Counter{Name: "c" + strconv.Itoa(j), Value: snapshot.Known[uint64](1)})
		}
		s.Devices = append(s.Devices, d)
	}
	n := 0
	for _, f := range parsed(t, text(t, collector(s, export.Options{}))) {
		n += len(f.GetMetric())
	}
	if n > export.MaxSamples+20 || n < export.MaxSamples {
		t.Errorf("%d samples, the limit is %d", n, export.MaxSamples)
	}
}

// Per-QP counters come on demand and for so many queue pairs.
func TestPerQP(t *testing.T) {
	var qps []snapshot.QP
	for i := range 5 {
		qps = append(qps, snapshot.QP{Port: 1, LQPN: uint32(i + 16), Type: "RC", State: "RTS", Counters: snapshot.Counters{{Name: "acks", Value: snapshot.Known[uint64](1)}}})
	}
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "vrb_lo", Kind: snapshot.Verbena, QPs: snapshot.Known(qps)}}}
	for _, c := range []struct{ ask, series, left int }{{0, 0, 5}, {2, 2, 3}, {100, 5, 0}} {
		got := text(t, collector(s, export.Options{PerQP: c.ask}))
		if n := strings.Count(got, "\nrdma_qp_raw_total{"); n != c.series {
			t.Errorf("%d queue pairs asked for, %d series", c.ask, n)
		}
		if want := `rdma_qps_without_counters{device="vrb_lo"} ` + strconv.Itoa(c.left); !strings.Contains(got, want) {
			t.Errorf("%d queue pairs asked for: no line %s", c.ask, want)
		}
	}
}

// Two processes may hold devices of one name: none loses its samples.
func TestSameName(t *testing.T) {
	d := snapshot.Device{Name: "vrb_lo", Kind: snapshot.Verbena, PID: 7, Ports: []snapshot.Port{{Number: 1, State: snapshot.Known(4)}}}
	e := d
	e.PID = 8
	got := text(t, collector(&snapshot.Snapshot{Devices: []snapshot.Device{d, e}}, export.Options{}))
	for _, want := range []string{`rdma_port_state{device="vrb_lo@7",netdev="",port="1"} 4`, `rdma_port_state{device="vrb_lo@8",netdev="",port="1"} 4`, "rdma_exporter_samples_left_out 0"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no line %s", want)
		}
	}
}

// Only reading is offered.
func TestHandler(t *testing.T) {
	srv := httptest.NewServer(export.Handler(collector(unpack(t, "testdata/odd.txtar"), export.Options{})))
	defer srv.Close()
	for _, c := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/metrics", 200, "rdma_port_state"},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/", 200, "/metrics"},
		{"POST", "/metrics", 405, ""},
		{"PUT", "/metrics", 405, ""},
		{"DELETE", "/healthz", 405, ""},
		{"GET", "/debug/pprof/", 404, ""},
		{"GET", "/metrics/../etc/passwd", 404, ""},
	} {
		req, err := http.NewRequest(c.method, srv.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(body), c.has) {
			t.Errorf("%s %s: status %d, want %d with %q", c.method, c.path, res.StatusCode, c.status, c.has)
		}
	}
}

// An answer is compressed for other hosts that ask for it, and for this one it is not:
// the bytes are the same.
func TestCompression(t *testing.T) {
	h := export.Handler(collector(unpack(t, "testdata/odd.txtar"), export.Options{}))
	changing := regexp.MustCompile(`(?m)^rdma_exporter_scrape(s_total|_duration_seconds) .*\n`)
	var first string
	for _, c := range []struct {
		from, accept string
		zipped       bool
	}{
		{"127.0.0.1:5000", "gzip", false},
		{"[::1]:5000", "gzip", false},
		{"192.0.2.1:5000", "", false},
		{"192.0.2.1:5000", "identity, gzip;q=0", false},
		{"192.0.2.1:5000", "br, zstd", false},
		{"192.0.2.1:5000", "gzip", true},
		{"[2001:db8::1]:5000", "deflate, GZIP ; q=0.5", true},
		{"192.0.2.1:5000", "gzip", true}, // with a writer used before
	} {
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req.RemoteAddr = c.from
		req.Header.Set("Accept-Encoding", c.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if kind := w.Header().Get("Content-Type"); kind != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("type %q", kind)
		}
		zipped := w.Header().Get("Content-Encoding") == "gzip"
		var body io.Reader = w.Body
		if zipped {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil || zipped != c.zipped {
			t.Errorf("%s with %q: compressed %v, %v", c.from, c.accept, zipped, err)
		}
		got := changing.ReplaceAllString(string(b), "")
		if first == "" {
			first = got
		}
		if got != first || len(got) < 1000 {
			t.Errorf("%s with %q: another text, %d bytes", c.from, c.accept, len(got))
		}
	}
}

// So many scrapes wait for the host at a time; others are told so.
func TestScrapesAreBounded(t *testing.T) {
	held, reading := make(chan struct{}), make(chan struct{}, 1)
	h := export.Handler(export.New(func() *snapshot.Snapshot {
		select {
		case reading <- struct{}{}:
		default:
		}
		<-held
		return &snapshot.Snapshot{}
	}, export.Options{}))
	get := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Code
	}
	codes := make(chan int)
	const n = 10
	for range n {
		go func() { codes <- get() }()
	}
	<-reading
	for range n - 4 { // those beyond the limit end while the host is read
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("status %d", code)
		}
	}
	close(held)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("status %d of one within the limit", code)
		}
	}
	if code := get(); code != http.StatusOK {
		t.Errorf("status %d afterwards", code)
	}
}

// own is a process with four devices of ours, 1,000 queue pairs and eight shards each.
func own() *snapshot.Snapshot {
	s := &snapshot.Snapshot{}
	names := []string{"sent_pkts", "rcvd_pkts", "sent_bytes", "rcvd_bytes", "np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets", "packet_seq_err", "out_of_sequence", "local_ack_timeout_err"}
	for i := 10; i < 60; i++ {
		names = append(names, "drop_reason_"+strconv.Itoa(i))
	}
	var all snapshot.Counters
	for i, n := range names {
		all = append(all, snapshot.Counter{Name: n, Value: snapshot.Known(uint64(i))})
	}
	for i := range 4 {
		d := snapshot.Device{Name: "vrb_eth" + strconv.Itoa(i), Kind: snapshot.Verbena, Ports: []snapshot.Port{{Number: 1, State: snapshot.Known(4), HWCounters: all}}}
		var qps []snapshot.QP
		for q := range 1000 {
			qps = append(qps, snapshot.QP{Port: 1, LQPN: uint32(q), Type: "RC", State: "RTS", Counters: all[:10]})
		}
		d.QPs = snapshot.Known(qps)
		for q := range 8 {
			d.Queues = append(d.Queues, snapshot.Queue{Index: q, QPs: 125, Counters: all[:10]})
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

// The text of a scrape of our own devices' counters; 5 ms of CPU are its limit.
func BenchmarkScrapeOwn(b *testing.B) {
	h := export.Handler(collector(own(), export.Options{}))
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}

// A client that has ended its side of the connection gets its answer whole.
func TestHalfClosedClient(t *testing.T) {
	c := export.New(own, export.Options{})
	s := httptest.NewServer(export.Handler(c))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || len(b) < 1000 {
		t.Errorf("%s, %d bytes, %v", resp.Status, len(b), err)
	}
}
