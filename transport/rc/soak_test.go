package rc_test

import (
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// TestSoak: like a storage benchmark: mixed sizes of 512 bytes to 64 KiB,
// requests of all kinds 128 deep, both ways, while one packet in 200 is lost.
// rule: mixed sizes soak
func TestSoak(t *testing.T) {
	o := lossless()
	o.mtu, o.depth, o.mem, o.rd, o.timeout = ib.MTU1024, 128, 1<<17, 16, 8
	c, doneA, doneB := newCouple(t, o)
	r := rand.New(rand.NewPCG(3, 4))
	c.lose = func() bool { return r.IntN(200) == 0 }
	messages := 4000
	if testing.Short() {
		messages = 500
	}
	ends := [2]*node{c.a, c.b}
	posted, taken := [2]int{}, [2]int{}
	for sent := 0; sent < messages; {
		for i, n := range ends {
			for n.sq.Free() > 0 && sent < messages {
				op := allOps[r.IntN(len(allOps))]
				size := uint32(512) << r.IntN(8)
				if op.IsAtomic() {
					size = 8
				}
				if op.IsSend() || op == ib.WriteImm {
					if ends[1-i].rq.Free() == 0 {
						break
					}
					taken[1-i]++
					ends[1-i].fastRecv(c.now, 0, 1<<17)
				}
				n.fastPost(c.now, uint64(posted[i]), op, size, ends[1-i].remote(64))
				posted[i]++
				sent++
			}
		}
		for range 1 + r.IntN(300) {
			c.tick()
		}
	}
	c.pump()
	if doneA.done != posted[0]+taken[0] || doneB.done != posted[1]+taken[1] {
		t.Errorf("%d of %d and %d of %d completed; %v %v", doneA.done, posted[0]+taken[0], doneB.done, posted[1]+taken[1],
			c.a.eng.State(), c.b.eng.State())
	}
	if n := c.a.win.InFlight() + c.b.win.InFlight(); n != 0 {
		t.Errorf("%d bytes in flight", n)
	}
}

// tick moves a packet from each end, or lets time pass if there is none.
func (c *couple) tick() {
	moved := c.step(c.a, c.b)
	if c.step(c.b, c.a) || moved {
		return
	}
	next := clock.Min(c.a.eng.Deadline(), c.b.eng.Deadline())
	for _, at := range [2]clock.Time{c.a.eng.SendAt(), c.b.eng.SendAt()} {
		if at > c.now {
			next = clock.Min(next, at)
		}
	}
	if next != clock.Never {
		c.now = max(c.now, next)
		c.a.eng.Advance(c.now)
		c.b.eng.Advance(c.now)
	}
}

// TestSharedWindow: sixteen connections share one window towards a destination
// whose buffer holds little. None starves, and nothing is left in flight.
// rule: in-flight limit
func TestSharedWindow(t *testing.T) {
	o := lossless()
	o.mtu, o.mem, o.timeout = ib.MTU4096, 1<<18, 10
	var pairs []*couple
	var sinks []*quietSink
	for i := range 16 {
		o.seed = uint64(i)
		c, s, _ := newCouple(t, o)
		if i > 0 {
			c.a.win = pairs[0].a.win
			c.a.eng.SetWindow(c.a.win)
		}
		pairs, sinks = append(pairs, c), append(sinks, s)
		for k := range 8 {
			op := []ib.WROp{ib.Write, ib.Read}[(i+k)%2]
			c.a.fastPost(0, uint64(k), op, 200_000, c.b.remote(0))
		}
	}
	// The way to the destination holds 40 packets; what does not fit is lost.
	now, worst := clock.Time(0), 0
	for {
		moved := 0
		room := 40
		for _, c := range pairs {
			c.now, c.lose = now, func() bool { room--; return room < 0 }
			for range 10 {
				if !c.step(c.a, c.b) {
					break
				}
				moved++
			}
		}
		worst = max(worst, pairs[0].a.win.InFlight())
		for _, c := range pairs {
			c.lose = nil
			for c.step(c.b, c.a) {
				moved++
			}
		}
		now = now.Add(1000)
		if moved > 0 {
			continue
		}
		next := clock.Never
		for _, c := range pairs {
			next = clock.Min(next, c.a.eng.Deadline())
		}
		if next == clock.Never {
			break
		}
		now = max(now, next)
		for _, c := range pairs {
			c.a.eng.Advance(now)
		}
	}
	for i, s := range sinks {
		if s.done != 8 {
			t.Errorf("connection %d completed %d of 8", i, s.done)
		}
	}
	if n := pairs[0].a.win.InFlight(); n != 0 {
		t.Errorf("%d bytes in flight at the end", n)
	}
	if worst > 2<<20 {
		t.Errorf("%d bytes in flight at once", worst)
	}
	t.Logf("most in flight %d, limit at the end %d", worst, pairs[0].a.win.Limit())
}

// TestSetWindow: what is in flight moves with the connection from one window to
// another, or to none.
// rule: in-flight limit
func TestSetWindow(t *testing.T) {
	a, b := connect(t, lossless())
	a.wr(0, ib.SendWR{Op: ib.Write, SGL: []ib.SGE{a.sge(0, 2000)}, Remote: b.remote(0)})
	p, ok := a.pull(0)
	old, flight := a.win, a.win.InFlight()
	if !ok || flight == 0 {
		t.Fatal("nothing in flight")
	}
	a.win = transport.NewWindow(0)
	a.eng.SetWindow(a.win)
	if old.InFlight() != 0 || a.win.InFlight() != flight {
		t.Errorf("%d left behind, %d moved, want %d", old.InFlight(), a.win.InFlight(), flight)
	}
	a.eng.SetWindow(nil)
	if a.win.InFlight() != 0 {
		t.Errorf("%d left behind", a.win.InFlight())
	}
	b.give(0, p)
	exchange(t, 0, a, b)
	if len(a.sent) != 1 || a.sent[0].Status != ib.Success || a.eng.Flight() != 0 {
		t.Errorf("completions %+v, %d in flight", a.sent, a.eng.Flight())
	}
}
