package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Config says where the demo runs and for how long. Zero fields take the
// defaults given.
type Config struct {
	Client  netip.Addr    // 127.0.0.1
	Server  netip.Addr    // 127.0.0.2
	Port    uint16        // 4791
	Measure time.Duration // of each bandwidth row, 1 s; a latency row takes half
	Capture string        // file for the pcapng; empty: none
	Seed    uint64        // of the loss; 0: 1
	Out     io.Writer     // the report
	Status  io.Writer     // progress; nil: none
}

func (c *Config) setDefaults() {
	if !c.Client.IsValid() {
		c.Client = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if !c.Server.IsValid() {
		c.Server = netip.AddrFrom4([4]byte{127, 0, 0, 2})
	}
	if c.Port == 0 {
		c.Port = verbs.DefaultPort
	}
	if c.Measure == 0 {
		c.Measure = time.Second
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Status == nil {
		c.Status = io.Discard
	}
}

// messageSize is the size of the bandwidth rows.
const messageSize = 64 << 10

// Run plays the acts in order and writes the report. It returns the first
// error; what was made is closed in any case.
func Run(ctx context.Context, cfg Config) error {
	cfg.setDefaults()
	if err := canCreate(cfg.Capture); err != nil {
		return err
	}
	acts := []func(context.Context, *Config) error{devices, compare, lossy, fabric}
	for _, act := range acts {
		if err := act(ctx, &cfg); err != nil {
			return err
		}
	}
	return nil
}

// canCreate reports why a file could not be written in the last act, before
// anybody has waited for the first ones. It leaves everything as it was.
func canCreate(name string) error {
	info, statErr := os.Stat(name)
	if name == "" || statErr == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if err = f.Close(); errors.Is(statErr, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// devices shows the two software RNICs.
func devices(_ context.Context, cfg *Config) error {
	d, err := openDuo(cfg, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(cfg.Out, "Two software RNICs in this process, RoCEv2 over UDP port %d. No kernel module, no root.\n\n", cfg.Port)
	t := newTable(cfg.Out, "host", "device", "GUID", "state", "MTU", "GID index", "GID", "type", "memory")
	for i, e := range []*end{d.a, d.b} {
		attr, port := e.dev.Attr(), e.dev.Port()
		for _, g := range e.dev.GIDs() {
			t.row(fmt.Sprintf("%c", 'A'+i), attr.Name, fmt.Sprintf("%016x", attr.GUID), port.State.String(), port.ActiveMTU.String(),
				fmt.Sprint(g.Index), g.GID.String(), g.Type.String(), e.mem.String())
		}
	}
	t.flush()
	return d.close()
}

// compare runs the four operations beside a TCP socket.
func compare(ctx context.Context, cfg *Config) error {
	d, err := openDuo(cfg, nil)
	if err != nil {
		return err
	}
	defer d.close()

	note := busy() // before our own work counts
	steps := newSteps(cfg.Status, "measuring", 10)
	half := cfg.Measure / 2
	var bw, lat []result
	run := func(to *[]result, f func() (result, error)) {
		if err == nil {
			var r result
			if r, err = f(); err == nil {
				*to = append(*to, r)
			}
			steps.next()
		}
	}
	bandwidth := func(name string, size int, op ib.WROp) func() (result, error) {
		return func() (result, error) { return d.bandwidth(ctx, name, size, cfg.Measure, op) }
	}
	latency := func(name string, op ib.WROp) func() (result, error) {
		return func() (result, error) { return d.roundTrips(ctx, name, op, half) }
	}
	run(&bw, func() (result, error) { return tcpBandwidth(ctx, cfg, "TCP socket", messageSize, cfg.Measure) })
	run(&bw, bandwidth("RC WRITE", messageSize, ib.Write))
	run(&bw, bandwidth("RC READ", messageSize, ib.Read))
	run(&bw, bandwidth("RC SEND", messageSize, ib.Send))
	run(&bw, bandwidth("RC ATOMIC", 8, ib.FetchAdd))
	run(&lat, func() (result, error) { return tcpRoundTrips(ctx, cfg, "TCP socket", half) })
	run(&lat, latency("RC WRITE", ib.Write))
	run(&lat, latency("RC READ", ib.Read))
	run(&lat, latency("RC ATOMIC", ib.FetchAdd))
	// SENDs leave receives posted and answers unread, so each ping-pong of SENDs
	// has a pair of its own.
	for _, block := range []bool{false, true} {
		name := "RC SEND"
		if block {
			name += ", blocking"
		}
		run(&lat, func() (result, error) {
			fresh, err := d.reopen(cfg)
			if err != nil {
				return result{}, err
			}
			defer fresh.close()
			return fresh.sendRoundTrips(ctx, name, half, block)
		})
	}
	steps.done()
	if err != nil {
		return err
	}
	printBandwidth(cfg.Out, bw)
	printLatency(cfg.Out, lat)
	fmt.Fprint(cfg.Out, note)
	return d.close()
}

// reopen closes the pair and opens a fresh one on the same addresses.
func (d *duo) reopen(cfg *Config) (*duo, error) {
	if err := d.close(); err != nil {
		return nil, err
	}
	d.a, d.b = nil, nil
	return openDuo(cfg, nil)
}
