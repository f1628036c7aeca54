package rnic

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

func strictly(overhead int) func(*Config) {
	return func(c *Config) {
		c.Wire = WireCaps{MTU: 9000, Phantom: true}
		c.Pacing = Pacing{Burst: -1, Overhead: overhead}
	}
}

// drive sends all that a fake queue pair has, from time to time, and returns the
// instants at which packets left. It is called at each deadline only.
func drive(t *testing.T, h *host, q *QP, from, to clock.Time, f *fake, one fakePacket) (at []clock.Time) {
	t.Helper()
	now, r := from, newRun()
	for now < to {
		f.out = append(f.out[:0], one, one)
		h.look(now, q)
		for h.Egress(now, r) {
			r.Reset()
			at = append(at, now)
		}
		next := h.Deadline()
		if next <= now {
			t.Fatalf("at %d: next deadline %d", now, next)
		}
		now = next
		h.Advance(now)
	}
	return at
}

// Without bursts the rate is exact too, whatever the packet counts besides its
// bytes: 256 B at 400 Gb/s last 5.12 ns, 195,312.5 of them a millisecond. Every
// packet leaves at the first nanosecond at which those before it are paid for.
func TestStrictPacingIsExact(t *testing.T) {
	for _, c := range []struct{ wire, overhead int }{{256, 0}, {236, 20}, {64, 192}} {
		h, q, f := connectedFake(t, strictly(c.overhead))
		h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 400_000_000})
		one := packets(77, wire.RCSendOnly, c.wire-16)[0]
		at := drive(t, h, q, 0, clock.Time(time.Millisecond), f, one)
		if n := len(at); n < 195_312 || n > 195_313 {
			t.Errorf("%d B + %d: %d packets in a millisecond", c.wire, c.overhead, n)
		}
		for i, now := range at {
			if want := clock.Time((int64(i)*512 + 99) / 100); now != want {
				t.Fatalf("%d B + %d: packet %d leaves at %d, want %d", c.wire, c.overhead, i, now, want)
			}
		}
	}
}

// What was not used is not saved: neither before the first packet, nor while
// nothing was posted, nor during a pause. With the default some is.
func TestStrictPacingSavesNothing(t *testing.T) {
	const gap = 8192 // ns of a 1,024 B packet at 1 Gb/s
	atOnce := func(edit func(*Config), hold func(h *host, q *QP, f *fake)) (n int) {
		h, q, f := connectedFake(t, edit)
		h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 1_000_000})
		one := packets(77, wire.RCSendOnly, 1024-16)[0]
		drive(t, h, q, 0, 3*gap, f, one)
		hold(h, q, f)
		now := clock.Time(1_000_000)
		h.Advance(now)
		h.Pause(0)
		f.out = append(f.out[:0], one, one, one, one, one, one)
		h.look(now, q)
		for r := newRun(); h.Egress(now, r); r = newRun() {
			n += r.Segs
		}
		return n
	}
	idle := func(h *host, q *QP, f *fake) {
		f.out = nil
		h.look(3*gap, q)
	}
	pause := func(h *host, _ *QP, _ *fake) { h.Pause(0xFF) }
	for name, hold := range map[string]func(*host, *QP, *fake){"idle": idle, "paused": pause} {
		if n := atOnce(strictly(0), hold); n != 1 {
			t.Errorf("%s: %d packets at once", name, n)
		}
		if n := atOnce(nil, hold); n < 6 {
			t.Errorf("%s: %d packets at once with bursts of 50 µs, which are 6,250 B", name, n)
		}
	}
}

// What a queue pair waits for its turn is not lost: called late, every time, by
// less than a packet's time, it keeps its rate.
func TestStrictPacingKeepsWhatItsTurnCosts(t *testing.T) {
	const gap = 8192 // ns of a 1,024 B packet at 1 Gb/s
	h, q, f := connectedFake(t, strictly(0))
	h.modify(q, ib.QPAttr{Mask: ib.AttrRateLimit, RateLimitKbps: 1_000_000})
	one := packets(77, wire.RCSendOnly, 1024-16)[0]
	f.out = append(f.out[:0], one, one)
	h.look(0, q)
	r := newRun()
	n := 0
	for now := clock.Time(0); now < 1000*gap; {
		h.Advance(now)
		late := now
		if n > 0 {
			late += clock.Time(n*7919) % (gap - 1) // others, or the link, were before it
		}
		if !h.Egress(late, r) {
			t.Fatalf("packet %d: nothing at %d", n, late)
		}
		r.Reset()
		n++
		f.out = append(f.out[:0], one, one)
		h.look(late, q)
		if now = h.Deadline(); now == clock.Never || now < late {
			now = late // it is its turn already
		}
	}
	if n < 999 || n > 1001 {
		t.Errorf("%d packets in the time of 1,000", n)
	}
}

// A rate that changes holds at once for what is still unpaid: half of a packet
// at a tenth of the rate takes five times the packet's time.
func TestRateChangeMovesTheNextPacket(t *testing.T) {
	for _, c := range []struct {
		old, new uint64
		sent, at int64 // ns: packet leaves, rate changes
		want     int64 // the next may leave
	}{
		{1e9, 1e8, 0, 4096, 4096 + 40960},
		{1e8, 1e9, 0, 40960, 40960 + 4096},
		{1e9, 3e9, 100, 100, 100 + 2731}, // 8192 bits at 3 Gb/s: 2730.67 ns
		{1e9, 5e8, 0, 8192, 8192},        // all is paid
		{1e9, 5e8, 0, 20000, 8192},
		{1e9, 0, 0, 10, 0},
		{0, 1e9, 0, 10, 10},
	} {
		p := pacer{}
		p.change(clock.Time(c.sent), c.old)
		p.sent(clock.Time(c.sent), clock.Time(c.sent), 1024, 0)
		p.change(clock.Time(c.at), c.new)
		if got := p.ready(); got != clock.Time(c.want) {
			t.Errorf("%d to %d bit/s at %d: ready at %d, want %d", c.old, c.new, c.at, got, c.want)
		}
	}
}

// The pacer does not hold an ACK, for which the peer's requester waits, and does
// not count it.
func TestPacingDoesNotHoldAcks(t *testing.T) {
	for _, late := range []bool{false, true} {
		testAcksAreNotHeld(t, late)
	}
}

func testAcksAreNotHeld(t *testing.T, late bool) {
	p := newPhantomPair(t, ib.MTU1024, func(c *Config) { c.AckEvery = 1 })
	for i, h := range p.hosts {
		h.modify(p.qps[i], ib.QPAttr{Mask: ib.AttrRateLimit | ib.AttrLateAck, RateLimitKbps: 1000, LateAck: late}) // 1,024 B: 8 ms
		p.write(i, 3000)
	}
	for i, ack := range []bool{false, true, false, true} { // data, its ACK, data the other way, its ACK
		if late && (i == 1 || i == 2) {
			ack = !ack // the second end may still send a request before its ACK
		}
		if from := [...]int{0, 1, 1, 0}[i]; !p.step(from) || p.run.Ack != ack {
			t.Fatalf("late ACKs %v, packet %d: an ACK is %v, want %v", late, i, p.run.Ack, ack)
		}
	}
	for i, h := range p.hosts {
		if p.step(i) {
			t.Fatalf("end %d sends although it is held", i)
		}
		// 1,024 B of payload, BTH, RETH, ICRC at 1 Mb/s.
		want := Silence{CausePaced, (1024 + 12 + 16 + 4) * 8000}
		if got := h.Why(p.qps[i]); got != want || h.Deadline() != want.Until {
			t.Errorf("end %d: %v, deadline %d; want %v", i, got, h.Deadline(), want)
		}
	}
}
