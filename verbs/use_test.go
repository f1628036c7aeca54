package verbs_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// Posters, pollers, waiters and control calls from many goroutines at once.
func TestConcurrentUse(t *testing.T) {
	for _, place := range places[:2] {
		t.Run(place.name, func(t *testing.T) {
			p := place.ends(t, ib.RC)
			const goroutines, each = 4, 300
			var wg sync.WaitGroup
			tokens := make(chan struct{}, 100) // bounds what is outstanding
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { // the poller
				defer close(done)
				var wcs [7]ib.WC
				for n := 0; n < goroutines*each; {
					k, err := p.a.cq.Wait(ctx, wcs[:])
					if err != nil {
						t.Error(err)
						return
					}
					for i := range k {
						if wcs[i].Status != ib.Success {
							t.Errorf("%+v", wcs[i])
							return
						}
						<-tokens
					}
					n += k
				}
			}()
			for g := range goroutines {
				wg.Go(func() {
					for i := range each {
						select {
						case tokens <- struct{}{}:
						case <-done:
							return
						}
						wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(g*8192, 1+(i*97)%8000), Remote: p.a.peer.At(g * 8192)}
						if i%3 == 0 {
							wr.Op = ib.Read
							wr.SGL = p.a.mr.SGE(regionBytes/2+g*8192, 100)
						}
						if err := p.a.qp.PostSend(wr); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			stop := make(chan struct{})
			var extra sync.WaitGroup
			for range 2 {
				extra.Go(func() { // all sorts of other calls meanwhile
					for {
						select {
						case <-stop:
							return
						default:
						}
						p.b.dev.Progress()
						_ = p.a.qp.Query()
						_ = p.b.dev.Stats()
						mr, err := p.b.pd.RegisterMR(make([]byte, 10), ib.LocalWrite)
						if err != nil {
							t.Error(err)
							return
						}
						if err := mr.Close(); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
					}
				})
			}
			wg.Wait()
			<-done
			close(stop)
			extra.Wait()
			cancel()
		})
	}
}

// Devices may be closed under everybody's feet.
func TestCloseWhileBusy(t *testing.T) {
	for range 20 {
		p := newPairMem(t, ib.RC, nil)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					err := p.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 10_000), Remote: p.a.peer.At(0)})
					if errors.Is(err, verbs.ErrClosed) {
						return
					}
					if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
						t.Error(err)
						return
					}
					runtime.Gosched()
				}
			})
			wg.Go(func() {
				var wcs [4]ib.WC
				for {
					if _, err := p.a.cq.Wait(context.Background(), wcs[:]); err != nil {
						return
					}
				}
			})
			wg.Go(func() {
				for {
					if _, err := p.a.dev.NextEvent(context.Background()); err != nil {
						return
					}
				}
			})
		}
		must(t, p.a.qp.ToError())
		must(t, p.a.qp.Close())
		must(t, p.a.dev.Close())
		wg.Wait()
		must(t, p.b.dev.Close())
	}
}

// After Close every call on every object is refused by name and nothing
// crashes; a second Close does nothing.
func TestUseAfterClose(t *testing.T) {
	p := newPairMem(t, ib.UD, nil)
	d := p.a.dev
	ah, err := p.a.pd.CreateAH(p.a.peer.Path.AV())
	must(t, err)
	ch := d.CreateCompChannel()
	cq2, err := d.CreateCQ(verbs.CQConfig{Channel: ch})
	must(t, err)
	m, err := verbs.Alloc(8192)
	must(t, err)
	mr2, err := p.a.pd.RegisterMR(m.Bytes(), ib.LocalWrite)
	must(t, err)
	if err := m.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("close memory under a region: %v", err)
	}

	var wcs [1]ib.WC
	use := func(t *testing.T) {
		t.Helper()
		ctx := context.Background()
		for name, f := range map[string]func() error{
			"PostSend":     func() error { return p.a.qp.PostSend(ib.SendWR{Op: ib.Send}) },
			"PostSend/sgl": func() error { return p.a.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: mr2.SGE(0, 8)}) },
			"PostRecv":     func() error { return p.a.qp.PostRecv(ib.RecvWR{}) },
			"Modify":       func() error { return p.a.qp.ToError() },
			"Wait":         func() error { _, err := p.a.cq.Wait(ctx, wcs[:]); return err },
			"Arm":          func() error { return cq2.Arm(false) },
			"channel.Wait": func() error { _, err := ch.Wait(ctx); return err },
			"RegisterMR":   func() error { _, err := p.a.pd.RegisterMR(nil, 0); return err },
			"CreateAH":     func() error { _, err := p.a.pd.CreateAH(ib.AV{}); return err },
			"CreateQP": func() error {
				_, err := p.a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.a.cq, RecvCQ: p.a.cq})
				return err
			},
			"CreateCQ":    func() error { _, err := d.CreateCQ(verbs.CQConfig{}); return err },
			"NextEvent":   func() error { _, err := d.NextEvent(ctx); return err },
			"new PD":      func() error { _, err := d.AllocPD().RegisterMR(nil, 0); return err },
			"new channel": func() error { _, err := d.CreateCompChannel().Wait(ctx); return err },
			"Connect":     func() error { _, err := verbs.Connect(ctx, nopConn{}, p.a.qp, nil); return err },
		} {
			if err := f(); !errors.Is(err, verbs.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			} else {
				t.Logf("%s: %v", name, err)
			}
		}
		d.Progress()
		p.a.cq.Poll(wcs[:])
		_, _ = p.a.qp.Query(), p.a.qp.State()
		_, _, _, _ = d.Stats(), d.Port(), d.Attr(), d.GIDs()
		_, _, _ = mr2.SGE(0, 1), mr2.Remote(1), mr2.Bytes()
	}

	// One by one, with the device alive. Order of refusals first.
	if err := p.a.pd.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("close PD: %v", err)
	}
	if err := p.a.cq.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("close CQ: %v", err)
	}
	for range 2 {
		for _, c := range []interface{ Close() error }{p.a.qp, p.a.cq, ah, p.a.mr, mr2, cq2, ch, m, p.a.pd} {
			must(t, c.Close())
		}
	}
	t.Run("device alive", func(t *testing.T) {
		for name, f := range map[string]func() error{
			"PostSend":   func() error { return p.a.qp.PostSend(ib.SendWR{Op: ib.Send}) },
			"PostRecv":   func() error { return p.a.qp.PostRecv(ib.RecvWR{}) },
			"Modify":     func() error { return p.a.qp.ToError() },
			"Wait":       func() error { _, err := p.a.cq.Wait(t.Context(), wcs[:]); return err },
			"Arm":        func() error { return cq2.Arm(false) },
			"RegisterMR": func() error { _, err := p.a.pd.RegisterMR(nil, 0); return err },
			"CreateQP": func() error {
				_, err := p.a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.a.cq, RecvCQ: p.a.cq})
				return err
			},
		} {
			if err := f(); !errors.Is(err, verbs.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	for range 2 {
		must(t, d.Close())
	}
	t.Run("device closed", use)
	for _, c := range []interface{ Close() error }{p.a.qp, p.a.cq, ah, p.a.mr, mr2, cq2, ch, m, p.a.pd} {
		must(t, c.Close())
	}
}

// A device takes everything along: memory comes free though no region was
// closed.
func TestDeviceCloseReleasesMemory(t *testing.T) {
	x, y := pair.New(pair.Config{})
	defer y.Close()
	d := open(t, verbs.Config{Addr: addrA, Link: x})
	m, err := verbs.Alloc(4096)
	must(t, err)
	mr, err := d.AllocPD().RegisterMR(m.Bytes()[100:200], 0)
	must(t, err)
	must(t, d.Close())
	must(t, mr.Close())
	must(t, m.Close())
	must(t, m.Close())
}

// Opening and closing leaves nothing behind.
func TestNoLeaks(t *testing.T) {
	cycles := 1000
	if testing.Short() {
		cycles = 100
	}
	fds := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0
		}
		return len(names)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	cycle := func() {
		d, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.3"), Port: testPort})
		must(t, err)
		e := newEnd(t, d, ib.RC)
		must(t, e.qp.ToInit(ib.RemoteAll))
		must(t, e.qp.ToRTR(verbs.Path{DestQPN: 5, GID: d.GIDs()[0].GID}))
		e.recv(t, 0, 100)
		must(t, d.Close())
	}
	for range 20 {
		cycle()
	}
	fd0, g0, heap0 := fds(), runtime.NumGoroutine(), heap()
	for range cycles {
		cycle()
	}
	if n := fds(); n > fd0 {
		t.Errorf("%d files, were %d", n, fd0)
	}
	if n := runtime.NumGoroutine(); n > g0 {
		t.Errorf("%d goroutines, were %d", n, g0)
	}
	if n := heap(); n > heap0+2<<20 {
		t.Errorf("heap of %d bytes, was %d", n, heap0)
	}
}

// Posting, polling and waiting allocate nothing; nor does a list made by SGE.
func TestNoAllocations(t *testing.T) {
	p := newPairUDP(t, ib.RC)
	var wcs [8]ib.WC
	poll := func(e *end, n int) {
		for n > 0 {
			n -= e.cq.Poll(wcs[:])
		}
	}
	batch := make([]ib.SendWR, 8)
	batchSGL := p.a.mr.SGE(0, 64)
	for name, f := range map[string]func(){
		"SEND": func() {
			must(t, p.b.qp.PostRecv(ib.RecvWR{SGL: p.b.mr.SGE(0, 64)}))
			must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 64)}))
			poll(p.b, 1)
			poll(p.a, 1)
		},
		"WRITE": func() {
			must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 70_000), Remote: p.a.peer.At(0)}))
			poll(p.a, 1)
		},
		"READ": func() {
			must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.Read, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 70_000), Remote: p.a.peer.At(0)}))
			poll(p.a, 1)
		},
		"ATOMIC": func() {
			must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.FetchAdd, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 8), Remote: p.a.peer.At(0), SwapAdd: 1}))
			poll(p.a, 1)
		},
		"inline": func() {
			must(t, p.a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled | ib.Inline, SGL: p.a.mr.SGE(0, 64), Remote: p.a.peer.At(0)}))
			poll(p.a, 1)
		},
		"batch and wait": func() {
			for i := range batch {
				batch[i] = ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: batchSGL, Remote: p.a.peer.At(0)}
			}
			_, err := p.a.qp.PostSendBatch(batch)
			must(t, err)
			for n := 0; n < len(batch); {
				k, err := p.a.cq.Wait(context.Background(), wcs[:])
				must(t, err)
				n += k
			}
		},
	} {
		for range 600 {
			f() // rings grow as they are first used
		}
		if n := testing.AllocsPerRun(500, f); n != 0 {
			t.Errorf("%s: %v allocations a message", name, n)
		}
	}
}
