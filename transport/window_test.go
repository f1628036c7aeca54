package transport

import (
	"testing"

	"pgregory.net/rapid"
)

// A nil window limits nothing and takes every call.
func TestNilWindow(t *testing.T) {
	var w *Window
	w.Sent(1 << 20)
	w.Acked(1)
	w.Forget(1)
	w.Lost(testPacket)
	w.TimedOut(testPacket)
	if w.Room() < 1<<29 || w.Limit() < 1<<29 || !w.Fits(1<<29) || w.InFlight() != 0 {
		t.Errorf("room %d, limit %d, in flight %d", w.Room(), w.Limit(), w.InFlight())
	}
}

// With nothing in flight something may be sent, whatever the limit; with
// something in flight only what fits.
func TestWindowRoom(t *testing.T) {
	for _, max := range []int{0, 1, 4096, testLeast, WindowStart, 1 << 20} {
		w := NewWindow(max)
		if w.Room() < testLeast || !w.Fits(1<<20) {
			t.Errorf("max %d: an idle window has room for %d", max, w.Room())
		}
		limit := w.Limit()
		w.Sent(limit - 1)
		if limit > 1 && (w.Room() != 1 || !w.Fits(1) || w.Fits(2)) {
			t.Errorf("max %d: %d of %d in flight: room %d", max, limit-1, limit, w.Room())
		}
		w.Sent(5000)
		if w.Room() != 1-5000 && limit > 1 || w.Fits(0) && limit > 1 {
			t.Errorf("max %d: overfull: room %d", max, w.Room())
		}
		w.Forget(limit - 1 + 5000)
		if w.InFlight() != 0 || w.Limit() != limit {
			t.Errorf("max %d: forgetting changed the limit to %d, in flight %d", max, w.Limit(), w.InFlight())
		}
	}
}

// Packets of tests.
const (
	testPacket = 4096 + 32
	testLeast  = 2 * testPacket
)

// Losses of one window of data count as one.
func TestWindowLosesOncePerWindow(t *testing.T) {
	w := NewWindow(0)
	w.Sent(WindowStart)
	for range 10 {
		w.Lost(testPacket)
	}
	if w.Limit() != WindowStart/2 {
		t.Fatalf("after a burst of losses the limit is %d, want %d", w.Limit(), WindowStart/2)
	}
	w.Acked(WindowStart/2 - 1)
	w.Lost(testPacket)
	if w.Limit() != WindowStart/2 {
		t.Fatalf("a loss within the window counted: %d", w.Limit())
	}
	w.Acked(1)
	w.Lost(testPacket)
	if w.Limit() != WindowStart/4 {
		t.Fatalf("a loss in the next window did not count: %d", w.Limit())
	}
	for range 100 {
		w.Lost(testPacket)
		w.Sent(1 << 20)
		w.Acked(1 << 20)
		w.Lost(testPacket)
	}
	if w.Limit() < testLeast {
		t.Errorf("the limit fell to %d", w.Limit())
	}
}

// The limit grows by an eighth of what is acknowledged until the first loss,
// then by a step for each window of data.
func TestWindowGrows(t *testing.T) {
	w := NewWindow(1 << 20)
	w.Sent(80_000)
	w.Acked(80_000)
	if want := WindowStart + 10_000; w.Limit() != want {
		t.Errorf("before a loss: limit %d, want %d", w.Limit(), want)
	}
	for range 1000 {
		w.Acked(80_000)
	}
	if w.Limit() != 1<<20 {
		t.Errorf("the limit grows to %d, not to its maximum", w.Limit())
	}
	w.Lost(testPacket)
	w.Acked(1 << 19) // of this window another loss would not count
	if w.Limit() != 1<<19 {
		t.Errorf("after a loss: limit %d", w.Limit())
	}
	for range 8 {
		w.Acked(w.Limit() / 4)
		w.Acked(w.Limit() - w.Limit()/4)
	}
	if want := 1<<19 + 8*WindowStep; w.Limit() > want || w.Limit() < want-2*WindowStep {
		t.Errorf("eight windows after a loss: limit %d, want about %d", w.Limit(), want)
	}
}

// A timeout takes the limit to the least; from there it doubles with each
// window of data up to half of what it was, then grows by steps. Further
// timeouts do not move that mark; a loss on the way ends the doubling.
func TestWindowTimesOut(t *testing.T) {
	w := NewWindow(1 << 20)
	w.Sent(WindowStart)
	for range 3 {
		w.TimedOut(testPacket)
		w.Lost(testPacket) // what is told then is part of it
		if w.Limit() != testLeast {
			t.Fatalf("after a timeout the limit is %d, want %d", w.Limit(), testLeast)
		}
	}
	for want := 2 * testLeast; want < WindowStart/2; want *= 2 {
		w.Acked(w.Limit())
		if w.Limit() != want {
			t.Fatalf("limit %d, want %d", w.Limit(), want)
		}
	}
	w.Acked(w.Limit())
	if w.Limit() != WindowStart/2 {
		t.Fatalf("limit %d, want half of what it was", w.Limit())
	}
	w.Acked(w.Limit())
	if want := WindowStart/2 + WindowStep; w.Limit() != want {
		t.Errorf("above half of what it was: limit %d, want %d", w.Limit(), want)
	}
	w.TimedOut(testPacket)
	w.Acked(testLeast)
	w.Lost(testPacket)
	w.Acked(w.Limit())
	before := w.Limit()
	w.Acked(w.Limit())
	if w.Limit() != before+WindowStep {
		t.Errorf("after a loss on the way up: limit from %d to %d", before, w.Limit())
	}
	small := NewWindow(4096)
	small.TimedOut(testPacket)
	if small.Limit() != 4096 {
		t.Errorf("a window of 4,096 has the limit %d", small.Limit())
	}
}

// The least is eight packets, or two where they are large.
func TestWindowLeast(t *testing.T) {
	for _, tt := range []struct{ payload, least int }{{256, 8 * 288}, {512, 8 * 544}, {1024, testLeast}, {2048, testLeast}, {4096, testLeast}} {
		w := NewWindow(0)
		w.TimedOut(tt.payload + 32)
		if w.Limit() != tt.least {
			t.Errorf("packets of %d bytes: limit %d after a timeout, want %d", tt.payload, w.Limit(), tt.least)
		}
		w = NewWindow(0)
		for range 50 {
			w.Lost(tt.payload + 32)
			w.Acked(w.Limit())
		}
		if w.Limit() != tt.least {
			t.Errorf("packets of %d bytes: limit %d after losses, want %d", tt.payload, w.Limit(), tt.least)
		}
	}
}

// However few packets are acknowledged between two timeouts, the limit grows
// with what they add up to.
func TestWindowGrowsBetweenTimeouts(t *testing.T) {
	w := NewWindow(1 << 20)
	for range 30 {
		w.TimedOut(testPacket) // the mark of the first ones falls to nothing
	}
	w.TimedOut(testPacket)
	grown := false
	for range 8 {
		w.Acked(testPacket)
		grown = grown || w.Limit() > testLeast
		w.TimedOut(testPacket)
	}
	if !grown {
		t.Error("eight packets arrived between timeouts, and the limit never grew")
	}
}

// What turns out to have arrived takes the timeout back: the limit is what it
// was, or half of it where not all is known to have arrived. A loss that was
// reported since stays one.
func TestWindowTakesTimeoutBack(t *testing.T) {
	for _, tt := range []struct {
		all, lost bool
		want      int
	}{{true, false, WindowStart}, {false, false, WindowStart / 2}, {true, true, testLeast}} {
		w := NewWindow(1 << 20)
		w.Sent(WindowStart)
		w.TimedOut(testPacket)
		w.TimedOut(testPacket)
		if tt.lost {
			w.Lost(testPacket)
		}
		w.Arrived(tt.all)
		if w.Limit() != tt.want {
			t.Errorf("all %v, loss reported %v: limit %d, want %d", tt.all, tt.lost, w.Limit(), tt.want)
		}
		w.Arrived(true)
		if w.Limit() != tt.want {
			t.Errorf("taken back twice: limit %d, want %d", w.Limit(), tt.want)
		}
	}
	w := NewWindow(1 << 20)
	w.Arrived(true)
	if w.Limit() != WindowStart {
		t.Errorf("without a timeout the limit became %d", w.Limit())
	}
}

// Whatever happens: never less than nothing in flight, and the limit between
// its bounds, growing only with what arrived and shrinking only with losses.
func TestWindowProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bound := rapid.SampledFrom([]int{0, 4096, testLeast, 100 << 10, 1 << 20}).Draw(rt, "max")
		w := NewWindow(bound)
		flight, most := 0, w.Limit()
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			before := w.Limit()
			most = max(most, before)
			n := rapid.IntRange(0, 64<<10).Draw(rt, "n")
			switch op := rapid.IntRange(0, 5).Draw(rt, "op"); op {
			case 0:
				w.Sent(n)
				flight += n
			case 1:
				w.Acked(n)
				flight = max(0, flight-n)
			case 2:
				w.Forget(n)
				flight = max(0, flight-n)
			case 4:
				w.TimedOut(testPacket)
				if l := w.Limit(); l > before || l != min(before, testLeast) {
					rt.Fatalf("a timeout took the limit from %d to %d", before, l)
				}
				continue
			case 5:
				w.Arrived(n%2 == 0)
				if l := w.Limit(); l < before || l > most {
					rt.Fatalf("what arrived took the limit from %d to %d, and it had been %d at most", before, l, most)
				}
				continue
			case 3:
				w.Lost(testPacket)
				if w.Limit() > before || w.Limit() < before/2 {
					rt.Fatalf("a loss took the limit from %d to %d", before, w.Limit())
				}
				continue
			}
			if w.InFlight() != flight {
				rt.Fatalf("%d in flight, want %d", w.InFlight(), flight)
			}
			if l := w.Limit(); l < before || l > before+max(n, WindowStep) || bound > 0 && l > bound || l < min(testLeast, max(bound, 1)) && bound > 0 {
				rt.Fatalf("the limit went from %d to %d", before, l)
			}
		}
	})
}
