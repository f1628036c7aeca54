package driver

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

func startFake(t *testing.T) (*Driver, *fakeAdapter, *fakeLink) {
	t.Helper()
	a, l := newFakeAdapter(t), newFakeLink()
	d := start(a, Config{Link: l, Clock: clock.NewReal()})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, a, l
}

// A doorbell that finds the lock taken is answered by whoever holds it. No
// timer, frame or poll helps here: if it is lost, the engine sleeps for ever and
// the test hangs.
func TestDoorbellWhileLocked(t *testing.T) {
	d, a, _ := startFake(t)
	const rounds = 20000
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range rounds {
				a.bell.Add(1)
				d.Kick()
			}
		})
	}
	stop := make(chan struct{})
	var holders sync.WaitGroup
	holders.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = d.Do(func(clock.Time) { runtime.Gosched() })
			}
		}
	})
	wg.Wait()
	close(stop)
	holders.Wait()
	for a.answered.Load() != 3*rounds {
		runtime.Gosched()
	}
}

// While somebody polls, the engine leaves frames alone; when the polling ends,
// it takes over after one to two Takeovers, and then at once.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, l := startFake(t)
		synctest.Wait()
		for range 10 { // polls, one each 0.1 ms
			d.Poll()
			time.Sleep(Takeover / 10)
		}
		l.put(1)
		synctest.Wait()
		if n := a.frames.Load(); n > 1 {
			t.Fatalf("engine received %d frames", n)
		}
		d.Poll() // the program takes it, or the engine has, once, to see that somebody polls
		l.put(1)
		before := a.frames.Load()
		time.Sleep(Takeover / 2)
		d.Poll()
		l.put(1)
		time.Sleep(Takeover * 99 / 100)
		synctest.Wait()
		if got := a.frames.Load() - before; got > 1 {
			t.Errorf("engine received %d frames while the program polled", got-1)
		}
		time.Sleep(2 * Takeover)
		synctest.Wait()
		if got := a.frames.Load() - before; got != 2 {
			t.Errorf("after twice Takeover without a poll %d frames were received, want 2", got)
		}
		l.put(1)
		synctest.Wait()
		if got := a.frames.Load() - before; got != 3 {
			t.Errorf("engine did not take the next frame at once")
		}
	})
}

// Frames do not wake the engine while a program polls.
func TestPollersDoNotWakeTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, l := startFake(t)
		for range 1000 {
			l.put(1)
			d.Poll()
			time.Sleep(10 * time.Microsecond)
		}
		synctest.Wait()
		if n := l.waits.Load(); n > 4 {
			t.Errorf("the engine went to the link %d times in 10 ms of polling with 1,000 frames", n)
		}
	})
}

// A program that parks is served at once, however much it polled before.
func TestPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, l := startFake(t)
		c := clock.NewReal()
		synctest.Wait()
		for range 100 {
			d.Poll()
			time.Sleep(Takeover / 20)
			d.Poll()
			d.Park()
			synctest.Wait()
			before, at := a.frames.Load(), c.Now()
			l.put(1)
			synctest.Wait()
			if got := a.frames.Load() - before; got != 1 {
				t.Fatalf("parked program: %d frames received, want 1", got)
			}
			if c.Now() != at {
				t.Fatal("time has passed")
			}
		}
	})
}

// Whoever makes the deadline earlier wakes the engine for it.
func TestEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, _ := startFake(t)
		synctest.Wait() // sleeps for ever
		for _, after := range []time.Duration{time.Second, 5 * time.Millisecond, time.Hour, time.Microsecond} {
			var due clock.Time
			fired := a.fired.Load()
			if err := d.Do(func(now clock.Time) { due = now.Add(after); a.deadline = due }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			synctest.Wait()
			if a.fired.Load() != fired+1 || a.lastFire != due {
				t.Errorf("deadline after %v: fired %d times, at %v for %v", after, a.fired.Load()-fired, a.lastFire, due)
			}
		}
	})
}

// What has arrived is looked at before a timer that is due fires: after a pause
// of the process the answers are all there.
func TestArrivalsComeBeforeTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, l := startFake(t)
		synctest.Wait()
		a.onFire = func() {
			if n := a.frames.Load(); n != 40 {
				t.Errorf("the timer fired after %d of 40 frames", n)
			}
		}
		if err := d.Do(func(now clock.Time) {
			l.mu.Lock()
			l.in = 40
			l.mu.Unlock()
			a.deadline = now
		}); err != nil {
			t.Fatal(err)
		}
		if n := a.fired.Load(); n != 1 {
			t.Errorf("the timer fired %d times", n)
		}
	})
}

// An idle device wakes nobody.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, _ := startFake(t)
		d.Poll()
		time.Sleep(time.Second)
		synctest.Wait()
		before := a.slices.Load()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := a.slices.Load() - before; n != 0 {
			t.Errorf("%d slices in an idle day", n)
		}
	})
}

// What a bounded slice of a poster leaves over, the engine sends.
func TestKickLeavesTheRestToTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a, l := startFake(t)
		synctest.Wait()
		a.toSend.Store(1000)
		d.Kick()
		if n := l.sent.Load(); n == 0 || n == 1000 {
			t.Errorf("Kick sent %d of 1000 runs, want one slice of them", n)
		}
		synctest.Wait()
		if n := l.sent.Load(); n != 1000 {
			t.Errorf("%d of 1000 runs sent", n)
		}
	})
}

// A link that cannot wait, or a way out that stays full, is not spun on.
func TestNoSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken error
		a, l := newFakeAdapter(t), newFakeLink()
		l.bad.Store(true)
		d := start(a, Config{Link: l, Clock: clock.NewReal(), OnBroken: func(err error) { broken = err }})
		time.Sleep(100 * Takeover)
		synctest.Wait()
		if n := l.waits.Load(); n > 200 {
			t.Errorf("%d failed waits in 100 Takeovers", n)
		}
		if !errors.Is(broken, badWait{}) || !errors.Is(d.Broken(), badWait{}) {
			t.Errorf("broken: %v, %v", broken, d.Broken())
		}
		l.bad.Store(false)
		l.full.Store(true)
		a.toSend.Store(1)
		d.Kick()
		time.Sleep(Takeover)
		synctest.Wait()
		before := a.slices.Load()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := a.slices.Load() - before; n > 10 {
			t.Errorf("%d slices in a second of a full way out", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	d, a, l := startFake(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for d.Do(func(clock.Time) {}) == nil {
				d.Poll()
				d.Kick()
				d.Park()
			}
		})
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if d.Poll() {
		t.Error("Poll after Close moved something")
	}
	if err := d.Do(func(clock.Time) { t.Error("called") }); !errors.Is(err, ErrClosed) {
		t.Errorf("Do after Close: %v", err)
	}
	slices := a.slices.Load()
	d.Kick()
	d.Park()
	if a.slices.Load() != slices || !l.closed {
		t.Error("the driver works on after Close")
	}
}

func TestNoAllocations(t *testing.T) {
	d, a, l := startFake(t)
	if n := testing.AllocsPerRun(1000, func() {
		l.put(20)
		a.toSend.Store(3)
		a.bell.Add(1)
		d.Kick()
		d.Poll()
		d.Park()
	}); n != 0 {
		t.Errorf("%v allocations a slice", n)
	}
}
