package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/test/interop/netns"
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

// program starts the test's program under another name in a namespace and waits for a line
// that has a word in it. The program ends with the benchmark.
func program(b *testing.B, in *netns.Space, word string, args ...string) (pid int, line string) {
	b.Helper()
	cmd := exec.Command(os.Args[0], args[1:]...)
	cmd.Args[0] = args[0]
	end, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := in.Start(cmd); err != nil {
		b.Fatal(err)
	}
	w.Close()
	out := bufio.NewReader(r)
	b.Cleanup(func() {
		end.Close()
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

// rig is an exporter, and a client of it that keeps its connection, as Prometheus does.
type rig struct {
	exporter int // its process
	client   *http.Client
	url      string
}

func newRig(b *testing.B, in *netns.Space, args ...string) *rig {
	b.Helper()
	r := &rig{}
	var line string
	r.exporter, line = program(b, in, " at ", append([]string{"verbena", "exporter", "--listen", "127.0.0.1:0"}, args...)...)
	_, url, _ := strings.Cut(strings.TrimSpace(line), " at ")
	r.url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/metrics") + "/metrics"
	dial := func(_ context.Context, network, addr string) (c net.Conn, err error) {
		in.Do(func() { c, err = net.Dial(network, addr) })
		return c, err
	}
	t := &http.Transport{DialContext: dial}
	b.Cleanup(t.CloseIdleConnections)
	r.client = &http.Client{Transport: t}
	return r
}

// scrape returns how long the answer is.
func (r *rig) scrape(b *testing.B) int64 {
	res, err := r.client.Get(r.url)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return n
}

// measure reports the CPU time of a scrape by party: the exporter, the process that holds
// the devices if there is one, the two together, and the client. What else is measured is
// how fast the processor was meanwhile: the CPU time of hashing a megabyte.
func (r *rig) measure(b *testing.B, holder int) {
	b.Helper()
	for range 20 { // heaps have their size then
		r.scrape(b)
	}
	var n int64
	exporter, held, client := -processor(b, r.exporter), time.Duration(0), -processor(b, os.Getpid())
	if holder != 0 {
		held = -processor(b, holder)
	}
	for b.Loop() {
		n = r.scrape(b)
	}
	client += processor(b, os.Getpid())
	exporter += processor(b, r.exporter)
	if holder != 0 {
		held += processor(b, holder)
	}
	ms := func(d time.Duration, n int) float64 { return float64(d.Microseconds()) / 1e3 / float64(n) }
	b.ReportMetric(ms(exporter, b.N), "exporter-ms")
	b.ReportMetric(ms(held, b.N), "holder-ms")
	b.ReportMetric(ms(exporter+held, b.N), "both-ms")
	b.ReportMetric(ms(client, b.N), "client-ms")
	b.ReportMetric(float64(n), "bytes")
	b.ReportMetric(0, "ns/op")
	const rounds = 50
	work, known := -processor(b, os.Getpid()), make([]byte, 1<<20)
	for range rounds {
		known[0] = sha256.Sum256(known)[0]
	}
	b.ReportMetric(ms(work+processor(b, os.Getpid()), rounds), "sha256-ms")
}

// BenchmarkExporterCPU is the CPU time of a scrape by HTTP of devices of ours, each party a
// process of its own, in a network namespace where nobody else holds devices. The files
// are this host's.
func BenchmarkExporterCPU(b *testing.B) {
	for _, c := range []struct{ devices, shards, qps int }{{1, 1, 1}, {1, 1, 400}, {4, 1, 100}, {4, 4, 1000}, {1, 32, 4000}} {
		b.Run(fmt.Sprintf("devices=%d,shards=%d,qps=%d", c.devices, c.shards, c.qps), func(b *testing.B) {
			in := netns.New(b)
			holder, _ := program(b, in, "ready", holderProgram, fmt.Sprint(c.devices), fmt.Sprint(c.shards), fmt.Sprint(c.qps))
			newRig(b, in).measure(b, holder)
		})
	}
}

// BenchmarkExporterFiles is the CPU time of a scrape of a host of hardware: eight devices
// with the counters of mlx5, and tables of GIDs and partitions that a scrape need not read.
func BenchmarkExporterFiles(b *testing.B) {
	root := b.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, "class/infiniband", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for d := range 8 {
		dev := fmt.Sprintf("mlx5_%d/", d)
		port := dev + "ports/1/"
		for name, text := range map[string]string{
			dev + "node_type": "1: CA", dev + "node_guid": "946d:ae03:0090:7832", dev + "fw_ver": "28.39.1002", dev + "board_id": "MT_0000000838", dev + "hca_type": "MT4129",
			port + "state": "4: ACTIVE", port + "phys_state": "5: LinkUp", port + "rate": "400 Gb/sec (4X NDR)", port + "link_layer": "Ethernet", port + "hw_counters/lifespan": "10",
			port + "gid_attrs/ndevs/0": "lo", port + "gid_attrs/types/0": "RoCE v2",
		} {
			write(name, text)
		}
		for i := range 256 {
			write(port+fmt.Sprintf("gids/%d", i), fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a00:%04x", i+1))
		}
		for i := range 128 {
			write(port+fmt.Sprintf("pkeys/%d", i), "0xffff")
		}
		for i := range 22 {
			write(port+fmt.Sprintf("counters/port_counter_%d", i), "12345678901")
		}
		for i := range 45 {
			write(port+fmt.Sprintf("hw_counters/hw_counter_%d", i), "12345678901")
		}
	}
	in := netns.New(b)
	newRig(b, in, "--sysfs-root", root).measure(b, 0)
}
