package rc_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// loseOnce is exchange with the k-th packet (from 0) from each end lost, where
// the number is not negative. It returns how many each end sent.
func loseOnce(t testing.TB, a, b *node, fromA, fromB int) (sent [2]int) {
	now := clock.Time(0)
	lose := [2]int{fromA, fromB}
	for range 100_000 {
		moved := false
		for i, d := range [2][2]*node{{a, b}, {b, a}} {
			for {
				p, ok := d[0].pull(now)
				if !ok {
					break
				}
				moved = true
				if sent[i] != lose[i] {
					d[1].give(now, p)
				}
				sent[i]++
			}
		}
		if moved {
			continue
		}
		next := clock.Min(a.eng.Deadline(), b.eng.Deadline())
		for _, n := range []*node{a, b} {
			if at := n.eng.SendAt(); at > now {
				next = clock.Min(next, at)
			}
		}
		if next == clock.Never {
			return sent
		}
		now = max(now, next)
		a.eng.Advance(now)
		b.eng.Advance(now)
	}
	t.Fatal("never quiet")
	return sent
}

// TestLoseEach: whichever packet of a message is lost, on whichever way, the
// bytes arrive at their addresses and everything completes once.
// rule: WRITE retry keeps addresses
// rule: READ restarts in the middle
// rule: ATOMIC executes once
// rule: go-back-N
func TestLoseEach(t *testing.T) {
	for _, op := range allOps {
		for _, window := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/window=%v", op, window), func(t *testing.T) {
				for k := 0; ; k++ {
					a := loseEach(t, op, window, k, -1)
					b := loseEach(t, op, window, -1, k)
					if !a && !b {
						return
					}
				}
			})
		}
	}
}

// loseEach reports whether there was a packet to lose.
func loseEach(t *testing.T, op ib.WROp, window bool, fromA, fromB int) bool {
	o := lossless()
	o.window, o.psnA, o.mem = window, 0xFFFFFB, 1<<14
	a, b := connect(t, o)
	pattern(a.buf, 1)
	pattern(b.buf, 2)
	const size = 9*256 + 13
	wantA, wantB := bytes.Clone(a.buf), bytes.Clone(b.buf)
	sgl := []ib.SGE{a.sge(100, 1000), a.sge(1100, size-1000)}
	switch {
	case op.IsAtomic():
		sgl = []ib.SGE{a.sge(104, 8)}
		copy(wantA[104:112], b.buf[3000:])
		old := getWord(b.buf[3000:])
		putWord(wantB[3000:], 5)
		if op == ib.FetchAdd {
			putWord(wantB[3000:], old+5)
		}
	case op == ib.Read:
		copy(wantA[100:100+size], b.buf[3000:])
	default:
		copy(wantB[3000:], a.buf[100:100+size])
	}
	b.recv(0, ib.RecvWR{ID: 1, SGL: []ib.SGE{b.sge(3000, size)}})
	a.wr(0, ib.SendWR{ID: 1, Op: op, SGL: sgl, Remote: b.remote(3000), Compare: getWord(b.buf[3000:]), SwapAdd: 5})
	// One more message behind, whose loss or arrival matters too.
	copy(wantB[8000:8300], a.buf[100:400])
	if op == ib.Read {
		copy(wantB[8000:8300], wantA[100:400])
	}
	a.wr(0, ib.SendWR{ID: 2, Op: ib.Write, Flags: ib.Fence, SGL: []ib.SGE{a.sge(100, 300)}, Remote: b.remote(8000)})
	if op.IsAtomic() {
		copy(wantB[8000:8300], wantA[100:400])
	}
	sent := loseOnce(t, a, b, fromA, fromB)
	if len(a.sent) != 2 || a.sent[0].Status != ib.Success || a.sent[1].Status != ib.Success {
		t.Fatalf("losing %d, %d: completions %+v", fromA, fromB, a.sent)
	}
	if !bytes.Equal(a.buf, wantA) || !bytes.Equal(b.buf, wantB) {
		t.Fatalf("losing %d, %d: wrong bytes", fromA, fromB)
	}
	if n := a.win.InFlight() + a.eng.Flight(); n != 0 {
		t.Fatalf("losing %d, %d: %d in flight", fromA, fromB, n)
	}
	return fromA >= 0 && fromA < sent[0] || fromB >= 0 && fromB < sent[1]
}

// TestRNRRetryTable: rnr_retry n allows n retries, 7 any number.
// rule: rnr_retry
func TestRNRRetryTable(t *testing.T) {
	for n := range uint8(8) {
		o := lossless()
		o.rnrRetry, o.rnrTimer, o.retry = n, 12, 0
		a, b := connect(t, o)
		a.wr(0, ib.SendWR{ID: 1, Op: ib.Send, SGL: []ib.SGE{a.sge(0, 8)}})
		now, tries, last := clock.Time(0), 0, clock.Time(-1)
		for range 200 {
			p, ok := a.pull(now)
			if !ok {
				if now = a.eng.SendAt(); now == clock.Never {
					break
				}
				continue
			}
			if gap := now.Sub(last); tries > 0 && gap < 640*time.Microsecond {
				t.Errorf("rnr_retry %d: sent again after %v", n, gap)
			}
			tries, last = tries+1, now
			b.give(now, p)
			if p, ok = b.pull(now); ok {
				a.give(now, p)
			}
		}
		if n == 7 {
			if tries < 99 || a.eng.State() != ib.RTS {
				t.Errorf("rnr_retry 7: %d tries, %v", tries, a.eng.State())
			}
			continue
		}
		if tries != int(n)+1 || len(a.sent) != 1 || a.sent[0].Status != ib.RNRRetryExcErr || b.eng.State() != ib.RTS {
			t.Errorf("rnr_retry %d: %d tries, completions %+v, responder %v", n, tries, a.sent, b.eng.State())
		}
		if a.sent[0].VendorErr != uint32(wire.RNRSyndrome(12)) {
			t.Errorf("vendor error %#x", a.sent[0].VendorErr)
		}
	}
}

// TestRNRStorm: a sender without limit or patience meets a receiver that posts
// a receive only now and then.
// rule: RNR storm
func TestRNRStorm(t *testing.T) {
	o := lossless()
	o.rnrTimer, o.noCredits = 1, true
	a, b := connect(t, o)
	const n = 40
	for i := range n {
		a.wr(0, ib.SendWR{ID: uint64(i), Op: ib.Send, SGL: []ib.SGE{a.sge(8*i, 600)}})
	}
	now := clock.Time(0)
	for len(a.sent) < n {
		if now > clock.Time(time.Second) {
			t.Fatalf("wedged after %d of %d", len(a.sent), n)
		}
		for p, ok := a.pull(now); ok; p, ok = a.pull(now) {
			b.give(now, p)
		}
		for p, ok := b.pull(now); ok; p, ok = b.pull(now) {
			a.give(now, p)
		}
		now = now.Add(time.Microsecond)
		a.eng.Advance(now)
		if now%1000 == 0 && now/1000%777 == 0 {
			b.recv(now, ib.RecvWR{ID: uint64(now), SGL: []ib.SGE{b.sge(0, 1000)}})
		}
	}
	for i, wc := range a.sent {
		if wc.ID != uint64(i) || wc.Status != ib.Success {
			t.Fatalf("completion %d: %+v", i, wc)
		}
	}
	if a.cnt.Events[transport.RcvdRNRErr] < 1000 || b.eng.State() != ib.RTS {
		t.Errorf("%d RNR NAKs, responder %v", a.cnt.Events[transport.RcvdRNRErr], b.eng.State())
	}
}

// TestFailAgainAndAgain: connections that fail, are reset and used again keep
// completing what is posted.
// rule: completions keep coming after failures
func TestFailAgainAndAgain(t *testing.T) {
	o := lossless()
	o.mem, o.mtu = 1<<13, ib.MTU256
	a, b := connect(t, o)
	now := clock.Time(0)
	for round := range 50 {
		a.sent, b.recvd = nil, nil
		good := ib.SendWR{ID: 1, Op: ib.Write, SGL: []ib.SGE{a.sge(0, 700)}, Remote: b.remote(0)}
		bad := good
		bad.ID, bad.Op, bad.Remote.RKey = 2, allOps[round%len(allOps)], good.Remote.RKey+1
		if bad.Op.IsAtomic() {
			bad.SGL = []ib.SGE{a.sge(0, 8)}
		}
		if bad.Op.IsSend() {
			bad.SGL = []ib.SGE{{Addr: baseA, Length: 700, LKey: a.mr.LKey + 1}}
		}
		b.recv(now, ib.RecvWR{ID: 3})
		for range 3 {
			a.wr(now, good)
			a.wr(now, bad)
		}
		now = exchange(t, now, a, b)
		a.wr(now, good)
		if len(a.sent) != 7 || a.sent[0].Status != ib.Success || a.sent[1].Status == ib.Success {
			t.Fatalf("round %d: completions %+v; %v %v", round, a.sent, a.eng.State(), b.eng.State())
		}
		for _, wc := range a.sent[2:] {
			if wc.Status != ib.WRFlushErr {
				t.Fatalf("round %d: completions %+v", round, a.sent)
			}
		}
		reset := ib.QPAttr{Mask: ib.AttrState, State: ib.Reset}
		a.eng.Modify(now, &reset)
		b.eng.Modify(now, &reset)
		a.ready(qpnB, o.psnA, o.psnB, o)
		b.ready(qpnA, o.psnB, o.psnA, o)
	}
}

// A flush takes what is posted as it begins, though the application posts again
// at every completion: what it posts comes with its own Post.
func TestFlushEnds(t *testing.T) {
	a, _ := connect(t, lossless())
	for i := range 5 {
		a.recv(0, ib.RecvWR{ID: uint64(i)})
	}
	a.note = func(string, ...any) {
		if len(a.sent)+len(a.recvd) > 100 {
			t.Fatal("the flush does not end")
		}
		a.rq.Slot(0)
		a.rq.Publish(1)
		a.sq.Slot(0)
		a.sq.Publish(1)
	}
	a.eng.Modify(0, &ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
	if len(a.sent)+len(a.recvd) != 5 {
		t.Errorf("%d sends and %d receives flushed", len(a.sent), len(a.recvd))
	}
	a.note = nil
	a.eng.Post(0)
	if a.sq.Free() != a.sq.Depth() || a.rq.Free() != a.rq.Depth() {
		t.Errorf("%d sends and %d receives flushed in the end", len(a.sent), len(a.recvd))
	}
}
