package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/link/pcap"
)

// lossyBytes is how much the lossy transfer moves each way: small enough for a
// capture that opens at once.
const lossyBytes = 4 << 20

// lossRules lose one packet in a hundred of either direction.
const lossRules = "loss 1%; loss 1% out"

// lossy repeats WRITE, READ and ATOMIC while packets are lost, and compares
// the memories.
func lossy(ctx context.Context, cfg *Config) (err error) {
	rules, err := fault.Parse(lossRules)
	if err != nil {
		return err
	}
	var file io.WriteCloser = discard{}
	if cfg.Capture != "" {
		if file, err = os.Create(cfg.Capture); err != nil {
			return err
		}
	}
	var faults *fault.Link
	var wrapErr error
	d, err := openDuo(cfg, func(inner link.Link) link.Link {
		recorded, err := pcap.New(inner, file, pcap.Config{Name: "verbena", Port: cfg.Port})
		if err != nil {
			wrapErr = err
			return inner
		}
		// What is lost on the way in is in the capture, and what is lost on the
		// way out is not: as a capture at the receiving host would have it.
		faults, err = fault.New(recorded, fault.Config{Rules: rules, Seed: cfg.Seed})
		if err != nil {
			wrapErr = err
			return recorded
		}
		return faults
	})
	if err = errors.Join(err, wrapErr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()

	steps := newSteps(cfg.Status, "losing packets", 3)
	r, err := d.traffic(ctx, "transfer with loss", d.b.progress, func() (uint64, uint64, error) { return d.lossyTransfer(ctx, cfg.Seed, steps) })
	steps.done()
	if err != nil {
		return err
	}
	c := faults.Counts()
	stats := d.a.dev.Stats()
	fmt.Fprintf(cfg.Out, "\nThe same with 1 %% of the packets lost each way (seed %d): %d MiB by WRITE, %d MiB back by READ, %d ATOMICs\n\n",
		cfg.Seed, lossyBytes>>20, lossyBytes>>20, lossyAtomics)
	t := newTable(cfg.Out, "packets seen", "lost", "sent again", "sequence NAKs", "timeouts", "duplicates answered", "Gb/s", "data")
	t.row(fmt.Sprint(c.Seen), fmt.Sprint(c.Dropped), fmt.Sprint(stats.Get("retransmitted")), fmt.Sprint(stats.Get("rcvd_seq_err")),
		fmt.Sprint(stats.Get("local_ack_timeout_err")), fmt.Sprint(d.b.dev.Stats().Get("duplicate_request")),
		fmt.Sprintf("%.2f", float64(r.bytes)*8/1e9/r.elapsed.Seconds()), "intact: every byte compared, every ATOMIC executed once")
	t.flush()
	if c.Dropped == 0 || stats.Get("retransmitted") == 0 {
		return errors.New("no packet was lost and sent again: the demonstration shows nothing")
	}
	if cfg.Capture != "" {
		fmt.Fprintf(cfg.Out, "\nCapture of that transfer, one packet a frame: %s\n  wireshark %[1]s        verbena decode %[1]s\n", cfg.Capture)
	}
	return nil
}

const lossyAtomics = 256

// discard is where the capture goes that nobody wants.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

// lossyTransfer writes the region of a to b piece by piece, reads it back, and
// counts with atomics. The lower half of the region is the source, the upper
// half the copy.
func (d *duo) lossyTransfer(ctx context.Context, seed uint64, steps *steps) (bytesMoved, messages uint64, err error) {
	const half = regionBytes / 2
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	mine, theirs := d.a.mem.Bytes(), d.b.mem.Bytes()
	for moved := 0; moved < lossyBytes; moved += half {
		_, _ = rng.Read(mine[:half])
		if err := d.a.inPieces(ctx, ib.Write, 0, 0, half); err != nil {
			return 0, 0, err
		}
		if err := d.a.inPieces(ctx, ib.Read, half, 0, half); err != nil {
			return 0, 0, err
		}
		// The READ that has come back orders this look at the far memory behind
		// the WRITEs.
		if !bytes.Equal(mine[:half], mine[half:]) || !bytes.Equal(mine[:half], theirs[:half]) {
			return 0, 0, errors.New("the data differ")
		}
		if moved == lossyBytes/2 {
			steps.next()
		}
	}
	steps.next()
	counter := d.b.flagAt(0)
	counter.Store(0)
	for i := range uint64(lossyAtomics) {
		if err := d.a.roundTrip(ib.FetchAdd, 0); err != nil {
			return 0, 0, err
		}
		if got := d.a.flagAt(outOff).Load(); got != i {
			return 0, 0, fmt.Errorf("ATOMIC %d returned %d", i, got)
		}
	}
	steps.next()
	if n := counter.Load(); n != lossyAtomics {
		return 0, 0, fmt.Errorf("%d ATOMICs changed the counter to %d", lossyAtomics, n)
	}
	return 2 * lossyBytes, 0, nil
}

// inPieces moves n bytes from offset local to offset remote, or back, in
// messages of messageSize, several in flight.
func (e *end) inPieces(ctx context.Context, op ib.WROp, local, remote, n int) error {
	posted, done := 0, 0
	for done < n/messageSize {
		for posted < n/messageSize && posted-done < sendDepth {
			off := posted * messageSize
			err := e.qp.PostSend(ib.SendWR{Op: op, Flags: ib.Signaled, SGL: e.mr.SGE(local+off, messageSize), Remote: e.peer.Remote(remote + off)})
			if err != nil {
				return err
			}
			posted++
		}
		k, err := e.cq.Wait(ctx, e.wcs[:])
		if err != nil {
			return err
		}
		if err := check(e.wcs[:k]); err != nil {
			return err
		}
		done += k
	}
	return nil
}
