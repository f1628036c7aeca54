package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// servedAt runs a command that serves and returns its address and what ends it.
func servedAt(t testing.TB, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, app{in: strings.NewReader(""), out: io.Discard, err: w}, append([]string{"verbena"}, args...))
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: no line: %v, status %d", args, err, <-ended)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	_, url, _ = strings.Cut(strings.TrimSpace(line), " at ")
	var once sync.Once
	status := 0
	stop = func() int {
		once.Do(func() { cancel(); status = <-ended })
		return status
	}
	t.Cleanup(func() { stop() })
	return strings.TrimSuffix(url, "/"), stop
}

// body is the answer to a GET.
func body(t testing.TB, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v", url, res.StatusCode, err)
	}
	return b
}

// families parses a scrape with Prometheus' own parser and lints it.
func families(t *testing.T, b []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	all, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("the scrape does not parse: %v", err)
	}
	problems, err := promlint.New(bytes.NewReader(b)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for name, f := range all {
		if f.GetHelp() == "" || f.GetType() == dto.MetricType_UNTYPED {
			t.Errorf("%s has no HELP or no TYPE", name)
		}
		seen := map[string]bool{}
		for _, m := range f.GetMetric() {
			key := fmt.Sprint(m.GetLabel())
			if seen[key] {
				t.Errorf("%s %s is there twice", name, key)
			}
			seen[key] = true
		}
	}
	return all
}

// value is a sample with these labels, NaN-like -1 without.
func value(all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range all[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		ok := true
		for i := 0; i < len(labels); i += 2 {
			ok = ok && has[labels[i]] == labels[i+1]
		}
		if ok {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

// ownPair are two devices with control sockets, and a queue pair between them.
type ownPair struct {
	dev  [2]*verbs.Device
	cq   [2]*verbs.CQ
	qp   [2]*verbs.QP
	mr   [2]*verbs.MR
	peer *verbs.Peer
}

func newOwnPair(t testing.TB, port uint16, addrs ...string) *ownPair {
	t.Helper()
	var cfgs [2]verbs.Config
	for i, a := range addrs {
		cfgs[i] = verbs.Config{Addr: netip.MustParseAddr(a), Port: port, Control: verbs.ControlOn}
	}
	return newPairOf(t, cfgs)
}

// newPairOf connects two devices.
func newPairOf(t testing.TB, cfgs [2]verbs.Config) *ownPair {
	t.Helper()
	p := &ownPair{}
	for i := range cfgs {
		var err error
		if p.dev[i], err = verbs.Open(cfgs[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.dev[i].Close() })
		pd := p.dev[i].AllocPD()
		if p.cq[i], err = p.dev[i].CreateCQ(verbs.CQConfig{Depth: 64}); err != nil {
			t.Fatal(err)
		}
		if p.mr[i], err = pd.RegisterMR(make([]byte, 1<<16), ib.AccessAll); err != nil {
			t.Fatal(err)
		}
		if p.qp[i], err = pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.cq[i], RecvCQ: p.cq[i]}); err != nil {
			t.Fatal(err)
		}
	}
	x, y := net.Pipe()
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() { p.peer, errs[0] = verbs.Connect(t.Context(), x, p.qp[0], p.mr[0]) })
	wg.Go(func() { _, errs[1] = verbs.Connect(t.Context(), y, p.qp[1], p.mr[1]) })
	wg.Wait()
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	return p
}

// write sends n writes of 64 KiB and waits for each.
func (p *ownPair) write(ctx context.Context, n int) error {
	var wcs [1]ib.WC
	for range n {
		if err := p.qp[0].PostSend(ib.SendWR{Op: ib.Write, SGL: p.mr[0].SGE(0, 1<<16), Remote: p.peer.At(0), Flags: ib.Signaled}); err != nil {
			return err
		}
		if _, err := p.cq[0].Wait(ctx, wcs[:]); err != nil {
			return err
		}
		if wcs[0].Status != ib.Success {
			return fmt.Errorf("a write ended with %v", wcs[0].Status)
		}
	}
	return nil
}

// The exporter finds devices of other holders by their control sockets: after traffic
// the scrape has the device's own numbers, it is what Prometheus takes, and a thousand
// scrapes leave nothing behind.
func TestExporterOwnDevice(t *testing.T) {
	p := newOwnPair(t, 14817, "127.0.0.171", "127.0.0.172")
	if err := p.write(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	url, stop := servedAt(t, "exporter", "--listen", "127.0.0.1:0", "--per-qp", "3")
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/metrics"), "/") + "/metrics"
	all := families(t, body(t, url))
	pid := strconv.Itoa(os.Getpid())
	for i, dev := range p.dev {
		stats := dev.Stats()
		name := ""
		for _, m := range all["rdma_hw_raw_total"].GetMetric() { // the device with this many packets
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			if has["raw"] == "sent_bytes" && uint64(m.GetCounter().GetValue()) == stats.Get("sent_bytes") && strings.HasPrefix(has["device"], dev.Name()) {
				name = has["device"]
			}
		}
		if name == "" {
			t.Fatalf("device %d of process %s: nobody has sent %d bytes", i, pid, stats.Get("sent_bytes"))
		}
		for _, s := range stats {
			got := max(value(all, "rdma_hw_raw_total", "device", name, "raw", s.Name), value(all, "rdma_hw_level", "device", name, "raw", s.Name))
			if got != float64(s.Value) {
				t.Errorf("%s of %s: %v in the scrape, %d in the device", s.Name, name, got, s.Value)
			}
		}
		// A write is 16 packets of 4096 bytes at one end and its ACKs at the other.
		if sent := value(all, "rdma_tx_bytes_total", "device", name, "raw", "sent_bytes"); i == 0 && sent < 50<<16 {
			t.Errorf("%s has sent %v bytes, at least %d are data", name, sent, 50<<16)
		}
		if n := value(all, "rdma_qps", "device", name, "type", "RC", "state", "RTS"); n != 1 {
			t.Errorf("%s: %v RC queue pairs in RTS", name, n)
		}
		qpn := strconv.Itoa(int(p.qp[i].Num()))
		counts := p.qp[i].Counters()
		want, _ := counts.Get("sent_bytes")
		if got := value(all, "rdma_qp_raw_total", "device", name, "qpn", qpn, "raw", "sent_bytes"); got != float64(want) {
			t.Errorf("queue pair %s of %s: %v bytes in the scrape, %v in the queue pair", qpn, name, got, want)
		}
	}
	if v := value(all, "rdma_exporter_samples_left_out"); v != 0 {
		t.Errorf("%v samples are left out", v)
	}

	fds := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	for range 50 {
		body(t, url)
	}
	files, routines := fds(), runtime.NumGoroutine()
	for range 1000 {
		body(t, url)
	}
	settle := func(what string, was int, now func() int) {
		for until := time.Now().Add(time.Minute); now() > was+4; runtime.Gosched() {
			if time.Now().After(until) {
				t.Errorf("%d %s after 1,000 scrapes, %d before", now(), what, was)
				return
			}
		}
	}
	settle("file descriptors", files, fds)
	settle("goroutines", routines, runtime.NumGoroutine)
	if status := stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
