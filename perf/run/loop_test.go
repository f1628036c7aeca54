package run

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// ticking is a clock that moves a microsecond with every look.
type ticking struct{ t atomic.Int64 }

func (c *ticking) Now() clock.Time { return clock.Time(c.t.Add(1000)) }

// rig is two devices joined by a link in memory, with one connected queue pair
// each and 64 KiB of memory.
type rig struct {
	dev [2]*verbs.Device
	cq  [2]*verbs.CQ
	mr  [2]*verbs.MR
	buf [2][]byte
	qp  [2]*verbs.QP
}

func newRig(t testing.TB, q ib.QPType) *rig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := new(rig)
	a, b := pair.New(pair.Config{})
	for i, l := range []link.Link{a, b} {
		dev, err := verbs.Open(verbs.Config{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Link: l})
		must(err)
		t.Cleanup(func() { dev.Close() })
		r.dev[i] = dev
		pd := dev.AllocPD()
		r.cq[i], err = dev.CreateCQ(verbs.CQConfig{Depth: 2048})
		must(err)
		m, err := verbs.Alloc(1 << 16)
		must(err)
		r.buf[i] = m.Bytes()
		r.mr[i], err = pd.RegisterMR(r.buf[i], ib.LocalWrite|ib.RemoteWrite|ib.RemoteRead|ib.RemoteAtomic)
		must(err)
		r.qp[i], err = pd.CreateQP(verbs.QPConfig{Type: q, SendCQ: r.cq[i], RecvCQ: r.cq[i], Cap: ib.QPCap{MaxSendWR: 256, MaxRecvWR: 256, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 256}})
		must(err)
		must(r.qp[i].ToInit(ib.RemoteWrite | ib.RemoteRead | ib.RemoteAtomic))
	}
	for i := range 2 {
		p := verbs.Path{DestQPN: r.qp[1-i].Num(), PSN: 5, LocalPSN: 5, GID: r.dev[1-i].GIDs()[0].GID, MTU: ib.MTU1024}
		must(r.qp[i].ToRTR(p))
		must(r.qp[i].ToRTS(p))
	}
	return r
}

func (r *rig) common(i int, op ib.WROp, size, iters uint64, c clock.Clock) Common {
	half := uint64(1 << 15)
	l := Lane{
		QP:     r.qp[i],
		Local:  Buffer{Key: r.mr[i].LKey(), Addr: r.mr[i].Addr(), Stride: 64, Slots: 16},
		Recv:   Buffer{Key: r.mr[i].LKey(), Addr: r.mr[i].Addr() + half, Stride: 1024, Slots: 16},
		Remote: r.mr[1-i].Remote(int(half)),
	}
	return Common{
		Op: op, Size: size, Iters: iters, Lanes: []Lane{l}, CQ: r.cq[i], Device: r.dev[i], InlineMax: 64, SwapAdd: 1, Clock: c,
		Watch: func() (bool, error) { return false, nil },
	}
}

// TestBandwidthCounts runs every operation under a clock that only moves when
// it is looked at, and checks that no number is negative, infinite or zero
// where it must not be.
func TestBandwidthCounts(t *testing.T) {
	for _, op := range []ib.WROp{ib.Write, ib.Read, ib.FetchAdd} {
		for _, peak := range []PeakMode{PeakNone, PeakExact, PeakWindows} {
			r := newRig(t, ib.RC)
			b := Bandwidth{Common: r.common(0, op, 8, 100, new(ticking)), Send: true, Depth: 16, CQMod: 5, List: 1, Peak: peak}
			res, err := b.Run(t.Context())
			if err != nil {
				t.Fatalf("%v: %v", op, err)
			}
			bw := res.Bandwidth
			if res.Sent[0] != 100 || bw.Iters != 100 || bw.BytesPerSec <= 0 || bw.MsgPerSec <= 0 {
				t.Errorf("%v: %+v", op, res)
			}
			if (peak == PeakNone) != (bw.PeakBytesPerSec == 0) || (peak != PeakNone && bw.PeakBytesPerSec < bw.BytesPerSec) {
				t.Errorf("%v mode %d: peak %v, average %v", op, peak, bw.PeakBytesPerSec, bw.BytesPerSec)
			}
		}
	}
}

func TestOverATimeHasAPeak(t *testing.T) {
	r := newRig(t, ib.RC)
	b := Bandwidth{
		Common: r.common(0, ib.Write, 8, 0, new(ticking)), Send: true, Depth: 16, CQMod: 1, List: 1, Peak: PeakWindows,
	}
	b.Phases = &Phases{Duration: 80 * time.Millisecond, Margin: 10 * time.Millisecond}
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bw := res.Bandwidth; bw.Iters == 0 || bw.PeakBytesPerSec < bw.BytesPerSec || bw.BytesPerSec <= 0 {
		t.Errorf("%+v", bw)
	}
}

func TestSendsBothWays(t *testing.T) {
	r := newRig(t, ib.RC)
	done := make(chan error, 2)
	for i := range 2 {
		b := Bandwidth{
			Common: r.common(i, ib.Send, 100, 200, clock.NewReal()), Send: true, Recv: true, AfterFirst: i == 1,
			Depth: 16, RecvDepth: 32, RecvBytes: 100, CQMod: 4, List: 1,
		}
		if err := b.PostRecvs(); err != nil {
			t.Fatal(err)
		}
		go func() {
			res, err := b.Run(t.Context())
			if err == nil && (res.Received[0] != 200 || res.Sent[0] != 200) {
				t.Errorf("%+v", res)
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestLatencyOfEveryKind(t *testing.T) {
	for _, op := range []ib.WROp{ib.Write, ib.Send, ib.Read, ib.CompareSwap} {
		r := newRig(t, ib.RC)
		done := make(chan error, 2)
		ends := 2
		if op == ib.Read || op.IsAtomic() {
			ends = 1
		}
		for i := range ends {
			l := Latency{
				Common: r.common(i, op, 8, 50, clock.NewReal()), Client: i == 0, RecvDepth: 8, RecvBytes: 8, CQMod: 1,
				Out: r.buf[i], In: r.buf[i][1<<15:],
			}
			if op == ib.Send {
				if err := l.PostRecvs(); err != nil {
					t.Fatal(err)
				}
			}
			go func() {
				res, err := l.Run(t.Context())
				if err == nil && (res.Latency.Iters != 50 || res.Latency.Min <= 0 || len(res.Latency.Raw) != 49) {
					t.Errorf("%v: %+v", op, res.Latency)
				}
				done <- err
			}()
		}
		for range ends {
			if err := <-done; err != nil {
				t.Errorf("%v: %v", op, err)
			}
		}
	}
}

func TestAnErrorNamesTheMessage(t *testing.T) {
	r := newRig(t, ib.RC)
	b := Bandwidth{Common: r.common(0, ib.Write, 8, 50, clock.NewReal()), Send: true, Depth: 16, CQMod: 1, List: 1}
	b.Lanes[0].Remote.RKey ^= 0xFF00
	_, err := b.Run(t.Context())
	var e *StatusError
	if !errors.As(err, &e) || e.Status != ib.RemAccessErr || e.QPN != r.qp[0].Num() || e.Of != 50 {
		t.Errorf("%v", err)
	}
}

func TestAbandonedLoopsEnd(t *testing.T) {
	r := newRig(t, ib.RC)
	b := Bandwidth{Common: r.common(0, ib.Send, 8, 50, clock.NewReal()), Recv: true, RecvDepth: 8, RecvBytes: 8, CQMod: 1, List: 1}
	if err := b.PostRecvs(); err != nil {
		t.Fatal(err)
	}
	b.Watch = func() (bool, error) { return false, context.Canceled }
	if _, err := b.Run(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	b.Watch = func() (bool, error) { return true, nil }
	b.Clock = new(ticking)
	res, err := b.Run(t.Context())
	if err != nil || res.Lost != 50 {
		t.Errorf("%+v, %v: 50 messages never came", res, err)
	}
}

// TestLoopsDoNotAllocate: a long run allocates no more than a short one.
func TestLoopsDoNotAllocate(t *testing.T) {
	r := newRig(t, ib.RC)
	bytesOf := func(iters uint64) (mallocs uint64) {
		b := Bandwidth{Common: r.common(0, ib.Write, 64, iters, clock.NewReal()), Send: true, Depth: 64, CQMod: 1, List: 1}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := b.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	bytesOf(1000)
	short, long := bytesOf(100), bytesOf(20000)
	if long > short+500 { // the runtime's own, of which there are some
		t.Errorf("%d allocations for 100 messages, %d for 20000", short, long)
	}
}
