package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processor is the CPU time that a process has used so far, of all its threads, user
// and system. The kernel counts it in nanoseconds where /proc has hundredths of a second.
func processor(b *testing.B, pid int) time.Duration {
	b.Helper()
	const sched = 2 // CPUCLOCK_SCHED, the low bits of the number of a process's clock
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// program starts the test's program under another name and waits for a line that has a
// word in it. The program ends with the benchmark.
func program(b *testing.B, word string, args ...string) (pid int, line string) {
	b.Helper()
	cmd := exec.Command(os.Args[0], args[1:]...)
	cmd.Args[0] = args[0]
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	w.Close()
	out := bufio.NewReader(r)
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		r.Close()
	})
	for !strings.Contains(line, word) {
		if line, err = out.ReadString('\n'); err != nil {
			b.Fatalf("%v: %q, %v", args, line, err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return cmd.Process.Pid, line
}

// BenchmarkExporterCPU is the CPU time of a scrape by HTTP, each party a process of its
// own: the exporter, the process that holds the devices, and the client. The host is
// this one with all its files; whoever else holds devices on it is scraped, too.
func BenchmarkExporterCPU(b *testing.B) {
	for _, c := range []struct{ devices, shards, qps int }{{1, 1, 1}, {4, 1, 100}, {1, 32, 4000}} {
		b.Run(fmt.Sprintf("devices=%d,shards=%d,qps=%d", c.devices, c.shards, c.qps), func(b *testing.B) {
			holder, _ := program(b, "ready", holderProgram, fmt.Sprint(c.devices), fmt.Sprint(c.shards), fmt.Sprint(c.qps))
			exporter, line := program(b, " at ", "verbena", "exporter", "--listen", "127.0.0.1:0")
			_, url, _ := strings.Cut(strings.TrimSpace(line), " at ")
			url = strings.TrimSuffix(url, "/") + "/metrics"
			n := len(body(b, url))
			for range 20 { // heaps have their size then
				body(b, url)
			}
			parties := []struct {
				name string
				pid  int
				used time.Duration
			}{{"exporter", exporter, 0}, {"holder", holder, 0}, {"client", os.Getpid(), 0}}
			for i := range parties {
				parties[i].used = -processor(b, parties[i].pid)
			}
			for b.Loop() {
				body(b, url)
			}
			for i := range parties {
				parties[i].used += processor(b, parties[i].pid)
				b.ReportMetric(float64(parties[i].used.Microseconds())/1e3/float64(b.N), parties[i].name+"-ms")
			}
			b.ReportMetric(float64((parties[0].used+parties[1].used).Microseconds())/1e3/float64(b.N), "both-ms")
			b.ReportMetric(float64(n), "bytes")
		})
	}
}
