package pcap

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// Stats count packets.
type Stats struct {
	Written uint64
	Missed  uint64 // not recorded: the writer could not keep up
	Failed  uint64 // lost to an error of the file
}

// Writer is one pcapng file that one or more links write to. Its methods may
// be called from any goroutine.
type Writer struct {
	out io.WriteCloser

	mu     sync.Mutex // never held while the file is written
	made   int        // batches
	closed bool

	fileMu sync.Mutex // between the goroutine and Wrap
	ng     *pcapgo.NgWriter
	ifaces int

	free chan *batch
	full chan *batch // closed by Close; has room for every batch
	busy atomic.Int32
	done chan struct{}
	err  error // of the goroutine; read after done

	written, missed, failed atomic.Uint64
}

// NewWriter writes to w, which the Writer owns from now on, also when it
// returns an error. Nothing is written before the first link.
func NewWriter(w io.WriteCloser) (*Writer, error) {
	pw := &Writer{
		out: w, done: make(chan struct{}),
		free: make(chan *batch, maxBatches), full: make(chan *batch, maxBatches),
	}
	go pw.run()
	return pw, nil
}

// Wrap puts a recording link around inner, which the new link owns.
func (w *Writer) Wrap(inner link.Link, cfg Config) (*Link, error) {
	if cfg.Name == "" {
		cfg.Name = "verbena"
	}
	if cfg.Port == 0 {
		cfg.Port = Port
	}
	intf := pcapgo.NgInterface{
		Name: cfg.Name, OS: runtime.GOOS, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	w.fileMu.Lock()
	defer w.fileMu.Unlock()
	var err error
	switch {
	case closed:
		err = link.ErrClosed
	case w.ng == nil:
		opts := pcapgo.DefaultNgWriterOptions
		opts.SectionInfo.Application = "Verbena"
		w.ng, err = pcapgo.NewNgWriterInterface(w.out, intf, opts)
	default:
		_, err = w.ng.AddInterface(intf)
	}
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", cfg.Name, err)
	}
	c := inner.Caps()
	l := &Link{inner: inner, w: w, iface: w.ifaces, port: cfg.Port, ether: c.Encap == frame.Ethernet, ident: c.Idents}
	w.ifaces++
	return l, nil
}

// Stats returns the present counts.
func (w *Writer) Stats() Stats {
	return Stats{Written: w.written.Load(), Missed: w.missed.Load(), Failed: w.failed.Load()}
}

// Close writes what was handed over and closes the file. It returns the first
// error of the file. Links that still record lose what they record.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.full)
	}
	w.mu.Unlock()
	<-w.done
	return w.err
}

// take returns an empty batch, or nil if all are under way.
func (w *Writer) take() *batch {
	select {
	case b := <-w.free:
		return b
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.made == maxBatches {
		return nil
	}
	w.made++
	return newBatch()
}

// give hands a batch to the goroutine. It never blocks: the channel has room
// for all there are.
func (w *Writer) give(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.missed.Add(b.packets())
		return
	}
	w.busy.Add(1)
	w.full <- b
}

// idle reports whether the goroutine has nothing to do.
func (w *Writer) idle() bool { return w.busy.Load() == 0 }

// run encodes and writes batches until Close.
func (w *Writer) run() {
	defer close(w.done)
	var s synth
	for b := range w.full {
		w.fileMu.Lock()
		for i := range b.records {
			w.write(&s, b, &b.records[i])
		}
		if len(w.full) == 0 {
			w.fail(w.ng.Flush())
		}
		w.fileMu.Unlock()
		b.reset()
		w.free <- b
		w.busy.Add(-1)
	}
	w.fileMu.Lock()
	defer w.fileMu.Unlock()
	if w.ng != nil {
		w.fail(w.ng.Flush())
	}
	if err := w.out.Close(); w.err == nil {
		w.err = err
	}
}

// fail keeps the first error.
func (w *Writer) fail(err error) {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("write capture: %w", err)
	}
}

// write writes the packets of one record.
func (w *Writer) write(s *synth, b *batch, r *record) {
	for i, off := 0, r.from; off < r.to; i, off = i+1, off+r.seg {
		if w.err != nil {
			w.failed.Add(1)
			continue
		}
		data, comment := s.frame(r, b.data[off:min(off+r.seg, r.to)], i)
		opts := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}}
		if r.out {
			opts.Flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
		}
		if comment != "" {
			opts.Comments = []string{comment}
		}
		if b.missed != 0 {
			missed := b.missed
			opts.DropCount, b.missed = &missed, 0
		}
		err := w.ng.WritePacketWithOptions(gopacket.CaptureInfo{
			Timestamp: r.at, CaptureLength: len(data), Length: len(data), InterfaceIndex: b.iface,
		}, data, opts)
		if w.fail(err); err != nil {
			w.failed.Add(1)
		} else {
			w.written.Add(1)
		}
	}
}
