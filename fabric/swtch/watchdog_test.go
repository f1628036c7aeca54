package swtch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// storm makes host 0 stop class 3 from 10 µs to 500 µs, while others send to it.
func storm(t *testing.T, a Action, detect sim.Time) *star {
	t.Helper()
	c := config(4)
	c.Watchdog = Watchdog{Detect: detect, Restore: 50 * sim.Microsecond, Action: a}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 3900, 1048, 26)
	x.greedy(3, 0, 100, 1048, 26) // so that there is always one that waits
	x.at(10*sim.Microsecond, func() { x.host[0].port.Stop(10*sim.Microsecond, 3) })
	x.at(500*sim.Microsecond, func() { x.host[0].port.Resume(500*sim.Microsecond, 3) })
	x.s.Run(sim.Second)
	x.audit(t)
	if n := x.host[0].packets + len(x.book.drops); n != 4000 {
		t.Errorf("%d packets arrived or dropped, of 4000", n)
	}
	return x
}

// The frame that stops takes 84 B at 100 Gb/s, 6.72 ns, and 1 µs to arrive.
const stormEffect = 10*sim.Microsecond + 6720 + sim.Microsecond

func TestWatchdogStates(t *testing.T) {
	effect := stormEffect
	over := effect + 490*sim.Microsecond
	for _, tt := range []struct {
		name   string
		action Action
		detect sim.Time
		want   int // entries
	}{
		{"alert", Alert, 100 * sim.Microsecond, 2},
		{"drop", DropAll, 100 * sim.Microsecond, 2},
		{"forward", Forward, 100 * sim.Microsecond, 2},
		{"in time", DropAll, 490*sim.Microsecond + 1, 0},
		{"exactly", DropAll, 490*sim.Microsecond - 1, 2},
		{"off", DropAll, 0, 0},
	} {
		x := storm(t, tt.action, tt.detect)
		if len(x.book.storms) != tt.want {
			t.Errorf("%s: %+v", tt.name, x.book.storms)
			continue
		}
		var r result.PortPrio
		x.w.Count(x.s.Now(), 0, 3, &r)
		if tt.want == 0 {
			if len(x.book.drops) > 0 || r.WatchdogDetected > 0 || r.PausedWaiting != 490*sim.Microsecond {
				t.Errorf("%s: %d drops, %d detected, waited %v", tt.name, len(x.book.drops), r.WatchdogDetected, r.PausedWaiting)
			}
			continue
		}
		begin := result.Storm{From: effect, To: sim.Never, Prio: 3, Watchdog: tt.action != Alert, Restored: sim.Never}
		end := begin
		end.To, end.Dropped, end.Restored = over, uint64(len(x.book.drops)), over+50*sim.Microsecond
		if d := cmp.Diff([]result.Storm{begin, end}, x.book.storms); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if r.WatchdogDetected != 1 || r.WatchdogRestored != 1 || r.WatchdogDropped != end.Dropped {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if (tt.action == DropAll) != (end.Dropped > 0) {
			t.Errorf("%s: %d dropped", tt.name, end.Dropped)
		}
		for _, d := range x.book.drops {
			if d.Reason != result.DropWatchdog || d.At < effect+tt.detect || d.At > over+50*sim.Microsecond {
				t.Fatalf("%s: %+v", tt.name, d)
			}
		}
		wait := 490 * sim.Microsecond
		if tt.action != Alert {
			wait = tt.detect
		}
		if r.PausedWaiting != wait {
			t.Errorf("%s: waited %v, want %v", tt.name, r.PausedWaiting, wait)
		}
	}
}

// While the watchdog does not obey, packets pass a neighbour that stops them.
func TestWatchdogForwards(t *testing.T) {
	x := storm(t, Forward, 100*sim.Microsecond)
	if len(x.book.drops) > 0 || x.host[0].last > 450*sim.Microsecond+stormEffect {
		t.Errorf("%d drops, last packet at %v", len(x.book.drops), x.host[0].last)
	}
	x = storm(t, Alert, 100*sim.Microsecond)
	if len(x.book.drops) > 0 || x.host[0].last < 500*sim.Microsecond {
		t.Errorf("%d drops, last packet at %v", len(x.book.drops), x.host[0].last)
	}
}

// Pauses that end in time, however many, are no storm: the watchdog wants one
// without a break, with packets.
func TestWatchdogWantsNoBreak(t *testing.T) {
	c := config(3)
	c.Watchdog = Watchdog{Detect: 20 * sim.Microsecond, Action: DropAll}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 2000, 1048, 26)
	for i := range sim.Time(50) {
		at := i * 20 * sim.Microsecond
		x.at(at, func() { x.host[0].port.Stop(at, 3) })
		x.at(at+19*sim.Microsecond, func() { x.host[0].port.Resume(at+19*sim.Microsecond, 3) })
	}
	// A class without packets may be stopped for ever.
	x.host[2].port.Stop(0, 3)
	x.s.Run(2 * sim.Millisecond)
	if len(x.book.storms)+len(x.book.drops) > 0 || x.host[0].packets != 2000 {
		t.Errorf("%d storms, %d drops, %d arrived", len(x.book.storms), len(x.book.drops), x.host[0].packets)
	}
}

// A storm that stops for less than the time of restoration is the same storm.
func TestWatchdogRestoresOnlyAfterRest(t *testing.T) {
	c := config(2)
	c.Watchdog = Watchdog{Detect: 20 * sim.Microsecond, Restore: 30 * sim.Microsecond, Action: DropAll}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 1<<30, 1048, 26)
	var from sim.Time
	for i := range sim.Time(10) {
		at := i * 50 * sim.Microsecond
		x.at(at, func() { x.host[0].port.Stop(at, 3) })
		x.at(at+25*sim.Microsecond, func() { x.host[0].port.Resume(at+25*sim.Microsecond, 3) })
	}
	last := 9*50*sim.Microsecond + 25*sim.Microsecond
	x.s.Run(last + 40*sim.Microsecond)
	if len(x.book.storms) != 2 {
		t.Fatalf("%+v", x.book.storms)
	}
	from = x.book.storms[0].From
	const frame = 6720 + sim.Microsecond
	if s := x.book.storms[1]; s.From != from || s.To != last+frame || s.Dropped == 0 {
		t.Errorf("%+v", s)
	}
	x.audit(t)
}
