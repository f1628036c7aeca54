package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// QueuesConfig says how the experiment on receive queues goes.
type QueuesConfig struct {
	Client, Server netip.Addr
	Port           uint16
	Queues         int // of the server, 2 to verbs.MaxShards
	QPs            int // connections, 1 to 1,024
	Messages       int // of 64 KiB, on each
	Out            io.Writer
}

const queuesMaxQPs = 1024

func (c *QueuesConfig) check() error {
	switch {
	case c.Queues < 2 || c.Queues > verbs.MaxShards:
		return fmt.Errorf("%d queues, can be 2 to %d", c.Queues, verbs.MaxShards)
	case c.QPs < 1 || c.QPs > queuesMaxQPs:
		return fmt.Errorf("%d connections, can be 1 to %d", c.QPs, queuesMaxQPs)
	case c.Messages < 1:
		return fmt.Errorf("%d messages, must be 1 or more", c.Messages)
	}
	return nil
}

// QueuesRow is what one way to choose a queue has led to.
type QueuesRow struct {
	By      verbs.Steering
	Queues  []verbs.Queue // of the server
	Elapsed time.Duration
	Bytes   uint64
}

// Fullest returns the part of all packets that came to the fullest queue.
func (r *QueuesRow) Fullest() float64 {
	var most, sum uint64
	for i := range r.Queues {
		most, sum = max(most, r.Queues[i].SocketPackets), sum+r.Queues[i].SocketPackets
	}
	return float64(most) / float64(max(sum, 1))
}

// Misdirected returns how many packets came to another queue than their queue
// pair's.
func (r *QueuesRow) Misdirected() (n uint64) {
	for i := range r.Queues {
		n += r.Queues[i].Misdirected
	}
	return n
}

// Queues sends WRITEs from one host to another that has several receive queues,
// and chooses the queue of a packet in three ways: by the addresses, as a hash
// that leaves out the ports does; by the addresses and UDP ports, as RSS for
// RoCEv2 does; by the destination QPN, as our own device does. It prints and
// returns which queues the packets came to.
func Queues(ctx context.Context, cfg QueuesConfig) (rows []QueuesRow, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	fmt.Fprintf(cfg.Out, "%d connections from %v to %v, which has %d receive queues; WRITEs of %d KiB\n\n", cfg.QPs, cfg.Client, cfg.Server, cfg.Queues, messageSize>>10)
	head := []string{"queue chosen by"}
	for i := range min(cfg.Queues, 8) {
		head = append(head, fmt.Sprintf("queue %d", i))
	}
	t := newTable(cfg.Out, append(head, "fullest", "handed over", "Gb/s")...)
	for _, how := range []verbs.Steering{verbs.SteerAddresses, verbs.SteerPorts, verbs.SteerQPN} {
		r, err := queuesRow(ctx, &cfg, how)
		if err != nil {
			return rows, fmt.Errorf("queue chosen by %v: %w", how, err)
		}
		rows = append(rows, r)
		cells := []string{how.String()}
		for i := range r.Queues[:min(cfg.Queues, 8)] {
			cells = append(cells, fmt.Sprint(r.Queues[i].SocketPackets))
		}
		t.row(append(cells, fmt.Sprintf("%.0f %%", 100*r.Fullest()), fmt.Sprint(r.Misdirected()),
			fmt.Sprintf("%.1f", float64(r.Bytes)*8/1e9/r.Elapsed.Seconds()))...)
	}
	t.flush()
	fmt.Fprint(cfg.Out, `
A hash that ignores the ports sees one flow: one queue, and one core, gets everything, however many there are. UDP source
ports that differ by queue pair are what spreads RoCEv2. "Handed over" packets came to another queue than their queue
pair's; they are copied and not lost. What one full queue costs where there are many cores:
  verbena sim run rss-off
  verbena sim run rss-off --set hosts.host0.nic.rss=udp
`)
	return rows, nil
}

func queuesRow(ctx context.Context, cfg *QueuesConfig, how verbs.Steering) (r QueuesRow, err error) {
	a, err := verbs.Open(verbs.Config{Addr: cfg.Client, Port: cfg.Port})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := verbs.Open(verbs.Config{Addr: cfg.Server, Port: cfg.Port, Shards: cfg.Queues, Steering: how})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	from, err := newFan(a, cfg.QPs)
	if err != nil {
		return r, err
	}
	to, err := newFan(b, cfg.QPs)
	if err != nil {
		return r, err
	}
	for i := range cfg.QPs {
		psnA, psnB := ib.PSN(rand.Uint32())&ib.PSNMask, ib.PSN(rand.Uint32())&ib.PSNMask
		x, y := from.end(i), to.end(i)
		if err := errors.Join(x.connect(y, psnA, psnB), y.connect(x, psnB, psnA)); err != nil {
			return r, err
		}
	}
	start := time.Now()
	if err := from.write(ctx, to.mr, cfg.Messages); err != nil {
		return r, err
	}
	return QueuesRow{By: how, Queues: b.Queues(), Elapsed: time.Since(start), Bytes: uint64(cfg.QPs) * uint64(cfg.Messages) * messageSize}, nil
}

// fan is a device with many queue pairs that share one completion queue and one
// region, in which each has a place of its own: shards write at the same time.
type fan struct {
	dev *verbs.Device
	cq  *verbs.CQ
	mr  *verbs.MR
	qps []*verbs.QP
}

func newFan(dev *verbs.Device, n int) (f *fan, err error) {
	f = &fan{dev: dev}
	pd := dev.AllocPD()
	if f.cq, err = dev.CreateCQ(verbs.CQConfig{Depth: n * fanDepth, Vector: verbs.SpreadVectors}); err != nil {
		return nil, err
	}
	if f.mr, err = pd.RegisterMR(make([]byte, n*messageSize), ib.LocalWrite|ib.RemoteAll); err != nil {
		return nil, err
	}
	for range n {
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: f.cq, RecvCQ: f.cq, Cap: ib.QPCap{MaxSendWR: fanDepth, MaxRecvWR: 1}})
		if err != nil {
			return nil, err
		}
		f.qps = append(f.qps, qp)
	}
	return f, nil
}

// fanDepth is how many messages a queue pair has posted.
const fanDepth = 2

// end is queue pair i as an end.
func (f *fan) end(i int) *end { return &end{dev: f.dev, cq: f.cq, mr: f.mr, qp: f.qps[i]} }

// write sends n messages on each queue pair and waits for them.
func (f *fan) write(ctx context.Context, to *verbs.MR, n int) error {
	byQPN := make(map[ib.QPN]int, len(f.qps))
	left := make([]int, len(f.qps))
	post := func(i int) error {
		if left[i] == 0 {
			return nil
		}
		left[i]--
		return f.qps[i].PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: f.mr.SGE(0, messageSize), Remote: to.Remote(i * messageSize)})
	}
	for i, qp := range f.qps {
		byQPN[qp.Num()], left[i] = i, n
		for range fanDepth {
			if err := post(i); err != nil {
				return err
			}
		}
	}
	var wcs [32]ib.WC
	for done := 0; done < n*len(f.qps); {
		k, err := f.cq.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		if err := check(wcs[:k]); err != nil {
			return err
		}
		for i := range wcs[:k] {
			if err := post(byQPN[wcs[i].QPN]); err != nil {
				return err
			}
		}
		done += k
	}
	return nil
}
