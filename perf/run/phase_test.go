package run

import (
	"testing"
	"time"
)

func TestPhases(t *testing.T) {
	p := &Phases{Duration: 10 * time.Second, Margin: 2 * time.Second}
	if p.counts(5) || p.over(5) {
		t.Error("counts, or is over, before it has begun")
	}
	const t0 = int64(7e9)
	p.start(t0)
	p.start(t0 + 5e9) // only the first counts
	for _, tc := range []struct {
		at           int64
		counts, over bool
	}{{0, false, false}, {2e9 - 1, false, false}, {2e9, true, false}, {8e9 - 1, true, false}, {8e9, false, false}, {10e9, false, true}} {
		if p.counts(t0+tc.at) != tc.counts || p.over(t0+tc.at) != tc.over {
			t.Errorf("at %v: counts %v over %v", time.Duration(tc.at), p.counts(t0+tc.at), p.over(t0+tc.at))
		}
	}
	if p.sample() != 6*time.Second {
		t.Errorf("sample %v", p.sample())
	}
	p.reset()
	if p.over(t0 + 20e9) {
		t.Error("over after reset")
	}
}

func TestWorkRequestIDs(t *testing.T) {
	for _, lane := range []int{0, 1, 16383} {
		for _, n := range []uint64{0, 1, 1<<48 - 1} {
			for _, bit := range []uint64{0, recvBit} {
				id := bit | wrID(lane, n)
				if laneOf(id) != lane || numberOf(id) != n || id&recvBit != bit {
					t.Errorf("lane %d number %d: %#x reads as %d, %d", lane, n, id, laneOf(id), numberOf(id))
				}
			}
		}
	}
}

func TestWordIsOneByte(t *testing.T) {
	b := make([]byte, 16)
	for i := range uint64(16) {
		w := wordOf(b, i)
		w.store(0xA5)
		for k, v := range b {
			if (v == 0xA5) != (uint64(k) == i) {
				t.Fatalf("byte %d: % x", i, b)
			}
		}
		if w.load() != 0xA5 {
			t.Errorf("byte %d reads %#x", i, w.load())
		}
		w.store(0)
	}
}

func TestSlotsRepeat(t *testing.T) {
	b := Buffer{Addr: 1000, Stride: 64, Slots: 3}
	for n, want := range []uint64{1000, 1064, 1128, 1000, 1064} {
		if got := b.At(uint64(n)); got != want {
			t.Errorf("slot of message %d: %d, want %d", n, got, want)
		}
	}
}
