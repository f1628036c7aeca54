package run

import (
	"context"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/report"
)

// Bandwidth is a bandwidth test of one size.
type Bandwidth struct {
	Common
	Send, Recv bool
	// AfterFirst holds sending back until something was received: the server
	// of a bidirectional test of SENDs.
	AfterFirst bool
	Depth      int // send work requests outstanding on a lane
	RecvDepth  int // receives posted on a lane, with an SRQ on all
	RecvBytes  int // length of a receive: Size, and 40 more on UD
	CQMod      int // a completion is asked for every so many messages
	List       int // messages are posted in lists of this length; 1 lets the loop choose
	// Peak says which peak to measure: none, of every stretch, or of windows.
	Peak PeakMode
}

// PeakMode says how the peak bandwidth is found.
type PeakMode uint8

// The modes.
const (
	PeakNone    PeakMode = iota
	PeakExact            // perftest's definition; keeps two instants a message
	PeakWindows          // the best stretch of at least a fiftieth of the run, or 10 ms
)

// PostRecvs posts the receives of the test: as many as RecvDepth, and no more
// than there will be messages, so that none is left for the next size. It is
// called before the peer is told to begin.
func (b *Bandwidth) PostRecvs() error {
	var s recvScratch
	want := b.recvDepth(b.RecvDepth)
	for lane := range b.Lanes {
		for n := uint64(0); n < want; {
			k := 0
			for ; k < batch && n+uint64(k) < want; k++ {
				s.fill(k, &b.Common, lane, n+uint64(k), uint32(b.RecvBytes))
			}
			m, err := b.postRecvs(lane, s.wrs[:k])
			if err != nil {
				return err
			}
			n += uint64(m)
		}
	}
	return nil
}

// state is what the loop keeps of a lane.
type state struct {
	sent, acked      uint64 // messages posted, and reported complete
	posted, received uint64 // receives
	owed             int    // receives taken and not posted again
}

// loop is everything that Run touches while it runs.
type loop struct {
	b        *Bandwidth
	lanes    []state
	send     scratch
	recv     recvScratch
	wcs      [batch]ib.WC
	totals   struct{ sent, acked, received uint64 }
	counted  uint64 // in the sample of a test over a time
	first    int64  // instant of the first receive, or of the start
	posted   []int64
	done     []int64
	window   report.PeakWindow
	sending  bool
	idle     int
	lastMove int64
}

// Run measures. It returns after the last message of this end has completed
// and the last of the peer's has come, or when time is up.
func (b *Bandwidth) Run(ctx context.Context) (Result, error) {
	l := &loop{b: b, lanes: make([]state, len(b.Lanes)), sending: b.Send && !b.AfterFirst}
	total := b.Iters * uint64(len(b.Lanes))
	if b.Phases == nil && b.Peak == PeakExact && b.Send {
		l.posted, l.done = make([]int64, total), make([]int64, total)
	}
	want := b.recvDepth(b.RecvDepth)
	for i := range l.lanes {
		l.lanes[i].posted = want
	}
	defer b.Wake()
	start := int64(b.Clock.Now())
	l.first, l.lastMove = start, start
	l.window.Width = 10 * time.Millisecond
	if b.Phases != nil {
		b.Phases.reset()
		l.window.Width = max(l.window.Width, b.Phases.Duration/50)
		if l.sending {
			b.Phases.start(start)
		}
	}
	lost, err := l.turn(ctx, total)
	end := int64(b.Clock.Now())
	r := Result{Sent: make([]uint64, len(l.lanes)), Received: make([]uint64, len(l.lanes)), Lost: lost}
	for i := range l.lanes {
		r.Sent[i], r.Received[i] = l.lanes[i].sent, l.lanes[i].received
	}
	r.Bandwidth = l.result(end, total)
	return r, err
}

func (l *loop) result(end int64, total uint64) report.Bandwidth {
	b := l.b
	var r report.Bandwidth
	switch {
	case b.Phases != nil:
		r = report.NewBandwidth(b.Size, l.counted, b.Phases.sample())
	case b.Send:
		r = report.NewBandwidth(b.Size, total, time.Duration(end-l.first))
	default:
		r = report.NewBandwidth(b.Size, l.totals.received, time.Duration(l.lastMove-l.first))
	}
	var peak float64
	switch b.Peak {
	case PeakNone:
	case PeakExact:
		if l.posted != nil {
			peak = report.Peak(l.posted, l.done)
		}
	case PeakWindows:
		peak = max(l.window.PerSec(), r.MsgPerSec)
	}
	r.PeakBytesPerSec = peak * float64(b.Size)
	return r
}

// turn goes round until everything is done. It returns how many messages it
// waited for in vain.
func (l *loop) turn(ctx context.Context, total uint64) (lost uint64, err error) {
	b := l.b
	for {
		if l.sending {
			if err := l.post(); err != nil {
				return 0, err
			}
		}
		n, err := b.Poll(ctx, l.wcs[:])
		if err != nil {
			return 0, err
		}
		now := int64(b.Clock.Now())
		if n > 0 {
			l.idle, l.lastMove = 0, now
			if err := l.take(l.wcs[:n], now); err != nil {
				return 0, err
			}
		}
		if b.Phases != nil {
			if b.Phases.over(now) && l.drained(now) {
				return 0, nil
			}
		} else if (!b.Send || l.totals.acked >= total) && (!b.Recv || l.totals.received >= total) {
			return 0, nil
		}
		if n > 0 {
			continue
		}
		if l.idle++; l.idle%idleEvery != 0 && b.Events == nil {
			continue
		}
		done, err := b.Watch()
		if err != nil {
			return 0, err
		}
		if done && now-l.lastMove > lostAfter && (!b.Send || l.totals.acked >= l.totals.sent) {
			if b.Phases == nil && b.Recv {
				lost = total - l.totals.received
			}
			return lost, nil
		}
	}
}

// drainMost is how long, in nanoseconds, a test over a time waits for its last
// messages after its end.
const drainMost = 1e9

// drained reports whether what was sent has completed, or has had its time.
func (l *loop) drained(now int64) bool {
	l.sending = false
	return !l.b.Send || l.totals.acked >= l.totals.sent || now >= l.b.Phases.end+drainMost
}

// post fills the window of every lane.
func (l *loop) post() error {
	b := l.b
	var now int64
	if b.Phases != nil {
		if now = int64(b.Clock.Now()); b.Phases.over(now) {
			return nil
		}
	}
	for lane := range l.lanes {
		s := &l.lanes[lane]
		for {
			n := b.Depth - int(s.sent-s.acked)
			if b.Phases == nil {
				n = min(n, int(min(b.Iters-s.sent, batch)))
			}
			if b.List > 1 {
				if n < b.List {
					break
				}
				n = min(b.List, batch)
			}
			if n = min(n, batch); n <= 0 {
				break
			}
			for i := range n {
				k := s.sent + uint64(i)
				signaled := (k+1)%uint64(b.CQMod) == 0 || (b.Phases == nil && k+1 == b.Iters)
				l.send.fill(i, &b.Common, lane, k, signaled)
			}
			if l.posted != nil {
				now = int64(b.Clock.Now())
				for i := range n {
					l.posted[l.totals.sent+uint64(i)] = now
				}
			}
			m, err := b.Lanes[lane].QP.PostSendBatch(l.send.wrs[:n])
			s.sent += uint64(m)
			l.totals.sent += uint64(m)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// take counts completions and posts receives again.
func (l *loop) take(wcs []ib.WC, now int64) error {
	b := l.b
	for i := range wcs {
		wc := &wcs[i]
		lane := laneOf(wc.ID)
		if lane >= len(l.lanes) || wc.Status != ib.Success {
			return b.StatusError(wc)
		}
		s := &l.lanes[lane]
		if wc.ID&recvBit != 0 {
			if l.totals.received == 0 {
				l.first = now
				if b.Phases != nil {
					b.Phases.start(now)
				}
				l.sending = b.Send
			}
			s.received++
			l.totals.received++
			s.owed++
			l.count(now, 1)
			if err := l.repost(lane, batch/2); err != nil {
				return err
			}
			continue
		}
		k := numberOf(wc.ID) + 1 - s.acked
		s.acked += k
		l.totals.acked += k
		if l.done != nil {
			l.done[min(l.totals.acked, uint64(len(l.done)))-1] = now
		}
		l.count(now, k)
	}
	for lane := range l.lanes {
		if err := l.repost(lane, 1); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) count(now int64, n uint64) {
	b := l.b
	if b.Phases != nil {
		if !b.Phases.counts(now) {
			return
		}
		l.counted += n
	}
	if b.Peak == PeakWindows {
		l.window.Add(now, n)
	}
}

// repost posts the receives that a lane owes, once they are at least atLeast.
func (l *loop) repost(lane, atLeast int) error {
	b := l.b
	s := &l.lanes[lane]
	for s.owed >= atLeast && s.owed > 0 {
		n := min(s.owed, batch)
		if b.Phases == nil {
			left := b.Iters - s.posted
			if left == 0 {
				s.owed = 0
				return nil
			}
			n = int(min(uint64(n), left))
		}
		for i := range n {
			l.recv.fill(i, &b.Common, lane, s.posted+uint64(i), uint32(b.RecvBytes))
		}
		m, err := b.postRecvs(lane, l.recv.wrs[:n])
		s.posted += uint64(m)
		s.owed -= m
		if err != nil {
			return err
		}
	}
	return nil
}
