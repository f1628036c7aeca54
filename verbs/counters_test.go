package verbs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

var update = flag.Bool("update", false, "rewrite the table of docs/counters.md")

// Counters are read while both ends are busy; what is read only grows, the
// queue pairs' sum is the device's, and nothing is counted twice.
func TestCountersWhileRunning(t *testing.T) {
	e := newPairUDP(t, ib.RC)
	const messages = 300
	var done atomic.Bool
	var wg sync.WaitGroup
	for _, end := range []*end{e.a, e.b} {
		wg.Go(func() {
			var last, lastQP verbs.Counters
			for !done.Load() {
				now, qp := end.dev.Counters(), end.qp.Counters()
				for name, pair := range map[string][2]*verbs.Counters{"device": {&last, &now}, "QP": {&lastQP, &qp}} {
					for info, v := range pair[1].All() {
						if was, _ := pair[0].Get(info.Name); v < was && !info.Gauge {
							t.Errorf("%s of the %s fell from %d to %d", info.Name, name, was, v)
						}
					}
				}
				last, lastQP = now, qp
			}
		})
	}
	for i := range messages {
		e.b.recv(t, 0, 4096)
		e.a.send(t, 0, 4096)
		if wc := e.a.await(t); wc.Status != ib.Success {
			t.Fatalf("message %d: %v", i, wc.Status)
		}
		if wc := e.b.await(t); wc.Status != ib.Success {
			t.Fatalf("message %d: %v", i, wc.Status)
		}
	}
	done.Store(true)
	wg.Wait()
	get := func(c verbs.Counters, name string) uint64 {
		v, ok := c.Get(name)
		if !ok {
			t.Errorf("no counter %s", name)
		}
		return v
	}
	if n := get(e.a.qp.Counters(), "rdma_sends"); n != messages {
		t.Errorf("%d sends counted, want %d", n, messages)
	}
	if n := get(e.b.qp.Counters(), "recvs"); n != messages {
		t.Errorf("%d receives counted, want %d", n, messages)
	}
	for _, end := range []*end{e.a, e.b} {
		dev, qp := end.dev.Counters(), end.qp.Counters()
		for info, v := range qp.All() {
			if d := get(dev, info.Name); d != v {
				t.Errorf("%s is %d of the one queue pair, %d of the device", info.Name, v, d)
			}
		}
		// Stats says the same.
		for _, s := range end.dev.Stats() {
			if v := get(dev, s.Name); v != s.Value {
				t.Errorf("%s is %d, of Stats %d", s.Name, v, s.Value)
			}
		}
	}
	c := e.a.dev.Counters()
	if d := c.Sub(&c); get(d, "packets_tx") != 0 || get(d, "active_qps") != 1 {
		t.Errorf("difference with itself: %d packets, %d queue pairs", get(d, "packets_tx"), get(d, "active_qps"))
	}
}

func TestReadingCountersDoesNotAllocate(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	if n := testing.AllocsPerRun(100, func() {
		c := e.a.dev.Counters()
		d := e.a.qp.Counters()
		if _, ok := c.Get("sent_pkts"); !ok {
			t.Error("no sent_pkts")
		}
		_ = d
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// docs/counters.md has the table as the program has it.
func TestCounterTableOfTheDocument(t *testing.T) {
	const path, begin, end = "../docs/counters.md", "<!-- table -->\n", "<!-- end of table -->\n"
	var w strings.Builder
	w.WriteString("| canonical | mlx5 | rxe | unit | of a QP | what, where it is counted |\n|---|---|---|---|---|---|\n")
	for _, c := range verbs.CounterList() {
		qp := ""
		if c.PerQP {
			qp = "yes"
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s |\n", c.Name, c.MLX5, c.Rxe, c.Unit, qp, c.What)
	}
	text, err := os.ReadFile(path)
	must(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := head + begin + w.String() + end + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the program: run go test ./verbs -run TestCounterTableOfTheDocument -update", path)
	}
	must(t, os.WriteFile(path, []byte(want), 0o644))
}

// BenchmarkCountersWhileRunning is what reading the counters does to traffic:
// compare the cases.
func BenchmarkCountersWhileRunning(b *testing.B) {
	for _, read := range []bool{false, true} {
		b.Run(fmt.Sprintf("read=%v", read), func(b *testing.B) {
			e := newPairMem(b, ib.RC, nil)
			const n = 64 << 10
			b.SetBytes(n)
			i := 0
			for b.Loop() {
				// One look for 64 messages, 4 MiB: more than ten thousand a second.
				if i++; read && i%64 == 0 {
					_ = e.a.dev.Counters()
					_ = e.b.dev.Counters()
				}
				must(b, e.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: e.a.mr.SGE(0, n), Remote: e.a.peer.At(0)}))
				e.a.await(b)
			}
		})
	}
}
