package linktest

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

const millisecond = clock.Time(time.Millisecond)

// wake wakes a wait to come, and one that is under way.
func (s Suite) wake(t *testing.T) {
	r := s.rig(t)
	r.a.Link.Wake()
	if err := r.a.Link.Wait(0, clock.Never); err != nil {
		t.Fatalf("Wait after Wake: %v", err)
	}
	for range 200 {
		done := make(chan error)
		go func() { done <- r.a.Link.Wait(0, clock.Never) }()
		runtime.Gosched()
		r.a.Link.Wake()
		if err := <-done; err != nil {
			t.Fatalf("Wait: %v", err)
		}
	}
	// Many wakes at once are one.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.a.Link.Wake()
			}
		})
	}
	if err := r.a.Link.Wait(0, clock.Never); err != nil {
		t.Fatalf("Wait among wakes: %v", err)
	}
	wg.Wait()
}

// deadline waits for an instant, near, past, and far away from zero.
func (s Suite) deadline(t *testing.T) {
	r := s.rig(t)
	for _, w := range [][2]clock.Time{{0, millisecond}, {5, 3}, {7, 7}, {1 << 60, 1<<60 + millisecond}, {-millisecond, 0}} {
		if err := r.a.Link.Wait(w[0], w[1]); err != nil {
			t.Errorf("Wait(%d, %d): %v", w[0], w[1], err)
		}
	}
	// A deadline that has passed does not end the wait after it.
	s.exchange(r, r.a, r.b, r.source(r.a, r.b, 0xC001), 1)
}

// waitForFrames blocks without a deadline for each packet.
func (s Suite) waitForFrames(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	rx := make([]frame.Rx, 4)
	for i := range 50 {
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, shape{64, 1, 64}, byte(i))
		r.commit(r.a, tx)
		for got := 0; got == 0; {
			if err := r.b.Link.Wait(0, clock.Never); err != nil {
				t.Fatalf("Wait: %v", err)
			}
			n, err := r.b.Link.Recv(0, rx)
			if err != nil {
				t.Fatalf("Recv: %v", err)
			}
			r.b.Link.Release(rx[:n])
			got += n
		}
	}
}

// waitAfterPolling finds what arrives before a wait begins and while it lasts,
// however long nobody has waited: a link may stop listening meanwhile. What a wait
// misses hangs it.
func (s Suite) waitAfterPolling(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	rx := make([]frame.Rx, 4)
	send := func() {
		t.Helper()
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, shape{64, 1, 64}, 1)
		r.commit(r.a, tx)
	}
	receive := func() error {
		for {
			n, err := r.b.Link.Recv(0, rx)
			if err != nil {
				return err
			}
			if n > 0 {
				r.b.Link.Release(rx[:n])
				return nil
			}
			if err := r.b.Link.Wait(0, clock.Never); err != nil {
				return err
			}
		}
	}
	for _, polls := range []int{0, 1, 255, 256, 257, 1000, 0, 3, 600} {
		for range polls {
			if _, err := r.b.Link.Recv(0, rx); err != nil {
				t.Fatalf("Recv: %v", err)
			}
		}
		send()
		if err := r.b.Link.Wait(0, clock.Never); err != nil {
			t.Fatalf("Wait: %v", err)
		}
		if err := receive(); err != nil {
			t.Fatal(err)
		}
		if r.a.Link == r.b.Link { // one owner at a time
			continue
		}
		done := make(chan error)
		go func() { done <- receive() }()
		runtime.Gosched()
		send()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// waitWhileMoving waits in one goroutine and moves frames in another.
func (s Suite) waitWhileMoving(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = r.b.Link.Wait(0, clock.Never)
			}
		}
	}()
	rx := make([]frame.Rx, 4)
	for i := range 200 {
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, shape{64, 1, 64}, byte(i))
		r.commit(r.a, tx)
		for got := 0; got == 0; {
			n, err := r.b.Link.Recv(0, rx)
			if err != nil {
				t.Fatalf("Recv: %v", err)
			}
			r.b.Link.Release(rx[:n])
			got += n
			runtime.Gosched()
		}
	}
	close(stop)
	r.b.Link.Wake()
	<-done
}

// close closes during a wait, and uses the link afterwards.
func (s Suite) close(t *testing.T) {
	r := s.rig(t)
	l := r.a.Link
	port := r.source(r.a, r.b, 0xC001)
	tx := r.reserve(r.a, 2)
	fill(&tx[0], r.a, r.b, port, shape{64, 1, 64}, 1)
	done := make(chan error)
	go func() {
		for {
			if err := l.Wait(0, clock.Never); err != nil {
				done <- err
				return
			}
		}
	}()
	runtime.Gosched()
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-done; !errors.Is(err, link.ErrClosed) {
		t.Errorf("Wait during Close: %v, want ErrClosed", err)
	}
	if err := l.Wait(0, clock.Never); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Wait after Close: %v, want ErrClosed", err)
	}
	if _, err := l.Recv(0, make([]frame.Rx, 1)); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Recv after Close: %v, want ErrClosed", err)
	}
	if err := l.Commit(0, tx); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Commit after Close: %v, want ErrClosed", err)
	}
	if n := l.Reserve(make([]frame.Run, 1)); n != 0 {
		t.Errorf("Reserve after Close lent %d", n)
	}
	l.Release(nil)
	l.Wake()
	_ = l.Counters()
	_, _ = l.Event()
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// closeWhileMoving closes from another goroutine while frames move.
func (s Suite) closeWhileMoving(t *testing.T) {
	for range 10 {
		r := s.rig(t)
		port := r.source(r.a, r.b, 0xC001)
		moving := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ; i++ {
				if i == 10 {
					close(moving)
				}
				tx := make([]frame.Run, 2)
				n := r.a.Link.Reserve(tx)
				for j := range tx[:n] {
					fill(&tx[j], r.a, r.b, port, shape{64, 1, 64}, byte(i))
				}
				err := r.a.Link.Commit(0, tx[:n])
				rx := make([]frame.Rx, 4)
				m, _ := r.a.Link.Recv(0, rx)
				r.a.Link.Release(rx[:m])
				if err != nil {
					return
				}
			}
		})
		<-moving
		if err := r.a.Link.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
	}
}

// leaks opens, uses and closes links: goroutines and descriptors go with them.
func (s Suite) leaks(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	once := func() {
		a, b := s.Open(t)
		r := &rig{t: t, a: a, b: b}
		s.exchange(r, a, b, r.source(a, b, 0xC001), 1)
		_ = a.Link.Wait(0, millisecond)
		if err := a.Link.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = b.Link.Close()
	}
	once()
	before := descriptors()
	for range 20 {
		once()
	}
	if after := descriptors(); after > before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
}

// descriptors counts this process's open descriptors, 0 where it cannot.
func descriptors() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(fds)
}

// allocations runs the whole cycle in its steady state.
func (s Suite) allocations(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	sh := shape{1084, min(8, r.a.Link.Caps().Segments), 1084}
	tx, rx := make([]frame.Run, 2), make([]frame.Rx, 8)
	cycle := func() {
		n := r.a.Link.Reserve(tx)
		for i := range tx[:n] {
			x := &tx[i]
			x.Src, x.Dst, x.SrcPort, x.TOS, x.TTL = r.a.Addr, r.b.Addr, port, 2, 7
			x.Seg, x.Segs, x.N = sh.seg, sh.segs, sh.bytes()
		}
		_ = r.a.Link.Commit(0, tx[:n])
		_ = r.b.Link.Wait(0, millisecond)
		m, _ := r.b.Link.Recv(0, rx)
		r.b.Link.Release(rx[:m])
	}
	const warm = 200
	for range warm {
		cycle()
	}
	if n := testing.AllocsPerRun(1000, cycle); n != 0 {
		t.Errorf("%v allocations for two runs sent and received", n)
	}
}
