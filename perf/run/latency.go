package run

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/report"
)

// Latency is a latency test of one size over one lane. Op decides its kind:
// WRITE answers WRITE and both ends poll memory, SEND answers SEND, and READ and
// ATOMIC are only waited for.
type Latency struct {
	Common
	// Client is the end that sends first with SEND, and second with WRITE.
	Client    bool
	RecvDepth int
	RecvBytes int // length of a receive: Size, and 40 more on UD
	CQMod     int // SEND: a completion is asked for every so many messages
	// Out and In are the memory that is sent from and that the peer writes to,
	// Size bytes and more, each starting at a multiple of 8: WRITE counts in
	// their last byte.
	Out, In []byte
	// Gap is waited before each post.
	Gap time.Duration
}

type latencyLoop struct {
	l        *Latency
	send     scratch
	recv     recvScratch
	wcs      [batch]ib.WC
	posted   []int64
	counted  uint64
	received uint64
	reposts  uint64
	acked    uint64
	sent     uint64
	idle     int
	still    bool // nothing has moved since lastMove
	lastMove int64
}

// depth is how many sends a latency test leaves unreported at most.
const depth = 64

// PostRecvs posts the receives of a test of SENDs, before the peer is told to
// begin.
func (l *Latency) PostRecvs() error {
	b := Bandwidth{Common: l.Common, RecvDepth: l.RecvDepth, RecvBytes: l.RecvBytes}
	return b.PostRecvs()
}

// Run measures.
func (l *Latency) Run(ctx context.Context) (Result, error) {
	defer l.Wake()
	p := &latencyLoop{l: l, lastMove: int64(l.Clock.Now())}
	if l.Phases == nil {
		p.posted = make([]int64, 0, l.Iters)
	} else {
		l.Phases.reset()
	}
	p.reposts = l.recvDepth(l.RecvDepth)
	var err error
	switch {
	case l.Op == ib.Write:
		err = p.write(ctx)
	case l.Op.IsSend():
		err = p.pingpong(ctx)
	default:
		err = p.request(ctx)
	}
	r := Result{Sent: []uint64{p.sent}, Received: []uint64{p.received}}
	if err != nil {
		return r, err
	}
	factor := 2
	if l.Op == ib.Read || l.Op.IsAtomic() {
		factor = 1
	}
	if l.Phases != nil {
		r.Latency = report.NewLatencyOver(l.Size, p.counted, l.Phases.sample(), factor)
	} else {
		r.Latency = report.NewLatency(l.Size, p.posted, factor)
	}
	return r, nil
}

// begin notes an instant before a post and reports whether the test goes on.
func (p *latencyLoop) begin() bool {
	l := p.l
	now := int64(l.Clock.Now())
	if l.Gap > 0 {
		for until := now + int64(l.Gap); now < until; now = int64(l.Clock.Now()) {
			l.Device.Progress()
		}
	}
	if l.Phases != nil {
		l.Phases.start(now)
		return !l.Phases.over(now)
	}
	p.posted = append(p.posted, now)
	return true
}

// more reports whether there is another round after n.
func (p *latencyLoop) more(n uint64) bool {
	if ph := p.l.Phases; ph != nil {
		return !ph.over(int64(p.l.Clock.Now()))
	}
	return n < p.l.Iters
}

func (p *latencyLoop) post(signaled bool) error {
	p.send.fill(0, &p.l.Common, 0, 0, signaled)
	p.send.wrs[0].ID = wrID(0, p.sent)
	n, err := p.l.Lanes[0].QP.PostSendBatch(p.send.wrs[:1])
	p.sent += uint64(n)
	return err
}

// reap takes completions; it is how every waiting loop drives the device.
func (p *latencyLoop) reap(ctx context.Context) error {
	l := p.l
	n, err := l.Poll(ctx, p.wcs[:])
	if err != nil {
		return err
	}
	for i := range n {
		wc := &p.wcs[i]
		if wc.Status != ib.Success || laneOf(wc.ID) != 0 {
			return l.StatusError(wc)
		}
		if wc.ID&recvBit != 0 {
			p.received++
		} else {
			p.acked = numberOf(wc.ID) + 1
		}
	}
	if n > 0 {
		p.idle, p.still = 0, false
		return nil
	}
	if p.idle++; p.idle%idleEvery != 0 && l.Events == nil {
		return nil
	}
	if now := int64(l.Clock.Now()); !p.still {
		p.still, p.lastMove = true, now
	} else if now-p.lastMove > silenceMost && l.Lanes[0].QP.Type() != ib.RC {
		return fmt.Errorf("no message for %v: one was lost, and %v does not repeat it", time.Duration(silenceMost), l.Lanes[0].QP.Type())
	}
	_, err = l.Watch()
	return err
}

// silenceMost is how long, in nanoseconds, a test over a transport that loses
// messages waits for the next one.
const silenceMost = 10e9

func (p *latencyLoop) count() {
	if ph := p.l.Phases; ph != nil && ph.counts(int64(p.l.Clock.Now())) {
		p.counted++
	}
}

// write is WRITE against WRITE: each end polls the last byte of what the
// other writes. Here the server writes first, as in perftest.
func (p *latencyLoop) write(ctx context.Context) error {
	l := p.l
	last := l.Size - 1
	in, out := wordOf(l.In, last), wordOf(l.Out, last)
	turn := func() (bool, error) {
		if !p.begin() {
			return false, nil
		}
		out.store(byte(p.sent + 1))
		if err := p.post(true); err != nil {
			return false, err
		}
		for p.sent-p.acked >= depth {
			if err := p.reap(ctx); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	listen := func(n uint64) (bool, error) {
		for in.load() != byte(n) {
			if err := p.reap(ctx); err != nil {
				return false, err
			}
			if l.Phases != nil && p.idle%64 == 63 && l.Phases.over(int64(l.Clock.Now())) {
				return false, nil
			}
		}
		p.received++
		p.count()
		return true, nil
	}
	for n := uint64(0); p.more(n); n++ {
		for i := range 2 {
			step := turn
			if (i == 0) == l.Client {
				step = func() (bool, error) { return listen(n + 1) }
			}
			if ok, err := step(); !ok || err != nil {
				return err
			}
		}
	}
	return p.drain(ctx)
}

// drain waits for what this end sent, so that the peer has all of it.
func (p *latencyLoop) drain(ctx context.Context) error {
	for p.acked < p.sent {
		if err := p.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pingpong is SEND against SEND.
func (p *latencyLoop) pingpong(ctx context.Context) error {
	l := p.l
	mod := uint64(max(l.CQMod, 1))
	for n := uint64(0); p.more(n); n++ {
		for i := range 2 {
			if (i == 0) == l.Client {
				if !p.begin() {
					return nil
				}
				signaled := (n+1)%mod == 0 || (l.Phases == nil && n+1 == l.Iters)
				if err := p.post(signaled); err != nil {
					return err
				}
				for signaled && p.acked < p.sent && p.sent-p.acked >= depth {
					if err := p.reap(ctx); err != nil {
						return err
					}
				}
				continue
			}
			for p.received < n+1 {
				if err := p.reap(ctx); err != nil {
					return err
				}
				if l.Phases != nil && l.Phases.over(int64(l.Clock.Now())) {
					return nil
				}
			}
			if n == 0 && l.Phases != nil {
				l.Phases.start(int64(l.Clock.Now()))
			}
			p.count()
			if l.Phases != nil || p.reposts < l.Iters {
				p.recv.fill(0, &l.Common, 0, p.reposts, uint32(l.RecvBytes))
				if _, err := l.postRecvs(0, p.recv.wrs[:1]); err != nil {
					return err
				}
				p.reposts++
			}
		}
	}
	if l.Phases != nil {
		return nil
	}
	return p.drain(ctx)
}

// request is READ or ATOMIC: one at a time, until it completes.
func (p *latencyLoop) request(ctx context.Context) error {
	for n := uint64(0); p.more(n); n++ {
		if !p.begin() {
			return nil
		}
		if err := p.post(true); err != nil {
			return err
		}
		for p.acked < p.sent {
			if err := p.reap(ctx); err != nil {
				return err
			}
		}
		p.count()
	}
	return nil
}

// word is one byte of memory that another goroutine, or the device, changes:
// it is read and written as part of the aligned four bytes around it.
type word struct {
	p     *uint32
	shift uint
}

// wordOf returns the byte b[i]. b starts at a multiple of 4 and has whole words.
func wordOf(b []byte, i uint64) word {
	p := unsafe.Pointer(&b[i&^3])
	shift := uint(i&3) * 8
	if bigEndian {
		shift = 24 - shift
	}
	return word{p: (*uint32)(p), shift: shift}
}

var bigEndian = func() bool {
	v := uint16(1)
	return *(*byte)(unsafe.Pointer(&v)) == 0
}()

func (w word) load() byte { return byte(atomic.LoadUint32(w.p) >> w.shift) }

func (w word) store(v byte) {
	atomic.StoreUint32(w.p, atomic.LoadUint32(w.p)&^(0xFF<<w.shift)|uint32(v)<<w.shift)
}
