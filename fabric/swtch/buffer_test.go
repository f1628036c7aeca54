package swtch

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// still is a switch whose ports never ask: what arrives stays. Port 0 is the
// egress of everything.
func still(t *testing.T, ports int, change func(*Config)) *star {
	t.Helper()
	c := config(ports)
	change(&c)
	x := newStar(t, 1, c, fast)
	for i := range x.w.out {
		x.w.out[i].asks = true
	}
	return x
}

// in gives the switch a packet and says whether it was taken.
func (x *star) in(port, dst, bytes int, prio uint8) bool {
	n := len(x.book.drops)
	x.w.Arrive(x.s.Now(), port, x.packet(port, dst, bytes, prio<<3))
	return len(x.book.drops) == n
}

func (x *star) audit(t *testing.T) {
	t.Helper()
	if err := x.w.Audit(); err != nil {
		t.Error(err)
	}
}

// With k congested ingresses the dynamic threshold settles where each holds
// T = α × (B − k × T), which is T = αB / (1 + kα) (ToN'98 Choudhury and Hahne).
func TestDynamicThresholdEquilibrium(t *testing.T) {
	const size = 1000
	for _, alpha := range []float64{1.0 / 8, 0.5, 1, 2, 8} {
		for _, k := range []int{1, 2, 5, 16} {
			const shared = 8 << 20
			x := still(t, k+1, func(c *Config) {
				c.Buffer.Group[3] = Group{Headroom: 100_000, Limit: Limit{Mode: Dynamic, Alpha: uint32(alpha * AlphaOne)}}
				c.Buffer.Total = shared + int64(k+1)*100_000
			})
			// Frames come in turns until every neighbour is told to stop.
			for stopped := 0; stopped < k; {
				stopped = 0
				for i := 1; i <= k; i++ {
					if x.w.out[i].port.Stops()&(1<<3) == 0 {
						x.in(i, 0, size, 3)
					} else {
						stopped++
					}
				}
			}
			// Who stops at u has u > α(B − S) and S ≤ k × u: more than T. Who did
			// not stop at u had u ≤ α(B − S), S ≥ k × u − (k − 1) frames: less than
			// a frame above T; and then one frame more.
			want := alpha * shared / (1 + float64(k)*alpha)
			for i := 1; i <= k; i++ {
				if d := float64(x.w.Held(i, 3)) - want; d <= -1 || d >= 2*size {
					t.Errorf("α %g, %d ingresses: %d bytes held, %.0f by the formula", alpha, k, x.w.Held(i, 3), want)
				}
			}
			if x.w.HeadroomUsed() != 0 || len(x.book.pauses) != k {
				t.Errorf("α %g, %d ingresses: %d bytes in headroom, %d XOFFs", alpha, k, x.w.HeadroomUsed(), len(x.book.pauses))
			}
			x.audit(t)
		}
	}
}

// The same law holds for the queues of a lossy class, by egress.
func TestLossyQueueEquilibrium(t *testing.T) {
	const size, shared = 1000, 8 << 20
	for _, alpha := range []float64{0.5, 1, 4} {
		for _, k := range []int{1, 3, 8} {
			x := still(t, k+1, func(c *Config) {
				*c = Config{Name: "s", Ports: k + 1, Buffer: Buffer{Total: shared}, DSCPToPrio: ClassSelector()}
				c.Queue[1].Limit = Limit{Mode: Dynamic, Alpha: uint32(alpha * AlphaOne)}
			})
			for full := 0; full < k; {
				full = 0
				for i := range k {
					if !x.in(k, i, size, 1) {
						full++
					}
				}
			}
			// A frame is taken if it stays below the threshold, so a queue is at
			// most a frame above T, and, full, less than a frame below.
			want := alpha * shared / (1 + float64(k)*alpha)
			for i := range k {
				if d := math.Abs(float64(x.w.QueueBytes(i, 1)) - want); d > size {
					t.Errorf("α %g, %d queues: %d bytes, %.0f by the formula", alpha, k, x.w.QueueBytes(i, 1), want)
				}
			}
			for _, d := range x.book.drops {
				if d.Reason != result.DropNoBuffer {
					t.Fatalf("%+v", d)
				}
			}
			x.audit(t)
		}
	}
}

// DCQCN paper §4, table in bytes: 12 MB, 32 ports, 8 priorities, 22.4 KB of
// headroom each leave (B − 8nt) / 8n = 24.47 KB for a static threshold: a switch
// with exactly that is possible, and none with one byte more.
func TestStaticThresholdArithmetic(t *testing.T) {
	c := Config{Name: "s", Ports: 32, Buffer: Buffer{Total: 12_000_000}}
	for i := range c.Buffer.Group {
		c.Buffer.Group[i] = Group{Headroom: 22_400, Reserved: 24_475}
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Buffer.Group[7].Reserved++
	if err := c.Validate(); err == nil {
		t.Error("32 bytes too many were possible")
	}
}

// Reserved, then shared, then headroom; given back the other way. Frames are
// 1,000 bytes: two are reserved, three are below a static threshold of 3,000 and
// a fourth passes it, then two fit into headroom of 2,500.
func TestOrderOfParts(t *testing.T) {
	x := still(t, 2, func(c *Config) {
		c.Buffer.Group[3] = Group{
			Reserved: 2000, Headroom: 2500, Limit: Limit{Mode: Static, Bytes: 3000}, XON: 500, XONOffset: 1500,
		}
		c.Buffer.Total = 1 << 20
	})
	type state struct {
		shared, head int64
		stopped      bool
		taken        bool
	}
	want := []state{
		{0, 0, false, true},
		{0, 0, false, true},
		{1000, 0, false, true},
		{2000, 0, false, true},
		{3000, 0, false, true}, // at the threshold, not beyond
		{4000, 0, true, true},  // passes it
		{4000, 1000, true, true},
		{4000, 2000, true, true},
		{4000, 2000, true, false}, // 500 are left
	}
	for i, want := range want {
		taken := x.in(1, 0, 1000, 3)
		got := state{x.w.SharedUsed(), x.w.HeadroomUsed(), x.w.out[1].port.Stops() == 1<<3, taken}
		if got != want {
			t.Errorf("frame %d: %+v, want %+v", i+1, got, want)
		}
		x.audit(t)
	}
	if d := x.book.drops[0]; d.Reason != result.DropHeadroom || d.Port != 1 || d.Prio != 3 {
		t.Errorf("%+v", d)
	}
	// XON when at most max(500, 3000 − 1500) of the shared part are in use.
	back := []state{
		{4000, 1000, true, true},
		{4000, 0, true, true},
		{3000, 0, true, true},
		{2000, 0, true, true},
		{1000, 0, false, true},
		{0, 0, false, true},
		{0, 0, false, true},
		{0, 0, false, true},
	}
	for i, want := range back {
		x.pull(0)
		got := state{x.w.SharedUsed(), x.w.HeadroomUsed(), x.w.out[1].port.Stops() == 1<<3, true}
		if got != want {
			t.Errorf("frame %d leaves: %+v, want %+v", i+1, got, want)
		}
		x.audit(t)
	}
	if n := len(x.book.pauses); n != 2 {
		t.Fatalf("%d entries", n)
	}
	on, off := x.book.pauses[0], x.book.pauses[1]
	if !on.On || on.Held != 6000 || on.Limit != 5000 || on.Egress != 0 || on.EgressStopped || on.Cause != result.CauseBuffer {
		t.Errorf("XOFF %+v", on)
	}
	if off.On || off.Held != 3000 {
		t.Errorf("XON %+v", off)
	}
}

// Memory is given out in cells: of 256 bytes, a frame of 64 takes one and one
// of 1,048 takes five.
func TestCells(t *testing.T) {
	x := still(t, 2, func(c *Config) {
		c.Buffer.Cell = 256
		c.Buffer.Group[1] = Group{Limit: Limit{Mode: Static, Bytes: 10 * 256}}
	})
	for i, want := range []bool{true, true, true, true, true, false} {
		bytes, cells := 64, int64(i+1)
		if i == 4 {
			bytes, cells = 1048, 9
		}
		if got := x.in(1, 0, bytes, 1); got != want {
			t.Errorf("frame %d: taken %v", i+1, got)
		}
		if want && x.w.SharedUsed() != cells*256 {
			t.Errorf("%d bytes used, want %d cells", x.w.SharedUsed(), cells)
		}
		if i == 4 {
			x.in(1, 0, 64, 1) // the tenth
		}
	}
	if got := x.w.QueueBytes(0, 1); got != 4*64+1048+64 {
		t.Errorf("queue of %d bytes: frames count as they are", got)
	}
	x.audit(t)
}

// One pool of headroom for all: each may take its part of it until it is gone.
func TestSharedHeadroom(t *testing.T) {
	x := still(t, 4, func(c *Config) {
		c.Buffer.SharedHeadroom = 5000
		c.Buffer.Group[3] = Group{Headroom: 3000, Limit: Limit{Mode: Static}}
		c.Buffer.Total = 5000 + 100_000
	})
	if b := x.w.Buffer(); b.Headroom != 5000 || b.Shared != 100_000 {
		t.Fatalf("%+v", b)
	}
	for i := 1; i < 4; i++ {
		x.in(i, 0, 1000, 3) // passes the threshold of 0
	}
	taken := [4]int{}
	for i := 1; i < 4; i++ {
		for range 5 {
			if x.in(i, 0, 1000, 3) {
				taken[i]++
			}
		}
	}
	if taken != [4]int{0, 3, 2, 0} {
		t.Errorf("frames taken into headroom: %v", taken)
	}
	if b := x.w.Buffer(); b.PeakHeadroom != 5000 || b.PeakShared != 3000 {
		t.Errorf("%+v", b)
	}
	x.audit(t)
}

// A shared part that others have filled: the frame that would pass the
// threshold goes to headroom, with an XOFF.
func TestSharedPartIsFull(t *testing.T) {
	x := still(t, 3, func(c *Config) {
		c.Buffer.Group[3] = Group{Headroom: 1000, Limit: Limit{Mode: Static, Bytes: 1 << 20}}
		c.Buffer.Total = 3*1000 + 2500
	})
	x.in(1, 0, 1000, 1)
	x.in(1, 0, 1000, 1)
	if !x.in(2, 0, 1000, 3) || x.w.HeadroomUsed() != 1000 || x.w.out[2].port.Stops() != 1<<3 {
		t.Errorf("headroom %d, stops %08b", x.w.HeadroomUsed(), x.w.out[2].port.Stops())
	}
	x.audit(t)
}

// Who is to blame: the egress that holds most of what came in here, looked up
// in the table or, with many ports, in the queues.
func TestHeldFor(t *testing.T) {
	for _, ports := range []int{4, maxMatrix + 1} {
		x := still(t, ports, func(c *Config) {
			c.Buffer.Group[3] = Group{Limit: Limit{Mode: Static, Bytes: 6500}}
		})
		if x.w.held.may != (ports <= maxMatrix) || x.w.held.bytes != nil {
			t.Fatal("wrong road")
		}
		x.w.Stopped(0, 2, 1<<3)
		for _, dst := range []int{0, 2, 2, 1, 2, 0, 2} {
			x.in(3, dst, 1000, 3)
			x.in(0, dst, 500, 3)
			x.in(3, dst, 300, 5)
		}
		var got []int64
		x.w.HeldFor(3, 3, func(egress int, bytes int64) { got = append(got, int64(egress), bytes) })
		want := []int64{0, 2000, 1, 1000, 2, 4000}
		if len(got) != 6 || [6]int64(got) != [6]int64(want) {
			t.Errorf("%d ports: %v, want %v", ports, got, want)
		}
		if p := x.book.pauses[0]; p.Port != 3 || p.Egress != 2 || !p.EgressStopped || p.Held != 7000 || p.Limit != 6500 {
			t.Errorf("%d ports: %+v", ports, p)
		}
		if !x.w.Waiting(2, 3) || x.w.Waiting(2, 5) || x.w.Waiting(0, 3) {
			t.Error("only port 2 waits, in class 3")
		}
		x.audit(t)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	c := config(3)
	c.Latency = 1000
	c.Watchdog.Detect = sim.Microsecond
	c.Buffer.Group[3] = Group{Headroom: 60000, Limit: Limit{Mode: Static, Bytes: 2000}}
	c.Queue[3].ECN = ECN{KMin: 100, KMax: 100000, PMax: 1 << 31}
	x := newStar(t, 1, c, fast)
	x.w.log = nil
	x.greedy(1, 0, 1<<30, 1048, 26)
	x.greedy(2, 0, 1<<30, 1048, 26)
	x.s.Run(sim.Millisecond)
	xoffs := x.w.Stats.XOFFs
	if n := testing.AllocsPerRun(20, func() { x.s.RunSome(sim.Never-1, 2000) }); n > 0 {
		t.Errorf("%v allocations in 2,000 events", n)
	}
	if x.w.Stats.XOFFs == xoffs {
		t.Error("no XOFF meanwhile")
	}
}
