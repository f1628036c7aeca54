package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table is a tabwriter with a heading.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, heading ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, "  "+strings.Join(cells, "\t")) }
func (t *table) flush()              { _ = t.w.Flush() }

func printBandwidth(out io.Writer, rs []result) {
	fmt.Fprintf(out, "\nBandwidth: messages of %d KiB (ATOMIC: 8 bytes), one connection, both ends on this host\n\n", messageSize>>10)
	t := newTable(out, "", "Gb/s", "messages/s", "CPU s/GB", "system calls/message", "copies/message")
	for _, r := range rs {
		sec := r.elapsed.Seconds()
		rate, cpu := fmt.Sprintf("%.1f", float64(r.bytes)*8/1e9/sec), "-"
		if r.cpu > 0 {
			cpu = fmt.Sprintf("%.2f", r.cpu.Seconds()/(float64(r.bytes)/1e9))
		}
		if r.bytes/r.messages < 1024 {
			rate, cpu = "-", "-"
		}
		copies := "2 (derived: into and out of the kernel)"
		if r.copied > 0 {
			copies = fmt.Sprintf("%.2f counted + 2 of the kernel's sockets (derived)", float64(r.copied)/float64(r.bytes))
		} else if strings.HasPrefix(r.name, "RC") {
			copies = "0 counted"
		}
		t.row(r.name, rate, fmt.Sprintf("%.0f", float64(r.messages)/sec),
			cpu, fmt.Sprintf("%.2f", float64(r.syscalls)/float64(r.messages)), copies)
	}
	t.flush()
	fmt.Fprintln(out, "\n  A real RNIC makes no copy and no system call: it reads and writes the registered memory itself. A software RNIC")
	fmt.Fprintln(out, "  pays one copy a side (fused with the CRC) and shares each system call among the packets of a run.")
}

func printLatency(out io.Writer, rs []result) {
	fmt.Fprintf(out, "\nRound trips of %d bytes (ATOMIC: 8); the RNICs poll unless said, the TCP socket blocks\n\n", pingSize)
	t := newTable(out, "", "median µs", "p99 µs", "system calls/message")
	for _, r := range rs {
		t.row(r.name, usec(r.median), usec(r.p99), fmt.Sprintf("%.2f", float64(r.syscalls)/float64(r.messages)))
	}
	t.flush()
}

func usec(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1000) }
