package swtch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// pause makes host 0 send one PFC frame by hand: it is not refreshed.
func (x *star) pause(now sim.Time, prio uint8, quanta uint16) {
	k := x.s.Pool.Get()
	k.Kind, k.Bytes, k.Enable = sim.KindPFC, port.ControlBytes, 1<<prio
	k.SetQuanta(prio, quanta)
	x.host[0].port.Control(now, k)
}

// at schedules a call.
func (x *star) at(t sim.Time, f func()) { x.s.At(t, starter(f), 0) }

// A class that is stopped for q quanta leaves again q × 512 bit times after the
// frame has arrived (802.3 annex 31B), if nobody says so again.
func TestPauseQuantaExpire(t *testing.T) {
	for _, rate := range []sim.Rate{10 * sim.Gbps, 100 * sim.Gbps, 400 * sim.Gbps} {
		for _, quanta := range []uint16{1, 100, 65535} {
			l := link{rate: rate, delay: sim.Microsecond}
			x := newStar(t, 1, config(2), l)
			const sent = 5 * sim.Microsecond
			x.at(sent, func() { x.pause(sent, 3, quanta) })
			arrives := sent + rate.For(port.ControlBytes+port.GapBytes) + l.delay
			// One packet just after the stop has its effect.
			x.at(arrives+1, func() { x.w.Arrive(arrives+1, 1, x.packet(1, 0, 1000, 26)) })
			x.s.Run(sim.Second)
			expires := arrives + rate.For(int(quanta)*64)
			if got, want := x.host[0].last, expires+rate.For(1000+port.GapBytes)+l.delay; got != want {
				t.Errorf("%v, %d quanta: arrives at %v, by arithmetic %v", rate, quanta, got, want)
			}
			var r result.PortPrio
			x.w.Count(x.s.Now(), 0, 3, &r)
			if want := expires - arrives - 1; r.PausedWaiting != want {
				t.Errorf("%v, %d quanta: waited %v, want %v", rate, quanta, r.PausedWaiting, want)
			}
			if r.MeanQueue <= 0 || r.PeakQueue != 1000 {
				t.Errorf("mean %f, peak %d", r.MeanQueue, r.PeakQueue)
			}
		}
	}
}

// PausedWaiting counts while a class is stopped and has packets: up to now if
// that is still so, and not while it is empty or may leave.
func TestPausedWaiting(t *testing.T) {
	x := still(t, 2, func(*Config) {})
	waited := func(now sim.Time) sim.Time {
		var r result.PortPrio
		x.w.Count(now, 0, 3, &r)
		return r.PausedWaiting
	}
	x.w.Stopped(100, 0, 1<<3)
	if got := waited(200); got != 0 {
		t.Errorf("nothing waits: %d", got)
	}
	x.w.Arrive(300, 1, x.packet(1, 0, 64, 26))
	x.w.Arrive(350, 1, x.packet(1, 0, 64, 0))
	if got := waited(1300); got != 1000 {
		t.Errorf("%d, want 1000", got)
	}
	x.w.Stopped(2300, 0, 1<<4)
	x.w.Stopped(2400, 0, 1<<3|1<<4)
	if got := waited(2500); got != 2100 {
		t.Errorf("%d, want 2100", got)
	}
	x.w.Stopped(2600, 0, 0)
	x.w.Pull(2700, 0, 0)
	x.w.Pull(2700, 0, 0)
	x.w.Stopped(2800, 0, 0xFF)
	if got := waited(9999); got != 2200 {
		t.Errorf("%d, want 2200", got)
	}
}

// A PFC frame goes ahead of data, stops its class alone, and names all lossless
// priorities of the group, not the lossy ones.
func TestXOFFStopsTheGroup(t *testing.T) {
	x := still(t, 2, func(c *Config) {
		c.Queue[4].Lossless = true
		c.PrioToGroup = [8]uint8{0, 0, 0, 1, 1, 1, 2, 2}
		c.Buffer.Group[1] = Group{Headroom: 5000, Limit: Limit{Mode: Static, Bytes: 999}}
	})
	x.in(1, 0, 1000, 4)
	if got := x.w.out[1].port.Stops(); got != 1<<3|1<<4 {
		t.Errorf("stops %08b", got)
	}
	want := []result.Pause{
		{Port: 1, Held: 1000, Limit: 999, Prio: 3, On: true},
		{Port: 1, Held: 1000, Limit: 999, Prio: 4, On: true},
	}
	if d := cmp.Diff(want, x.book.pauses); d != "" {
		t.Error(d)
	}
}

// With 802.3x the neighbour stops whole, and the log says so.
func TestGlobalPause(t *testing.T) {
	c := config(3)
	c.GlobalPause = true
	c.Buffer.Group[3].Limit = Limit{Mode: Static, Bytes: 10_000}
	x := newStar(t, 1, c, fast)
	x.greedy(1, 0, 500, 1048, 26)
	x.greedy(2, 0, 500, 1048, 26)
	lossy := 0
	x.host[0].got = func(_ sim.Time, p *sim.Packet) {
		if x.host[1].port.Classes() != 0 && x.host[1].port.Classes() != 0xFF {
			lossy++
		}
	}
	x.s.Run(sim.Second)
	if x.host[0].packets != 1000 || len(x.book.drops) > 0 || lossy > 0 || x.w.out[1].port.Stats.PauseTx == 0 {
		t.Errorf("%d arrived, %d drops, partly stopped %d times, %d PAUSE frames",
			x.host[0].packets, len(x.book.drops), lossy, x.w.out[1].port.Stats.PauseTx)
	}
	for _, p := range x.book.pauses {
		if p.Cause != result.CauseGlobal {
			t.Fatalf("%+v", p)
		}
	}
}

// A frame that leaves by the port it came in by: the XON it gives rise to must
// not go out inside the frame.
func TestXONOfAHairpin(t *testing.T) {
	c := config(2)
	c.Buffer.Group[3] = Group{Headroom: 60000, Limit: Limit{Mode: Static, Bytes: 2000}}
	x := newStar(t, 1, c, fast)
	var end sim.Time
	x.w.out[1].port.Tap = func(now sim.Time, p *sim.Packet, out bool) {
		if !out {
			return
		}
		if now < end {
			t.Fatalf("a frame of kind %d begins at %v, inside the one that ends at %v", p.Kind, now, end)
		}
		end = now + fast.rate.For(int(p.Bytes)+port.GapBytes)
	}
	x.greedy(1, 1, 300, 1048, 26)
	// Stop it once so that the buffer fills, and XOFF and XON follow.
	x.at(10*sim.Microsecond, func() { x.host[1].port.Stop(10*sim.Microsecond, 3) })
	x.at(20*sim.Microsecond, func() { x.host[1].port.Resume(20*sim.Microsecond, 3) })
	x.s.Run(sim.Second)
	if x.host[1].packets != 300 || x.w.Stats.XOFFs == 0 || x.w.Stats.XOFFs != x.w.Stats.XONs {
		t.Errorf("%d arrived, %d XOFF, %d XON", x.host[1].packets, x.w.Stats.XOFFs, x.w.Stats.XONs)
	}
}
