package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/ib"
)

func TestPeakEqualsTheSquareOfAllPairs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		n, mod := 1+rng.IntN(60), 1+rng.IntN(5)
		posted, completed := make([]int64, n), make([]int64, n)
		now := rng.Int64N(1e12)
		for i := range n {
			now += rng.Int64N(1000)
			posted[i] = now
		}
		now = posted[0] + 500
		for i := range n {
			now = max(now, posted[i]) + 1 + rng.Int64N(1000)
			if (i+1)%mod == 0 || i == n-1 {
				completed[i] = now
			}
		}
		var want float64
		for i := range n {
			for j := i; j < n; j++ {
				if completed[j] > posted[i] {
					want = max(want, float64(j-i+1)/float64(completed[j]-posted[i])*1e9)
				}
			}
		}
		if got := Peak(posted, completed); math.Abs(got-want) > want*1e-9 {
			t.Fatalf("n %d mod %d: peak %v, want %v", n, mod, got, want)
		}
	}
}

func TestNumbersAreSane(t *testing.T) {
	// Clocks that stand still or step back must not give negative or infinite
	// rates.
	for name, b := range map[string]Bandwidth{
		"no time":   NewBandwidth(65536, 1000, 0),
		"backwards": NewBandwidth(65536, 1000, -5*time.Second),
		"nothing":   NewBandwidth(65536, 0, time.Second),
	} {
		for _, v := range []float64{b.BytesPerSec, b.MsgPerSec} {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %+v", name, b)
			}
		}
	}
	for name, posted := range map[string][]int64{
		"one": {5}, "two": {5, 5}, "backwards": {10, 9, 8, 7, 6}, "few": {1, 2, 3}, "none": nil,
	} {
		l := NewLatency(2, posted, 2)
		for _, d := range []time.Duration{l.Min, l.Max, l.Typical, l.Average, l.Stdev, l.P99, l.P999} {
			if d < 0 {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
	if l := NewLatencyOver(2, 0, time.Second, 2); l.Average != 0 || l.PerSec != 0 {
		t.Errorf("no operation: %+v", l)
	}
	if p := Peak([]int64{5, 6}, []int64{5, 6}); math.IsInf(p, 0) || p < 0 {
		t.Errorf("peak of no time: %v", p)
	}
}

func TestPeakWindow(t *testing.T) {
	w := PeakWindow{Width: 10 * time.Millisecond}
	now := int64(0)
	w.Add(now, 1)
	for i := range 100 {
		now += int64(time.Millisecond)
		n := uint64(10)
		if i >= 40 && i < 50 {
			n = 100
		}
		w.Add(now, n)
	}
	if got := w.PerSec(); got != 100_000 {
		t.Errorf("peak %v messages a second, want 100000", got)
	}
	if (&PeakWindow{Width: 1}).PerSec() != 0 {
		t.Error("a window without samples has a peak")
	}
}

func TestLatencyNumbers(t *testing.T) {
	posted := []int64{0}
	for i := range 100 { // round trips of 2, 4, … 200 µs
		posted = append(posted, posted[i]+int64(i+1)*2000)
	}
	l := NewLatency(2, posted, 2)
	us := time.Microsecond
	if l.Iters != 101 || l.Min != us || l.Max != 99*us || l.Typical != 49500 || l.P99 != 99*us || l.P999 != 99*us {
		t.Errorf("%+v", l)
	}
	if got, want := l.Average, time.Duration(49500); got != want {
		t.Errorf("average %v, want %v", got, want)
	}
	if s := Usec(l.Stdev); math.Abs(s-28.29) > 0.01 {
		t.Errorf("standard deviation %v", s)
	}
	if s := string(l.AppendPlot(nil)); strings.Count(s, "█") < 20 || !strings.Contains(s, "p99.9 100.00") {
		t.Errorf("plot:\n%s", s)
	}
}

// TestRowsAsDebianPrintsThem reads what Debian's programs printed, formats the
// numbers of every row again, and wants the same bytes.
func TestRowsAsDebianPrintsThem(t *testing.T) {
	files, err := filepath.Glob("testdata/*.out")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded output: %v", err)
	}
	heads := map[string]bool{headMB: false, headGb: false, headLatency: false, headLatOver: false}
	rows := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head := ""
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, " #bytes") {
				if _, ok := heads[line]; !ok {
					t.Errorf("%s: unknown head %q", f, line)
				}
				heads[line], head = true, line
				continue
			}
			if head == "" || !strings.HasPrefix(line, " ") {
				continue
			}
			if strings.Contains(line, "nan") {
				continue // perftest's standard deviation overflows
			}
			n := numbers(line)
			d := func(i int) time.Duration { return time.Duration(math.Round(n[i] * 1000)) }
			var got string
			switch head {
			case headMB:
				r := Bandwidth{uint64(n[0]), uint64(n[1]), n[3] * (1 << 20), n[2] * (1 << 20), n[4] * 1e6}
				got = string(r.Append(nil, false))
			case headGb:
				r := Bandwidth{uint64(n[0]), uint64(n[1]), n[3] * 1e9 / 8, n[2] * 1e9 / 8, n[4] * 1e6}
				got = string(r.Append(nil, true))
			case headLatency:
				r := Latency{Bytes: uint64(n[0]), Iters: uint64(n[1]), Min: d(2), Max: d(3), Typical: d(4), Average: d(5), Stdev: d(6), P99: d(7), P999: d(8)}
				got = string(r.Append(nil, false))
			case headLatOver:
				r := Latency{Bytes: uint64(n[0]), Iters: uint64(n[1]), Average: d(2), PerSec: n[3]}
				got = string(r.Append(nil, true))
			}
			rows++
			if got != line {
				t.Errorf("%s:\n got %q\nwant %q", f, got, line)
			}
		}
	}
	for h, seen := range heads {
		if !seen {
			t.Errorf("no recording has the head %q", h)
		}
	}
	t.Logf("%d rows", rows)
}

func numbers(line string) []float64 {
	var n []float64
	for _, f := range strings.Fields(line) {
		var v float64
		_, _ = fmt.Sscan(f, &v)
		n = append(n, v)
	}
	return n
}

func TestHeaderAsDebianPrintsIt(t *testing.T) {
	b, err := os.ReadFile("testdata/send_bw_both.out")
	if err != nil {
		t.Fatal(err)
	}
	h := Header{
		Title: Title("Send", false, true, 1), Device: "rxe0", QPs: 1, Connection: "RC", TxDepth: 5, RxDepth: 6, CQMod: 1,
		MTU: 4096, GIDIndex: 1,
	}
	got := string(h.Append(nil))
	want := strings.ReplaceAll(string(b), "PCIe relax order: ON", "PCIe relax order: Unsupported")
	if !strings.Contains(want, got) {
		t.Errorf("header differs\n%s", cmp.Diff(want, got))
	}
}

func TestEndpointAsDebianPrintsIt(t *testing.T) {
	b, err := os.ReadFile("testdata/write_bw.out")
	if err != nil {
		t.Fatal(err)
	}
	e := Endpoint{
		Side: "local", QPN: 0x11, PSN: 0xa1cd0e, RKey: 0x2a5, Addr: 0x563c8ff04000, ShowRKey: true,
		GID: ib.GID{10: 255, 11: 255, 12: 10, 13: 77, 15: 12},
	}
	if got := string(e.Append(nil)); !strings.Contains(string(b), got) {
		t.Errorf("%s\nis not in\n%s", got, b)
	}
}

func TestLinkRate(t *testing.T) {
	for _, tc := range []struct{ mbps, width, speed int }{{0, 1, 1}, {1000, 1, 1}, {10000, 1, 4}, {25000, 1, 32}, {100000, 1, 128}, {40000, 2, 4}} {
		if w, s := LinkRate(tc.mbps); w != tc.width || s != tc.speed {
			t.Errorf("%d Mb/s: width %d speed %d, want %d %d", tc.mbps, w, s, tc.width, tc.speed)
		}
	}
}

func TestDocumentIsAlwaysJSON(t *testing.T) {
	bad := Bandwidth{BytesPerSec: math.NaN(), PeakBytesPerSec: math.Inf(1), MsgPerSec: math.NaN()}
	for name, d := range map[string]Document{
		"empty":     {Program: "write_bw"},
		"error":     {Program: "write_bw", Error: "peer: \"closed\"\nthe connection"},
		"bandwidth": {Results: []any{bad.JSON(), NewBandwidth(1, 2, 3).JSON()}},
		"latency":   {Results: []any{NewLatency(2, []int64{1, 2, 3}, 2).JSON(false), NewLatencyOver(2, 5, 7, 1).JSON(true)}},
	} {
		var v map[string]any
		if err := json.Unmarshal(d.Append(nil), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := v["results"].([]any); !ok {
			t.Errorf("%s: results is not a list", name)
		}
	}
	f := FileJSON{Info: Header{Title: "x"}.Info(), Results: NewBandwidth(1, 2, 3).FileResult(true)}
	if !json.Valid(f.Append(nil)) {
		t.Error("out_json is not JSON")
	}
}
